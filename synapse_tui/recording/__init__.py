"""Asciicast recordings of terminals, and the logs of agents as text or as recordings."""
