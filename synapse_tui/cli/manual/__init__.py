"""The manual: what the help of each command says beside its text and options.

It is loaded only when help is printed. Every example is tried against the commands by a test.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import agents, application, files, messages, settings
from .page import MEANINGS, Page

PAGES: Mapping[str, Page] = MappingProxyType(
    messages.PAGES | agents.PAGES | files.PAGES | settings.PAGES | application.PAGES
)
"""All pages, by the words by which a command is called."""
_EMPTY = Page({})

__all__ = ["MEANINGS", "PAGES", "Page", "page_of"]


def page_of(words: str) -> Page:
    """The page of a command, such as `synapse history list`; an empty one where there is none."""
    return PAGES.get(words, _EMPTY)
