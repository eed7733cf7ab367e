"""The host process of a session: owns agents and application, and draws on the terminals of clients."""
