"""The host process of a session: owns the agents and the application, and draws on clients' terminals."""
