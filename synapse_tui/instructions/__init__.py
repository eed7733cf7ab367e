"""The instructions that introduce agents to one another: texts, their locations, and delegation rules."""

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
