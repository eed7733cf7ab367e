"""The instructions that introduce agents to one another: texts, their locations, and delegation rules."""

from .compose import (
    HEADER,
    Composed,
    Fault,
    InstructionTexts,
    PickedRule,
    Rule,
    Rules,
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
    "InstructionTexts",
    "PickedRule",
    "Rule",
    "Rules",
    "TextFile",
    "TextFolders",
    "compose",
    "load_rules",
    "placeholders",
]
