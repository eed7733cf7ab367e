"""File safety: locks that the agents' hooks take on files, and recorded changes."""
