"""The built-in agent: a scripted terminal program in the manner of a coding agent.

`python -m synapse_tui.dummy --help` lists its options, `/help` in its composer what can be typed. It imports
the standard library only and nothing of the rest of this package, so that it starts at once.
"""
