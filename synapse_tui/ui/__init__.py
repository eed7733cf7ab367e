"""The Textual application: screens, themes, and what leads them; its widgets are in `synapse_tui.widgets`."""
