"""The tasks of one agent, the turns that work on them, and those who follow them."""
