"""Recording terminals and playing them: asciicast files, logs of agents, pictures of a screen for others."""
