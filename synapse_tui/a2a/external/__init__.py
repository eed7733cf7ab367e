"""External A2A agents: found by their card, stored in a registry, with a conversation for each.

`discovery`, `transport` and `peers` load httpx or the SDK and are imported late, in a thread.
"""
