"""Asciicast recordings of terminals; agent logs as text or as recordings."""
