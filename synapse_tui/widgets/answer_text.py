"""A whole answer as Markdown; imported when the first one is shown, since its parser is not needed before."""

from __future__ import annotations

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from pygments.token import Token  # type: ignore[import-untyped]
from textual.content import Content
from textual.highlight import HighlightTheme, highlight
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownFence


class AnswerText(Markdown):
    """Renders what an agent wrote; keeps its line ends, and opens no links."""

    def __init__(self, text: str) -> None:
        super().__init__(text, parser_factory=_parser, open_links=False)

    def get_block_class(self, block_name: str) -> type[MarkdownBlock]:
        found = super().get_block_class(block_name)
        return _Code if found is MarkdownFence else found


class CodeColours(HighlightTheme):
    STYLES = {  # noqa: RUF012 - declared so by Textual
        Token: "$ink",
        Token.Comment: "$code-note",
        Token.Keyword: "$code-key",
        Token.Literal.Number: "$code-number",
        Token.Literal.String: "$code-text",
        Token.Name.Builtin: "$code-name",
        Token.Name.Class: "$code-name",
        Token.Name.Function: "$code-name",
    }


class _Code(MarkdownFence):
    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:  # noqa: ARG003
        return highlight(code, language=language or "text", theme=CodeColours)


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.push("line_ends", _keep_line_ends)
    return parser


def _keep_line_ends(state: StateCore) -> None:
    for token in state.tokens:
        for child in token.children or ():
            if child.type == "softbreak":
                child.type = "hardbreak"
