"""Delivers messages to one agent: when they may be typed, typing and submitting."""
