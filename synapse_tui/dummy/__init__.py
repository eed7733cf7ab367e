"""The built-in agent: a scripted terminal program that behaves like a coding agent.

`python -m synapse_tui.dummy --help` lists the options, `/help` in its composer the commands. It imports only
the standard library and nothing else of this package, so that it starts quickly.
"""
