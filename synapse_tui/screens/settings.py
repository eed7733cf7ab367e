"""The settings screen: searchable settings with values and origins, and their editor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Button, Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from synapse_tui.errors import ConfigError
from synapse_tui.settings.files import (
    LAYER_WORDS,
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
from synapse_tui.settings.watch import FileWatch
from synapse_tui.widgets.fit import pad, shorten
from synapse_tui.widgets.option_lists import Choices, SearchInput
from synapse_tui.widgets.text import one_line, plural

from .appearance import Appearance
from .dialog import Dialog, EnterList, label
from .shell import Shell

ORIGIN_CELLS = max(map(len, LAYER_WORDS.values()))
KEY_PART, LEAST_KEY = 0.45, 10  # maximum share of a row and minimum cells for the keys
GAP = 2
MARK = "•"  # marks non-default settings, also without colours


def key_cells(entries: Iterable[Entry], width: int) -> int:
    widest = max((cell_len(entry.key) for entry in entries), default=0)
    return max(LEAST_KEY, min(widest, int(width * KEY_PART)))


def setting_row(entry: Entry, keys: int, width: int) -> Content:
    is_set = entry.origin != "default"
    values = max(0, width - keys - ORIGIN_CELLS - 2 * GAP - 3)
    value = one_line(value_text(entry.setting, entry.value))
    return Content.assemble(
        (f" {MARK if is_set else ' '} ", "bold $ink"),
        (pad(shorten(entry.key, keys, "middle"), keys), "$ink"),
        " " * GAP,
        (pad(value, values), "bold $ink" if is_set else "$muted"),
        " " * GAP,
        (pad(LAYER_WORDS[entry.origin], ORIGIN_CELLS), "$ink" if is_set else "$faint"),
    )


def heading_row(group: str) -> Content:
    return Content.styled(f" {group}", "bold $accent")


def about(entry: Entry, survey: Survey, width: int) -> Content:
    setting = entry.setting
    default = shorten(one_line(value_text(setting, setting.default)), width // 2)
    choices = f" · one of {', '.join(setting.choices)}" if setting.choices else ""
    room = width - cell_len(default) - len("default ")
    lines = [
        Content.styled(setting.help, "$ink"),
        Content.assemble(
            ("default ", "$faint"),
            (default, "$muted"),
            (shorten(choices, room) if room > 0 else "", "$faint"),
            (" · takes effect when the session restarts" if setting.restart else "", "$needs"),
        ),
        says(entry, survey),
    ]
    return Content("\n").join(lines)


def says(entry: Entry, survey: Survey) -> Content:
    parts: list[tuple[str, str]] = []
    if entry.origin == "environment":
        parts += [
            (f"${entry.variable} ", "$muted"),
            (value_text(entry.setting, entry.value), "bold $ink"),
        ]
    if entry.kept and entry.origin in survey.files:
        parts += [
            (f"{LAYER_WORDS[entry.origin]} ", "$muted"),
            (one_line(value_text(entry.setting, entry.value)), "bold $ink"),
            (f" unchanged: {entry.kept}", "$needs"),
        ]
    for layer, value in reversed(list(entry.given.items())):
        counts = entry.origin == layer and not entry.kept
        parts += [
            (" · " if parts else "", "$faint"),
            (f"{LAYER_WORDS[layer]} ", "$muted"),
            (one_line(value_text(entry.setting, value)), "bold $ink" if counts else "$faint strike"),
        ]
        if not survey.files[layer].trusted:
            parts.append((" (not trusted yet)", "$needs"))
    return Content.assemble(*parts) if parts else Content.styled("not set", "$faint")


def layer_row(entry: Entry, survey: Survey, layer: Layer, width: int) -> Content:
    path = survey.name(layer)
    now = value_text(entry.setting, entry.given[layer]) if layer in entry.given else "—"
    what = _WHOSE[layer]
    room = width - cell_len(what) - cell_len(path) - 6
    return Content.assemble(
        (f" {what}", "$ink"),
        (f"  {path}", "$muted"),
        (f"  {shorten(one_line(now), max(0, room))}", "$faint"),
    )


_WHOSE: dict[Layer, str] = {
    "user": "Your own file",
    "project": "Shared project file",
    "local": "Your project file",
}


def matching(entries: Sequence[Entry], query: str) -> list[Entry]:
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _text(entry) for word in words)]


def _text(entry: Entry) -> str:
    value = value_text(entry.setting, entry.value)
    parts = (entry.key, entry.setting.help, entry.group, value, LAYER_WORDS[entry.origin])
    return " ".join(parts).casefold()


FilesNow = Callable[[], SettingsFiles]
"""Returns the currently trusted files; called in a thread."""
MAX_PROBLEMS = 3  # maximum problems shown; another line counts the rest
READ_ONLY = "the settings cannot be changed here; use 'synapse config'"
THEME = "tui.theme"
BOOLEANS = ("true", "false")
LINES = frozenset({"list", "words", *TABLES})  # kinds that are edited as multiple lines
HINTS = {
    "list": "one item per line",
    "words": "one item per line",
    "table": "one NAME = VALUE per line",
    "bindings": "one ACTION = KEY, leader KEY per line; docs/keys.md lists the actions",
    "keys": "only hashes are stored; 'synapse auth setup' creates keys",
    "leader": "such as ctrl+] or f12",
    "hours": "such as 22:00-08:00",
    "file": "the name of a file in .synapse, or empty",
    "number": "a whole number",
    "count": "a whole number, 0 or more",
}


class SettingsActions:
    def __init__(self, app: Shell, appearance: Appearance) -> None:
        self._app = app
        self._appearance = appearance

    def action_settings(self) -> None:
        if self._app.settings_files is None:
            self._app.notice(READ_ONLY, "warning")
        else:
            self._app.push_screen(SettingsScreen(self._app.settings_files))

    def action_keep_theme(self, name: str) -> None:
        self._app.spawn(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        files = self._app.settings_files
        self._appearance.choose(name)
        if files is None:
            self._app.notice(f"colours: {name}")
            return

        def write() -> str:
            files().change("user", lambda file: file.put(THEME, name))
            now = survey(files())
            entry = now.find(THEME)
            return now.obstacle(entry, "user") if entry is not None else ""

        obstacle = await asyncio.to_thread(write)
        kept = f"for this session only: {obstacle}" if obstacle else "saved in ~/.synapse/settings.json"
        self._app.notice(f"colours: {name}, {kept}")


class SettingsScreen(Dialog[None]):
    """Lists the settings and opens an editor for the chosen one."""

    TITLE_TEXT: ClassVar[str] = "Settings"
    SUBTITLE: ClassVar[str] = "type to search · ↑↓ choose · Enter edits · Esc closes"
    BOX_CLASSES: ClassVar[str] = "-settings"
    AUTO_FOCUS = "#query"

    def __init__(self, files: FilesNow) -> None:
        super().__init__()
        self._files = files
        self._key = ""  # the last marked setting
        self._survey: Survey | None = None
        self._shown: list[Entry] = []
        self._watch: FileWatch | None = None
        self._written = ""  # the setting being written here, whose change is not reported

    def body(self) -> ComposeResult:
        yield SearchInput(id="query", placeholder="search names, meanings and values", compact=True)
        yield Static("", id="problems", markup=False)
        results = Choices(id="results", markup=False, compact=True)
        results.can_focus = False
        yield results
        yield Static("", id="about", markup=False)
        yield Static("", id="news", classes="faint", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button("Change", id="change", variant="primary", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.run_worker(self._begin(), exit_on_error=False)

    async def _begin(self) -> None:
        files = await asyncio.to_thread(self._files)
        paths = [*(files.path(layer) for layer in files.layers), files.paths.trusted]
        if self.is_mounted:
            self._watch = FileWatch(paths, self.show_news)
        await self._look()

    async def on_unmount(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    def show_news(self) -> None:
        self.run_worker(self._look(), exclusive=True, group="survey", exit_on_error=False)

    async def _look(self) -> None:
        before = self._survey
        self._survey = await asyncio.to_thread(lambda: survey(self._files()))
        if before is not None:
            self._show_changes(before, self._survey)
        self._fill()
        for screen in self.app.screen_stack:
            if isinstance(screen, SettingEditor) and screen.is_mounted:
                screen.show_survey(self._survey)

    def _show_changes(self, before: Survey, now: Survey) -> None:
        """Report settings that changed elsewhere while the screen was open."""
        known = {entry.key: entry.given for entry in before.entries}
        changed = [entry.key for entry in now.entries if known.get(entry.key, entry.given) != entry.given]
        others = [key for key in changed if key != self._written]
        if others:
            self._show_note(f"changed elsewhere just now: {', '.join(others)}")
        if self._written in changed:
            self._written = ""

    def _show_note(self, text: str) -> None:
        news = self.query_one("#news", Static)
        news.update(Content(one_line(text)))
        news.display = bool(text)

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    @on(Input.Changed, "#query")
    def _searched(self) -> None:
        self._fill()

    def _fill(self) -> None:
        view = self.query_one("#results", OptionList)
        width = view.size.width - 1
        if self._survey is None or width <= 0:
            return
        marked = self._marked()
        key = marked.key if marked is not None else self._key
        self._show_problems()
        self._shown = matching(self._survey.entries, self.query_one("#query", Input).value)
        keys, group = key_cells(self._survey.entries, width), ""
        rows: list[Option] = []
        for entry in self._shown:
            if entry.group != group:
                group = entry.group
                rows.append(Option(heading_row(group), disabled=True))
            rows.append(Option(setting_row(entry, keys, width), id=entry.key))
        view.clear_options()
        view.add_options(rows or [Option(Content(" no matching settings"), disabled=True)])
        ids = [row.id for row in rows]
        if rows:
            view.highlighted = ids.index(key) if key in ids else 1
        else:
            self.query_one("#about", Static).update("")

    def _show_problems(self) -> None:
        assert self._survey is not None
        problems = self._survey.problems
        lines = [f"▲ {one_line(self._survey.shorter(each.message))}" for each in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            lines.append(f"  and {plural(len(problems) - MAX_PROBLEMS, 'more problem')}")
        label = self.query_one("#problems", Static)
        label.update(Content.styled("\n".join(lines), "$needs"))
        label.display = bool(lines)

    def _marked(self) -> Entry | None:
        option = self.query_one("#results", OptionList).highlighted_option
        key = option.id if option is not None else None
        return next((entry for entry in self._shown if entry.key == key), None)

    @on(OptionList.OptionHighlighted, "#results")
    def _highlighted(self) -> None:
        entry = self._marked()
        if entry is not None and self._survey is not None:
            label = self.query_one("#about", Static)
            label.update(about(entry, self._survey, label.content_size.width))

    @on(OptionList.OptionSelected, "#results")
    @on(Input.Submitted, "#query")
    def _chosen(self) -> None:
        entry = self._marked()
        if entry is not None and self._survey is not None:
            self._key = entry.key
            editor = SettingEditor(entry, self._survey, self._files, self._wrote)
            self.app.push_screen(editor, self._edited)

    def _wrote(self) -> None:
        self._written = self._key

    def _edited(self, said: str | None) -> None:
        if said:
            self._show_note(said)
            self.show_news()

    def action_leave(self) -> None:
        query = self.query_one("#query", Input)
        if query.value:
            query.value = ""
        else:
            self.dismiss(None)

    def pressed(self, button: str) -> None:
        if button == "change":
            self._chosen()
        else:
            self.dismiss(None)


class SettingEditor(Dialog[str]):
    """Edits a setting; closes with a summary of what was written."""

    SUBTITLE: ClassVar[str] = "Tab next field · Enter or ^S saves · Esc cancels"
    BOX_CLASSES: ClassVar[str] = "-setting"
    AUTO_FOCUS = "#value"
    BINDINGS: ClassVar = [("ctrl+s", "save")]

    def __init__(
        self, entry: Entry, now: Survey, files: Callable[[], SettingsFiles], before_write: Callable[[], None]
    ) -> None:
        super().__init__(entry.key)
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
        at = self.query_one("#layer", OptionList).highlighted
        return self._places[at if at is not None else 0]

    def body(self) -> ComposeResult:
        setting = self._entry.setting
        text = setting.help + (" Takes effect when the session restarts." if setting.restart else "")
        yield Static(Content(text), classes="text -first", markup=False)
        hint = HINTS.get(setting.kind, "")
        yield label(f"Value ({hint})" if hint else "Value")
        yield self._field()
        yield label("Save to")
        yield EnterList(
            *(Option("", id=layer) for layer in self._places), id="layer", markup=False, compact=True
        )
        yield Static("", id="obstacle", markup=False)

    def _field(self) -> Widget:
        setting, value = self._entry.setting, self._entry.value
        if self._choices:
            rows = [Option(Content(f" {choice}"), id=choice) for choice in self._choices]
            return EnterList(*rows, id="value", markup=False, compact=True)
        if setting.kind in LINES:
            return TextArea("\n".join(value_lines(value)), id="value", compact=True)
        if is_secret(setting.key):
            there = value_text(setting, value) if value else "none"
            return Input(id="value", password=True, placeholder=f"{there}; type to replace", compact=True)
        return Input(str(value), id="value", placeholder="empty", compact=True)

    def buttons(self) -> ComposeResult:
        yield Button("Save", id="save", variant="primary", compact=True)
        yield Button("Unset", id="unset", compact=True)
        yield Button("Cancel", id="cancel", compact=True)

    def on_mount(self) -> None:
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
        self.call_after_refresh(self._draw)

    def show_survey(self, now: Survey) -> None:
        """Show changed files without disturbing the text being typed."""
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
        notice.update(Content.styled(f"▲ {text}" if text else "", "$needs"))
        notice.display = bool(text)
        self.query_one("#unset", Button).display = layer in self._entry.given

    # The value

    @on(Input.Changed, "#value")
    @on(TextArea.Changed, "#value")
    def _changed(self) -> None:
        """Validate the text as it is typed, except for the original one."""
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
        field = self.query_one("#value")
        if isinstance(field, TextArea):
            return field.text
        return field.value if isinstance(field, Input) else ""

    def _read(self) -> object:
        setting, field = self._entry.setting, self.query_one("#value")
        try:
            if isinstance(field, OptionList):
                return setting.accept(self._choices[field.highlighted or 0])
            if isinstance(field, TextArea):
                return setting.accept(read_lines(setting, field.text))
            assert isinstance(field, Input)
            text = field.value if setting.kind == "text" else field.value.strip()
            if is_secret(setting.key) and not text:
                raise ValueError("must not be empty: Unset removes it")
            return setting.accept(text)
        except ValueError as error:
            raise ConfigError(f"the value {error}", setting.help) from None

    # Saving

    @on(Input.Submitted, "#value")
    @on(EnterList.Confirmed)
    def action_save(self) -> None:
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

    def pressed(self, button: str) -> None:
        if button == "save":
            self.action_save()
        elif button == "unset":
            self._unset()
        else:
            self.dismiss(None)


def _outcome(entry: Entry, now: Survey, layer: Layer, trouble: str) -> str:
    name = now.name(layer)
    if layer in entry.given:
        said = f"{entry.key} is {value_text(entry.setting, entry.given[layer])} in {name}"
    else:
        said = f"{entry.key} was removed from {name}"
    obstacle = now.obstacle(entry, layer) if layer in entry.given else ""
    later = "it takes effect when the session restarts" if entry.setting.restart and not obstacle else ""
    return "; ".join(part for part in (said, trouble, obstacle, later) if part)
