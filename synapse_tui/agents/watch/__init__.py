"""A watch over a task of an agent that is left alone."""
