"""The A2A side of an agent: its HTTP server, the client that reaches others, and the security in front.

Nothing is imported here: `server`, `routes` and `client` load FastAPI, uvicorn and httpx and are imported
late, in a thread; `agent`, `sockets`, `signing`, `dialect` and `light` are cheap.
"""
