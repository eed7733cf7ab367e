"""The instructions that introduce agents to one another: texts, their locations, and delegation rules."""

from .compose import (
    HEADER,
    Composed,
    Fault,
    Pick,
    Rule,
    Rules,
    Selection,
    TextFile,
    TextFolders,
    compose,
    load_rules,
    placeholders,
)

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
