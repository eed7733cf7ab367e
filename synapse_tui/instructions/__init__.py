"""The instructions that agents get about one another: texts, where they are read from, and delegation."""

from .compose import HEADER, Composed, Selection, compose, placeholders
from .delegation import Pick, Rule, Rules, load_rules
from .files import Fault, TextFile, TextFolders

__all__ = [
    "HEADER",
    "Composed",
    "Fault",
    "Pick",
    "Rule",
    "Rules",
    "Selection",
    "TextFile",
    "TextFolders",
    "compose",
    "load_rules",
    "placeholders",
]
