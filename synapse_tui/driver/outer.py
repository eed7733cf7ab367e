"""What the outer terminal told about itself: its colours, its protocols, its name."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

Color = tuple[int, int, int]
Subject = Literal["color", "clipboard", "attributes", "mode", "kitty", "scheme", "version", "unknown"]

_OSC = re.compile(rb"\x1b\](?P<number>\d+);(?P<body>.*?)(?:\x07|\x1b\\)", re.DOTALL)
_CSI = re.compile(rb"\x1b\[(?P<prefix>[?>=]?)(?P<params>[\d;]*)(?P<final>\$?[a-zA-Z])")
_VERSION = re.compile(rb"\x1bP>\|(?P<text>.*?)\x1b\\", re.DOTALL)
_RGB = re.compile(r"rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})(?:/[0-9a-fA-F]{1,4})?")
_HEX = re.compile(r"#([0-9a-fA-F]{2})([0-9a-fA-F]{2})([0-9a-fA-F]{2})")


@dataclass(slots=True)
class OuterTerminal:
    """What is known of the terminal that the application runs in.

    Attributes:
        foreground: Its default text colour (OSC 10); None when unknown; so on.
        background: Its default background (OSC 11).
        cursor: The colour of its cursor (OSC 12).
        palette: Those of its palette colours that it told (OSC 4).
        scheme_dark: Whether it said that its colour scheme is dark (`CSI ? 997 n`).
        kitty_flags: Its kitty keyboard flags at the start; None when it does not know the protocol.
        modes: State of its private modes as DECRPM gives it: 1 set, 2 reset, 3 and 4 for ever so, 0 unknown.
        last_mode: The mode that it told last.
        attributes: Its primary device attributes (DA1); empty until it answered.
        version: Its name and version (XTVERSION).
        clipboard: The text of its clipboard when it was last asked (OSC 52).
    """

    foreground: Color | None = None
    background: Color | None = None
    cursor: Color | None = None
    palette: dict[int, Color] = field(default_factory=dict)
    scheme_dark: bool | None = None
    kitty_flags: int | None = None
    modes: dict[int, int] = field(default_factory=dict)
    last_mode: int = 0
    attributes: tuple[int, ...] = ()
    version: str = ""
    clipboard: str = ""

    @property
    def dark(self) -> bool | None:
        """Whether it shows light text on a dark ground; None when it told nothing of it."""
        if self.scheme_dark is not None or self.background is None:
            return self.scheme_dark
        red, green, blue = self.background
        return red * 299 + green * 587 + blue * 114 < 128_000  # brightness as in ITU-R BT.601

    def settable(self, mode: int) -> bool:
        """Whether a private mode is known to it and may be set."""
        return self.modes.get(mode, 0) in {1, 2}

    def take(self, reply: bytes) -> Subject:
        """Learn from a reply.

        Args:
            reply: A whole one, as the tokenizer gives it.

        Returns:
            What it was about.
        """
        if match := _OSC.fullmatch(reply):
            return self._take_osc(int(match["number"]), match["body"].decode("utf-8", "replace"))
        if match := _VERSION.fullmatch(reply):
            self.version = match["text"].decode("utf-8", "replace")
            return "version"
        if match := _CSI.fullmatch(reply):
            numbers = [int(number or 0) for number in match["params"].decode().split(";")]
            handler = _CSI_HANDLERS.get((match["prefix"] + match["final"]).decode())
            return handler(self, numbers) if handler else "unknown"
        return "unknown"

    def _take_osc(self, number: int, body: str) -> Subject:
        if number == 52:
            self.clipboard = _decode_clipboard(body.partition(";")[2])
            return "clipboard"
        if number == 4:
            index, _, body = body.partition(";")
            color = parse_color(body)
            if color and index.isdecimal():
                self.palette[int(index)] = color
            return "color" if color else "unknown"
        name = _COLOR_NAMES.get(number)
        color = parse_color(body) if name else None
        if name is None or color is None:
            return "unknown"
        setattr(self, name, color)
        return "color"

    def _take_attributes(self, numbers: list[int]) -> Subject:
        self.attributes = tuple(numbers)
        return "attributes"

    def _take_mode(self, numbers: list[int]) -> Subject:
        if len(numbers) == 2:
            self.last_mode = numbers[0]
            self.modes[numbers[0]] = numbers[1]
        return "mode"

    def _take_kitty(self, numbers: list[int]) -> Subject:
        self.kitty_flags = numbers[0]
        return "kitty"

    def _take_scheme(self, numbers: list[int]) -> Subject:
        if numbers[0] != 997 or len(numbers) != 2:
            return "unknown"
        self.scheme_dark = numbers[1] == 1
        return "scheme"


_COLOR_NAMES: Final = {10: "foreground", 11: "background", 12: "cursor"}
_CSI_HANDLERS: Final[dict[str, Callable[[OuterTerminal, list[int]], Subject]]] = {
    "?c": OuterTerminal._take_attributes,
    "?$y": OuterTerminal._take_mode,
    "?u": OuterTerminal._take_kitty,
    "?n": OuterTerminal._take_scheme,
}


def parse_color(text: str) -> Color | None:
    """A colour as terminals tell it: `rgb:` with 1 to 4 digits a part (XParseColor), or `#rrggbb`.

    Returns:
        Red, green and blue from 0 to 255; None when it is written otherwise.
    """
    if match := _RGB.fullmatch(text):
        red, green, blue = (round(int(part, 16) * 255 / (16 ** len(part) - 1)) for part in match.groups())
        return red, green, blue
    if match := _HEX.fullmatch(text):
        red, green, blue = (int(part, 16) for part in match.groups())
        return red, green, blue
    return None


def _decode_clipboard(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
