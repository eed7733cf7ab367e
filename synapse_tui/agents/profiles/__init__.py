"""Agent profiles: the rules for each type of agent, how they are found, and which are trusted."""
