"""Sessions: named hosts of a project, found by a socket in a private folder.

Standard library only: a client starts fast.
"""
