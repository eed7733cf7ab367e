"""The A2A side of an agent: its HTTP server with the guard in front, and the clients for other agents.

Imports nothing: `server`, `routes` and `async_client` load FastAPI, uvicorn and httpx, and are imported late,
in a thread.
"""
