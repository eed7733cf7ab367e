"""The files of `.synapse` that a person edits: written by `synapse init`, put back by `synapse reset`."""

from .files import Scaffold, Scope
from .notes import NoteFile
from .shipped import Standing

__all__ = ["NoteFile", "Scaffold", "Scope", "Standing"]
