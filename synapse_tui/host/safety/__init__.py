"""File safety of a host's agents: the locks that their hooks take, and what they changed."""
