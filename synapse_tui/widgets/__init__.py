"""Textual widgets: panes, tabs, bars, sidebar."""
