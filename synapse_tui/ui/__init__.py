"""The Textual application: screens, keys, themes and its driver; its widgets are in `synapse_tui.widgets`."""
