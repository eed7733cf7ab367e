"""One agent: its profile, its state, its composer, what waits to be typed into it, and its session."""
