"""External A2A agents: found by their card, kept in a registry, talked to in conversations.

Nothing is imported here. `record`, `store`, `untrusted`, `origins`, `conversation` and `updates` are cheap;
`connecting` and what it needs load httpx and the SDK, and are imported late, in a thread.
"""
