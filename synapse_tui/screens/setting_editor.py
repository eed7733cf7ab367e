"""Changes one setting: a value that suits its kind, and the file that it is written to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from synapse_tui.errors import ConfigError
from synapse_tui.settings.files import (
    Entry,
    Layer,
    SettingsFiles,
    Survey,
    check_place,
    is_secret,
    read_lines,
    survey,
    value_lines,
    value_text,
)
from synapse_tui.settings.schema import TABLES
from synapse_tui.widgets.option_lists import Choices
from synapse_tui.widgets.setting_rows import layer_row

from .dialog import Dialog, label

BOOLEANS = ("true", "false")
LINES = frozenset({"list", "words", *TABLES})
"""Kinds that are edited as lines."""
HINTS = {
    "list": "one item a line",
    "words": "one item a line",
    "table": "one NAME = VALUE a line",
    "bindings": "one ACTION = KEY, leader KEY a line; docs/keys.md names the actions",
    "keys": "only hashes are kept; 'synapse auth setup' makes keys",
    "leader": "such as ctrl+] or f12",
    "file": "the name of a file in .synapse, or nothing",
    "number": "a whole number",
    "count": "a whole number, 0 or more",
}


class Marks(Choices):
    """A list of which one row is marked; Enter saves, a click only marks."""

    BINDINGS: ClassVar = [Binding("enter", "confirm", show=False)]

    class Confirmed(Message):
        """Enter was pressed."""

    def action_confirm(self) -> None:
        """Tell that the marked row is meant."""
        self.post_message(self.Confirmed())

    def action_select(self) -> None:
        """A click has marked the row: that is all."""


class SettingEditor(Dialog[str]):
    """Leaves with a sentence about what was written.

    Args:
        entry: The setting.
        now: All settings as they are.
        files: Gives the files as they are trusted now; called in a thread.
        before_write: Called right before a file is written.
    """

    SUBTITLE: ClassVar[str] = "Tab next field · Enter or ^S saves · Esc cancels"
    BOX_CLASSES: ClassVar[str] = "-setting"
    AUTO_FOCUS = "#value"
    BINDINGS: ClassVar = [Binding("ctrl+s", "save", show=False)]

    def __init__(
        self, entry: Entry, now: Survey, files: Callable[[], SettingsFiles], before_write: Callable[[], None]
    ) -> None:
        super().__init__()
        self._entry = entry
        self._survey = now
        self._files = files
        self._before_write = before_write
        self._places = now.places(entry.setting)
        self._first_text = ""

    @property
    def _choices(self) -> tuple[str, ...]:
        return BOOLEANS if self._entry.setting.kind == "boolean" else self._entry.setting.choices

    @property
    def _layer(self) -> Layer:
        """The file that is marked."""
        at = self.query_one("#layer", OptionList).highlighted
        return self._places[at if at is not None else 0]

    def title_text(self) -> str:
        """The title in the frame."""
        return self._entry.key

    def body(self) -> ComposeResult:
        """What it means, its value, and the files."""
        setting = self._entry.setting
        text = setting.help + (" Counts from the next start of the session." if setting.restart else "")
        yield Static(Content(text), classes="text -first", markup=False)
        hint = HINTS.get(setting.kind, "")
        yield label(f"Value ({hint})" if hint else "Value")
        yield self._field()
        yield label("Written to")
        yield Marks(*(Option("", id=layer) for layer in self._places), id="layer", markup=False, compact=True)
        yield Static("", id="obstacle", markup=False)

    def _field(self) -> Widget:
        setting, value = self._entry.setting, self._entry.value
        if self._choices:
            rows = [Option(Content(f" {choice}"), id=choice) for choice in self._choices]
            return Marks(*rows, id="value", markup=False, compact=True)
        if setting.kind in LINES:
            return TextArea("\n".join(value_lines(value)), id="value", compact=True)
        if is_secret(setting.key):
            there = value_text(setting, value) if value else "none"
            return Input(
                id="value", password=True, placeholder=f"{there}; type others in their place", compact=True
            )
        return Input(str(value), id="value", placeholder="nothing", compact=True)

    def buttons(self) -> ComposeResult:
        """Save, unset and cancel."""
        yield Button("Save", id="save", variant="primary", compact=True)
        yield Button("Unset", id="unset", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
        """Mark what holds now, and the file that it comes from."""
        value = self.query_one("#value")
        if isinstance(value, OptionList):
            now = value_text(self._entry.setting, self._entry.value)
            value.highlighted = self._choices.index(now) if now in self._choices else 0
        self._first_text = self._typed()
        best = self._entry.best_layer
        self.query_one("#layer", OptionList).highlighted = (
            self._places.index(best) if best in self._places else 0
        )
        self.call_after_refresh(self._draw)

    def on_resize(self) -> None:
        """Rows depend on the width."""
        self.call_after_refresh(self._draw)

    def show_survey(self, now: Survey) -> None:
        """The files are others than before: show what they say, and leave what is being typed."""
        entry = now.find(self._entry.key)
        if entry is not None:
            self._survey, self._entry = now, entry
            self._draw()

    def _draw(self) -> None:
        layers = self.query_one("#layer", OptionList)
        width = layers.content_size.width
        if width <= 0:
            return
        for layer in self._places:
            row = layer_row(self._entry, self._survey, layer, width)
            layers.replace_option_prompt(layer, row)
        self._show_obstacle()

    @on(OptionList.OptionHighlighted, "#layer")
    def _show_obstacle(self) -> None:
        layer = self._layer
        text = self._survey.obstacle(self._entry, layer)
        notice = self.query_one("#obstacle", Static)
        notice.update(Content.styled(f"▲ {text}" if text else "", "$state-waiting"))
        notice.display = bool(text)
        self.query_one("#unset", Button).display = layer in self._entry.given

    # The value

    @on(Input.Changed, "#value")
    @on(TextArea.Changed, "#value")
    def _changed(self) -> None:
        """Say at once when it is no value; but not of the one that stands there from the start."""
        if self._typed() == self._first_text:
            self.show_error("")
            return
        try:
            self._read()
        except ConfigError as error:
            self.show_error(error.message)
        else:
            self.show_error("")

    def _typed(self) -> str:
        """The text in the field; empty of a list."""
        field = self.query_one("#value")
        if isinstance(field, TextArea):
            return field.text
        return field.value if isinstance(field, Input) else ""

    def _read(self) -> object:
        """The value in the field, in the setting's kind.

        Raises:
            ConfigError: It is none.
        """
        setting, field = self._entry.setting, self.query_one("#value")
        try:
            if isinstance(field, OptionList):
                return setting.accept(self._choices[field.highlighted or 0])
            if isinstance(field, TextArea):
                return setting.accept(read_lines(setting, field.text))
            assert isinstance(field, Input)
            text = field.value if setting.kind == "text" else field.value.strip()
            if is_secret(setting.key) and not text:
                raise ValueError("is not changed by an empty field: Unset takes it away")
            return setting.accept(text)
        except ValueError as error:
            raise ConfigError(f"the value {error}", setting.help) from None

    # Saving

    @on(Input.Submitted, "#value")
    @on(Marks.Confirmed)
    def action_save(self) -> None:
        """Write the value."""
        try:
            value = self._read()
            check_place(self._entry.setting, self._layer)
        except ConfigError as error:
            self.show_error(error.message)
            return
        self._write(
            lambda layer, files: files.change(layer, lambda file: file.put(self._entry.key, value)).trouble
        )

    def _unset(self) -> None:
        key = self._entry.key
        self._write(lambda layer, files: files.change(layer, lambda file: file.remove(key)).trouble)

    def _write(self, change: Callable[[Layer, SettingsFiles], str]) -> None:
        layer, key = self._layer, self._entry.key

        def work() -> str:
            trouble = change(layer, self._files())
            now = survey(self._files())
            entry = now.find(key)
            assert entry is not None
            return _outcome(entry, now, layer, trouble)

        self._before_write()
        self.attempt(lambda: asyncio.to_thread(work))

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "save":
            self.action_save()
        elif event.button.id == "unset":
            self._unset()
        else:
            self.dismiss(None)


def _outcome(entry: Entry, now: Survey, layer: Layer, trouble: str) -> str:
    """What became of a change, in a sentence."""
    name = now.name(layer)
    if layer in entry.given:
        said = f"{entry.key} is {value_text(entry.setting, entry.given[layer])} in {name}"
    else:
        said = f"{entry.key} was taken out of {name}"
    obstacle = now.obstacle(entry, layer) if layer in entry.given else ""
    later = "it counts from the next start of the session" if entry.setting.restart and not obstacle else ""
    return "; ".join(part for part in (said, trouble, obstacle, later) if part)
