"""Requests as files, for agents whose sandbox forbids all connections (docs/spool.md).

A client writes a request into the folder named by `SYNAPSE_SPOOL`; the agent's host picks it up, forwards it
to the receiving agent, and writes the answer to the same folder. Standard library only.
"""
