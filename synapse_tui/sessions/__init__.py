"""Sessions: named hosts of a project, each found by a socket in a private folder.

Standard library only, so that clients start fast.
"""
