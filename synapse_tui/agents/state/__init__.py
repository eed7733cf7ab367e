"""What state an agent is in, by which signals, and why."""
