"""File safety: locks that the agents' hooks take on files, and the changes that they made."""
