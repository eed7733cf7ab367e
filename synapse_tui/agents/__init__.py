"""One agent: profile, state, composer, delivery and session."""
