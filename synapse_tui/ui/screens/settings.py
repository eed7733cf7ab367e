"""The settings screen: areas, their settings as sentences, and the editor of the chosen one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar

from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input, OptionList, Static, TextArea
from textual.widgets.option_list import Option

from synapse_tui.core.errors import ConfigError
from synapse_tui.settings.file_watch import FileWatch
from synapse_tui.settings.files import (
    LAYER_WORDS,
    Layer,
    SettingEntry,
    SettingsFile,
    SettingsFiles,
    Survey,
    check_place,
    is_secret,
    read_lines,
    survey,
    value_lines,
    value_text,
)
from synapse_tui.settings.schema import AREAS, NOTHING, TABLES, Setting, words_for
from synapse_tui.system.language import tr
from synapse_tui.widgets import bars
from synapse_tui.widgets.agent_rows import BESIDE
from synapse_tui.widgets.fit import Hint, Piece, line, pad, shorten, width_of
from synapse_tui.widgets.option_lists import Choices, Menu, SearchInput
from synapse_tui.widgets.segment_bar import HintBar
from synapse_tui.widgets.text import one_line, plural
from synapse_tui.widgets.theme_preview import ThemePreview

from .appearance import Appearance
from .dialog import Dialog, EnterList, label
from .shell import Shell

ALL = tr("All, by name")
LAYER_CELLS = max(map(cell_len, LAYER_WORDS.values()))
LEAST_VALUE = 8  # cells left for a value before its sentence is shortened


def sentence_row(entry: SettingEntry, width: int, *, chosen: bool, by_name: bool, boxed: bool) -> Content:
    """Return a setting as a sentence, or `by_name`; beneath, its origin, and its key once, if it is chosen.

    `boxed` puts the value into brackets, where its background cannot be seen.
    """
    before, value, after = entry.words
    if by_name:
        before, value, after = entry.key, value_words(entry.setting, entry.value), ""
    sign = " ▾" if options_of(entry) else ""
    mark = [] if entry.origin == "default" else [Piece(" •", "$faint")]
    room = width - sum(map(cell_len, (before, after, sign))) - width_of(mark) - 6 - 2 * bool(after)
    text = f"{shorten(one_line(value), max(LEAST_VALUE, room))}{sign}"
    chip = f"[{text}]" if boxed else f" {text} "
    first = [
        Piece("▌ " if chosen else "  ", "$accent"),
        Piece(f"{before}  " if before else "", "bold $ink" if chosen else "$ink", cut="end"),
        Piece(chip, "bold $accent-ink on $accent" if chosen and not boxed else "bold $ink on $raised"),
        Piece(f"  {after}" if after else "", "bold $ink" if chosen else "$ink", cut="end"),
    ]
    origin = LAYER_WORDS[entry.origin]
    source = origin if by_name else f"{entry.key}   {origin}"
    second = [Piece(f"  {source}" if chosen else "", "$faint", cut="end")]
    return Content("\n").join([line(width, first, mark), line(width, second)])


def value_words(setting: Setting, value: object) -> str:
    text = value_text(setting, value)
    return tr(text) if text == NOTHING else text


def options_of(entry: SettingEntry) -> tuple[str, ...]:
    """Return the values to choose from; empty if the value is typed."""
    return BOOLEANS if entry.setting.kind == "boolean" else entry.setting.choices


def option_row(entry: SettingEntry, value: str) -> Content:
    now = value == value_text(entry.setting, entry.value)
    words = entry.setting.around(value)[1]
    return Content.assemble(
        (" ● " if now else " ○ ", "$accent" if now else "$faint"),
        (words, "bold $ink" if now else "$ink"),
        (f"  {value}" if words != value else "", "$faint"),
    )


def about(entry: SettingEntry, survey: Survey) -> Content:
    setting = entry.setting
    default = one_line(value_words(setting, setting.default))
    hint = HINTS.get(setting.kind, "")
    lines = [
        Content.styled(tr(setting.help).replace("`", ""), "$ink"),
        *([Content.styled(hint, "$faint")] if hint else []),
        Content.assemble(
            (tr(f"default {default}"), "$faint"),
            (f" · {_later(survey)}" if setting.restart else "", "$needs"),
        ),
        *([says(entry, survey)] if entry.given or entry.origin != "default" else []),
    ]
    return Content("\n").join(lines)


def _later(survey: Survey) -> str:
    """Say when a setting counts that needs a restart."""
    return (
        tr("has no effect in the demo") if survey.demo else tr("takes effect here when the session restarts")
    )


def problem_lines(survey: Survey) -> list[str]:
    problems = survey.problems
    lines = [f"▲ {one_line(survey.shorter(tr(problem.message)))}" for problem in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        lines.append(tr(f"  and {plural(len(problems) - MAX_PROBLEMS, 'more problem')}"))
    return lines


def says(entry: SettingEntry, survey: Survey) -> Content:
    parts: list[tuple[str, str]] = []
    if entry.origin in ("environment", "now"):
        giver = f"${entry.variable}" if entry.origin == "environment" else LAYER_WORDS["now"]
        parts += [
            (f"{giver} ", "$muted"),
            (value_words(entry.setting, entry.value), "bold $ink"),
        ]
    if entry.kept and entry.origin in survey.files:
        parts += [
            (f"{LAYER_WORDS[entry.origin]} ", "$muted"),
            (one_line(value_words(entry.setting, entry.value)), "bold $ink"),
            (tr(f" unchanged: {entry.kept}"), "$needs"),
        ]
    for layer, value in reversed(list(entry.given.items())):
        counts = entry.origin == layer and not entry.kept
        parts += [
            (" · " if parts else "", "$faint"),
            (f"{LAYER_WORDS[layer]} ", "$muted"),
            (one_line(value_words(entry.setting, value)), "bold $ink" if counts else "$faint strike"),
        ]
        if not survey.files[layer].trusted:
            parts.append((tr(" (not trusted yet)"), "$needs"))
    return Content.assemble(*parts)


def layer_row(entry: SettingEntry, survey: Survey, layer: Layer, width: int, *, chosen: bool) -> Content:
    """Return a file to keep a setting in, and what it says; of a long path the end is shown."""
    now = one_line(value_words(entry.setting, entry.given[layer])) if layer in entry.given else ""
    tail = f"  {shorten(now, max(LEAST_VALUE, width // 3))}" if now else ""
    room = max(LEAST_VALUE, width - LAYER_CELLS - 6 - cell_len(tail))
    return Content.assemble(
        (" ● " if chosen else " ○ ", "$accent" if chosen else "$faint"),
        (pad(LAYER_WORDS[layer], LAYER_CELLS), "bold $ink" if chosen else "$ink"),
        (f"  {shorten(survey.name(layer), room, 'start')}", "$faint"),
        (tail, "$muted"),
    )


def matching(entries: Sequence[SettingEntry], query: str) -> list[SettingEntry]:
    words = query.casefold().split()
    return [entry for entry in entries if all(word in _text(entry) for word in words)]


def _text(entry: SettingEntry) -> str:
    value = value_text(entry.setting, entry.value)
    sentence = " ".join(entry.words)
    parts = (
        *(entry.key, tr(entry.setting.help), tr(entry.setting.area), sentence, value),
        *(*entry.setting.choices, LAYER_WORDS[entry.origin]),
    )
    return " ".join(parts).casefold()


FilesNow = Callable[[], SettingsFiles]
"""Returns the currently trusted files; called in a thread."""
MAX_PROBLEMS = 3  # maximum problems shown; another line counts the rest
READ_ONLY = tr("the settings cannot be changed here; use 'synapse config'")
THEME = "tui.theme"
BOOLEANS = ("true", "false")
LINES = frozenset({"list", "words", *TABLES})  # kinds that are edited as multiple lines
HINTS = {
    "list": tr("one item per line"),
    "words": tr("one item per line"),
    "table": tr("one NAME = VALUE per line"),
    "bindings": tr("one ACTION = KEY, leader KEY per line; docs/keys.md lists the actions"),
    "keys": tr("only hashes are stored; 'synapse auth setup' creates keys"),
    "leader": tr("such as ctrl+] or f12"),
    "hours": tr("such as 22:00-08:00"),
    "file": tr("the name of a file in .synapse, or empty"),
    "number": tr("a whole number"),
    "count": tr("a whole number, 0 or more"),
}
BROWSING = (
    *(Hint("↑↓", "choose"), Hint("Enter", "change", "change"), Hint("Del", "unset", "unset")),
    *(Hint("Tab", "next area", "area(1)"), Hint("/", "find", "find"), Hint("Esc", "close", "leave")),
)
EDITING = (
    Hint("Enter", "keep", "keep"),
    Hint("Tab", "where", "app.focus_next"),
    Hint("Esc", "as it was", "leave"),
)
LINES_EDITING = (Hint("^S", "keep", "keep"), *EDITING[1:])
FINDING = (Hint("Enter", "choose", "change"), Hint("Esc", "show all", "leave"))


class SettingsActions:
    def __init__(self, app: Shell, appearance: Appearance) -> None:
        self._app = app
        self._appearance = appearance

    def action_settings(self) -> None:
        if self._app.settings_files is None:
            self._app.notice(READ_ONLY, "warning")
        else:
            screen = SettingsScreen(self._app.settings_files, self._appearance, demo=self._app.is_demo)
            self._app.push_screen(screen)

    def action_keep_theme(self, name: str) -> None:
        self._app.spawn(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        files = self._app.settings_files
        self._appearance.choose(name)
        if files is None:
            self._app.notice(f"colours: {words_for(THEME, name)}")
            return

        def write() -> str:
            files().change("user", lambda file: file.put(THEME, name))
            now = survey(files())
            entry = now.find(THEME)
            return now.obstacle(entry, "user") if entry is not None else ""

        obstacle = await asyncio.to_thread(write)
        if obstacle:
            kept = tr(f"for this session only: {obstacle}")
        elif self._app.is_demo:
            kept = tr("until the demo ends")
        else:
            kept = tr("saved in ~/.synapse/settings.json")
        self._app.notice(f"colours: {words_for(THEME, name)}, {kept}")


class SettingsHints(HintBar):
    EDGE = 2


class Headings(Choices, can_focus=False):
    """The headings of settings; a click shows one."""


class Sentences(Choices):
    """The settings of an area."""

    BINDINGS: ClassVar = [
        ("tab", "screen.area(1)"),
        ("shift+tab", "screen.area(-1)"),
        ("right", "select"),
        ("delete,backspace", "screen.unset"),
        ("slash", "screen.find"),
    ]


class SettingsScreen(Dialog[None]):
    """Shows settings as sentences, an area at a time, and edits the chosen one beside them."""

    AUTO_FOCUS = "#results"
    BINDINGS: ClassVar = [("ctrl+s", "keep")]

    def __init__(self, files: FilesNow, appearance: Appearance, *, demo: bool = False) -> None:
        super().__init__()
        self._demo = demo
        self._files = files
        self._appearance = appearance
        self._area: str = AREAS[0]
        self._survey: Survey | None = None
        self._shown: list[SettingEntry] = []
        self._entry: SettingEntry | None = None  # the one in the editor
        self._places: list[Layer] = ["user"]
        self._first_text = ""
        self._watch: FileWatch | None = None
        self._note_expiry: Timer | None = None
        self._written = ""  # the setting being written here, whose change is not reported

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -full"):
            with Horizontal(id="top"):
                heading = tr("Settings of the demo, which end with it") if self._demo else tr("Settings")
                yield Static(Content(f"  {heading}"), classes="title")
                yield SearchInput(id="query", placeholder=tr("find names, meanings and values"), compact=True)
            yield Static("", id="problems", markup=False)
            with Horizontal(id="columns"):
                rows = (Option(name, id=name) for name in self._areas)
                yield Headings(*rows, id="areas", markup=False, compact=True)
                yield Sentences(id="results", markup=False, compact=True)
                with VerticalScroll(id="editor", can_focus=False):
                    yield Static("", id="sentence", markup=False)
                    yield Menu(id="choices", markup=False, compact=True)
                    yield ThemePreview()
                    yield Input(id="value", compact=True)
                    yield TextArea(id="lines", placeholder=tr("empty"), compact=True)
                    yield Static("", classes="error", markup=False)
                    yield Static("", id="about", markup=False)
                    yield label(tr("Kept in"), name="kept")
                    yield EnterList(id="layer", markup=False, compact=True)
                    yield Static("", id="obstacle", markup=False)
            yield Static("", id="news", classes="faint", markup=False)
            yield SettingsHints(id="hints")

    @property
    def _areas(self) -> tuple[str, ...]:
        return (*AREAS, ALL)

    def on_mount(self) -> None:
        self.query_one("#query").display = False
        self.run_worker(self._begin(), exit_on_error=False)

    async def _begin(self) -> None:
        files = await asyncio.to_thread(self._files)
        paths = [*(files.path(layer) for layer in files.layers), files.paths.trusted]
        if self.is_mounted:
            self._watch = FileWatch(paths, self.show_news)
        await self._look()

    async def on_unmount(self) -> None:
        self._appearance.try_theme("")
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    # The files

    def show_news(self) -> None:
        self.run_latest(self._look, "survey")

    async def _look(self) -> None:
        before = self._survey
        self._survey = self._as_shown(await asyncio.to_thread(lambda: survey(self._files())))
        if before is not None:
            self._show_changes(before, self._survey)
        self._fill()

    def _as_shown(self, now: Survey) -> Survey:
        theme = self._appearance.for_now
        now = replace(now, demo=self._demo)
        return now.with_now(THEME, theme) if theme is not None else now

    def _show_changes(self, before: Survey, now: Survey) -> None:
        """Report settings that changed elsewhere while the screen was open."""
        known = {entry.key: entry.given for entry in before.entries}
        changed = [entry.key for entry in now.entries if known.get(entry.key, entry.given) != entry.given]
        others = [key for key in changed if key != self._written]
        if others:
            self._show_note(tr(f"changed elsewhere just now: {', '.join(others)}"))
        if self._written in changed:
            self._written = ""

    def _show_note(self, text: str) -> None:
        """Show a note for some seconds, or until something else is opened; an empty one ends it."""
        if self._note_expiry is not None:
            self._note_expiry.stop()
        news = self.query_one("#news", Static)
        news.update(Content(f"  {one_line(text)}" if text else ""))
        news.display = bool(text)
        self._note_expiry = self.set_timer(bars.NOTICE_SECONDS, lambda: self._show_note("")) if text else None

    def _show_problems(self, now: Survey) -> None:
        lines = problem_lines(now)
        notice = self.query_one("#problems", Static)
        notice.update(Content.styled("\n".join(lines), "$needs"))
        notice.display = bool(lines)

    # Areas and sentences

    def on_resize(self) -> None:
        self.call_after_refresh(self._fill)

    def on_descendant_focus(self) -> None:
        self._arrange()
        if not self.editing:
            self._undo()

    @property
    def editing(self) -> bool:
        return self.focused is not None and self.query_one("#editor") in self.focused.ancestors

    @property
    def _query(self) -> str:
        return self.query_one("#query", Input).value.strip()

    def _arrange(self) -> None:
        """Show what there is room for: the editor takes the place of the sentences on narrow screens."""
        narrow, editing = self.size.width < BESIDE, self.editing
        for name, shown in (("areas", not (narrow and editing)), ("results", not (narrow and editing))):
            self.query_one(f"#{name}").display = shown
        self.query_one("#editor").display = editing or not narrow
        self._show_keys()

    def _show_keys(self) -> None:
        entry = self._entry
        given = entry is not None and self._layer in entry.given
        keys: Sequence[Hint] = [hint for hint in BROWSING if given or hint.target != "unset"]
        if self.focused is self.query_one("#query"):
            keys = FINDING
        elif self.editing:
            keys = LINES_EDITING if entry is not None and entry.setting.kind in LINES else EDITING
        self.query_one(SettingsHints).shown = keys

    @on(Input.Changed, "#query")
    def _searched(self) -> None:
        self._fill()

    def _fill(self) -> None:
        view, now = self.query_one("#results", OptionList), self._survey
        self._arrange()
        if now is None:
            return
        self._show_problems(now)
        self._fill_areas()
        marked = self._marked()
        if self._query:
            self._shown = matching(now.entries, self._query)
        elif self._area == ALL:
            self._shown = sorted(now.entries, key=lambda entry: entry.key)
        else:
            self._shown = [entry for entry in now.entries if entry.setting.area == self._area]
        view.clear_options()
        view.add_options(Option(self._row(entry, chosen=False), id=entry.key) for entry in self._shown)
        if not self._shown:
            view.add_option(Option(Content(tr("  no matching settings")), disabled=True))
        keys = [entry.key for entry in self._shown]
        if keys:
            view.highlighted = keys.index(marked.key) if marked is not None and marked.key in keys else 0
        self._highlighted()

    def _fill_areas(self) -> None:
        areas = self.query_one("#areas", OptionList)
        for name in self._areas:
            chosen = name == self._area and not self._query
            row = (("▌ ", "$accent"), (tr(name), "bold $ink")) if chosen else ("  ", (tr(name), "$muted"))
            areas.replace_option_prompt(name, Content.assemble(*row))

    def _row(self, entry: SettingEntry, *, chosen: bool) -> Content:
        width = self.query_one("#results").scrollable_content_region.width
        by_name = self._area == ALL and not self._query
        return sentence_row(entry, max(width, 20), chosen=chosen, by_name=by_name, boxed=self._boxed)

    @property
    def _boxed(self) -> bool:
        variables = self.app.theme_variables
        return self.app.no_color or variables["raised"] == variables["panel"]

    def _marked(self) -> SettingEntry | None:
        option = self.query_one("#results", OptionList).highlighted_option
        key = option.id if option is not None else None
        return next((entry for entry in self._shown if entry.key == key), None)

    @on(OptionList.OptionHighlighted, "#results")
    def _highlighted(self) -> None:
        """Show the marked setting in the editor, unless another one is being edited."""
        view, entry = self.query_one("#results", OptionList), self._marked()
        if self.editing and self._entry is not None and self._survey is not None:
            self._entry = self._survey.find(self._entry.key) or self._entry
            self._show_places()
        elif entry is not None:
            self._show(entry)
        for each in self._shown:
            view.replace_option_prompt(each.key, self._row(each, chosen=each is entry))

    @on(OptionList.OptionSelected, "#areas")
    def _area_clicked(self, event: OptionList.OptionSelected) -> None:
        self._show_area(event.option.id or ALL)

    def action_area(self, step: int) -> None:
        self._show_area(self._areas[(self._areas.index(self._area) + step) % len(self._areas)])

    def _show_area(self, name: str) -> None:
        self._stop_editing()
        self._area = name
        self._end_search()
        self.query_one("#results", OptionList).highlighted = None
        self._fill()

    def action_find(self) -> None:
        self._stop_editing()
        query = self.query_one("#query", Input)
        query.display = True
        query.focus()

    def _end_search(self) -> None:
        query = self.query_one("#query", Input)
        self.query_one("#results").focus()
        query.value = ""
        query.display = False

    # The editor

    @property
    def _field(self) -> Widget:
        assert self._entry is not None
        if options_of(self._entry):
            return self.query_one("#choices")
        return self.query_one("#lines" if self._entry.setting.kind in LINES else "#value")

    @property
    def _layer(self) -> Layer:
        at = self.query_one("#layer", OptionList).highlighted
        return self._places[at if at is not None else 0]

    def _show(self, entry: SettingEntry) -> None:
        assert self._survey is not None
        self._entry, setting, value = entry, entry.setting, entry.value
        field = self._field
        for each in self.query("#choices, #value, #lines"):
            each.display = each is field
        if isinstance(field, OptionList):
            self._fill_choices(entry, field)
        elif isinstance(field, TextArea):
            field.text = "\n".join(value_lines(value))
        elif isinstance(field, Input):
            secret = is_secret(setting.key)
            there = value_words(setting, value)
            field.password = secret
            field.placeholder = tr(f"{there}; type to replace") if secret else tr("empty")
            field.value = "" if secret else str(value)
        self._first_text = self._typed()
        self.show_error("")
        self._places = self._survey.places(setting)
        best = entry.best_layer
        layers = self.query_one("#layer", OptionList)
        layers.clear_options()
        layers.add_options(Option("", id=layer) for layer in self._places)
        layers.highlighted = self._places.index(best) if best in self._places else 0
        self.query_one(ThemePreview).display = setting.key == THEME
        self._show_places()
        self.call_after_refresh(self._show_places)  # in the width that it then has

    def _fill_choices(self, entry: SettingEntry, field: OptionList) -> None:
        values = options_of(entry)
        field.clear_options()
        field.add_options(Option(option_row(entry, value), id=value) for value in values)
        now = value_text(entry.setting, entry.value)
        field.highlighted = values.index(now) if now in values else 0

    def _show_places(self) -> None:
        entry, now = self._entry, self._survey
        assert entry is not None
        assert now is not None
        layers = self.query_one("#layer", OptionList)
        for layer in self._places:
            width = layers.scrollable_content_region.width or self.size.width
            row = layer_row(entry, now, layer, width, chosen=layer == self._layer)
            layers.replace_option_prompt(layer, row)
        before, value, after = entry.words
        chip = Content.styled(f" {shorten(one_line(value), 40)} ", "bold $ink on $raised")
        sentence = Content.assemble((f"{before}  ", "bold $ink"), chip, (f"  {after}", "bold $ink"))
        self.query_one("#sentence", Static).update(sentence)
        self.query_one("#sentence").display = self.size.width < BESIDE
        self.query_one("#about", Static).update(about(entry, now))

        self._show_obstacle(entry, now)
        self._show_keys()

    @on(OptionList.OptionHighlighted, "#layer")
    def _place_marked(self) -> None:
        if self._entry is not None:
            self._show_places()

    def _show_obstacle(self, entry: SettingEntry, now: Survey) -> None:
        text = now.obstacle(entry, self._layer)
        notice = self.query_one("#obstacle", Static)
        notice.update(Content.styled(f"▲ {text}" if text else "", "$needs"))
        notice.display = bool(text)

    @on(OptionList.OptionSelected, "#results")
    @on(Input.Submitted, "#query")
    def action_change(self) -> None:
        entry = self._marked()
        if entry is None:
            return
        if entry is not self._entry:
            self._show(entry)
        self._show_note("")
        self.query_one("#editor").display = True
        self._field.focus()

    def _stop_editing(self) -> None:
        if self.editing:
            self.query_one("#results").display = True
            self.query_one("#results").focus()
        self._undo()

    def _undo(self) -> None:
        """Show the value and the theme in use again."""
        self._appearance.try_theme("")
        if self._entry is not None and self._survey is not None:
            self._show(self._entry)

    @on(OptionList.OptionHighlighted, "#choices")
    def _try(self, event: OptionList.OptionHighlighted) -> None:
        if self._entry is not None and self._entry.key == THEME and event.option_list.has_focus:
            self._appearance.try_theme(event.option.id or "")

    @on(Input.Changed, "#value")
    @on(TextArea.Changed, "#lines")
    def _changed(self) -> None:
        """Validate the text as it is typed, except for the original one."""
        error = ""
        if self._entry is not None and self._typed() != self._first_text:
            try:
                self._read(self._entry)
            except ConfigError as found:
                error = found.message
        self.show_error(error)

    def _typed(self) -> str:
        field = self._field
        if isinstance(field, TextArea):
            return field.text
        return field.value if isinstance(field, Input) else ""

    def _read(self, entry: SettingEntry) -> object:
        setting, field = entry.setting, self._field
        try:
            if isinstance(field, OptionList):
                return setting.accept(options_of(entry)[field.highlighted or 0])
            if isinstance(field, TextArea):
                return setting.accept(read_lines(setting, field.text))
            assert isinstance(field, Input)
            text = field.value if setting.kind == "text" else field.value.strip()
            if is_secret(setting.key) and not text:
                raise ValueError("must not be empty: Del removes it")
            return setting.accept(text)
        except ValueError as error:
            raise ConfigError(f"the value {error}", tr(setting.help)) from None

    # Writing

    @on(OptionList.OptionSelected, "#choices")
    @on(Input.Submitted, "#value")
    @on(EnterList.Confirmed)
    def action_keep(self) -> None:
        entry = self._entry
        if entry is None or not self.editing:
            return
        try:
            value = self._read(entry)
            check_place(entry.setting, self._layer)
        except ConfigError as error:
            self.show_error(error.message)
            return
        self._write(entry, lambda file: file.put(entry.key, value))

    def action_unset(self) -> None:
        entry = self._entry
        if entry is not None and self._layer in entry.given:
            self._write(entry, lambda file: file.remove(entry.key))

    def _write(self, entry: SettingEntry, change: Callable[[SettingsFile], object]) -> None:
        if not self.busy:
            self.busy = True
            self._written = entry.key
            self.run_worker(self._work(entry, self._layer, change), exit_on_error=False)

    async def _work(
        self, entry: SettingEntry, layer: Layer, change: Callable[[SettingsFile], object]
    ) -> None:
        def work() -> tuple[Survey, str]:
            trouble = self._files().change(layer, change).trouble
            return survey(self._files()), trouble

        try:
            now, trouble = await asyncio.to_thread(work)
        except ConfigError as error:
            self.show_error(error)
        else:
            written = now.find(entry.key)
            assert written is not None
            if entry.key == THEME:
                self._appearance.choose(str(written.value))
            self._survey = now = self._as_shown(now)
            self._entry = written
            self._stop_editing()
            self._show_note(_outcome(written, now, layer, trouble))
            self._fill()
        finally:
            self.busy = False
            self._become_ready()

    def action_leave(self) -> None:
        if self.editing:
            self._stop_editing()
        elif self.query_one("#query").display:
            self._end_search()
        else:
            self.dismiss(None)

    @on(SettingsHints.Pressed)
    async def _hint_clicked(self, event: SettingsHints.Pressed) -> None:
        event.stop()
        await self.run_action(event.target)


def _outcome(entry: SettingEntry, now: Survey, layer: Layer, trouble: str) -> str:
    name = now.name(layer)
    if layer in entry.given:
        said = tr(f"{entry.key} is {value_words(entry.setting, entry.given[layer])} in {name}")
    else:
        said = tr(f"{entry.key} was removed from {name}")
    obstacle = now.obstacle(entry, layer) if layer in entry.given else ""
    later = _later(now) if entry.setting.restart and not obstacle else ""
    return "; ".join(part for part in (said, trouble, obstacle, later) if part)
