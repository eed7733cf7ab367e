"""Requests as files, for agents whose sandbox forbids every connection (docs/spool.md).

A client writes a request into the folder that `SYNAPSE_SPOOL` names; the host of its agent takes it,
carries it to the agent that it is for, and puts the answer beside it. All of it needs the standard library
only.
"""
