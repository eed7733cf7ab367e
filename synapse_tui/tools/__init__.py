"""Low-level tools, run as `python -m synapse_tui.tools.NAME`."""
