"""What all parts speak of: agents, messages, events, errors, addresses, content and their words."""
