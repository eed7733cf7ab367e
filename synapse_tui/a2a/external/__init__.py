"""External A2A agents: found by their card, kept in a registry, talked to in conversations.

`discovery`, `transport` and `peers` load httpx or the SDK and are imported late, in a thread.
"""
