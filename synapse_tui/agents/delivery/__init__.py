"""Delivers messages to one agent: intake, outbox control, typing and submitting."""
