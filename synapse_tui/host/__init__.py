"""The host: owns agents, servers and routing, and does not depend on Textual."""
