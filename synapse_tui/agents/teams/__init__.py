"""Teams: files that name agents to open together."""
