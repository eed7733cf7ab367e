"""What agents are told of one another: the texts, where they are read from, and the rules of delegation."""

from .compose import HEADER, Composed, Neighbour, Selection, Subject, compose
from .delegation import Pick, Rule, Rules
from .files import Fault, Shelves, TextFile

__all__ = [
    "HEADER",
    "Composed",
    "Fault",
    "Neighbour",
    "Pick",
    "Rule",
    "Rules",
    "Selection",
    "Shelves",
    "Subject",
    "TextFile",
    "compose",
]
