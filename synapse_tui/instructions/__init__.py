"""What agents are told of one another: the texts, where they are read from, and the rules of delegation."""

from .compose import HEADER, Composed, Neighbour, Selection, Subject, compose, neighbours_of, subject_of
from .delegation import Pick, Rule, Rules, load_rules
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
    "load_rules",
    "neighbours_of",
    "subject_of",
]
