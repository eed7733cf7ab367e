"""The settings screen: all settings with values and origins, found by typing, changed by Enter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.settings.files import Entry, SettingsFiles, Survey, survey
from synapse_tui.settings.watch import FileWatch
from synapse_tui.widgets.option_lists import Choices, SearchInput
from synapse_tui.widgets.setting_rows import about, heading_row, key_cells, matching, setting_row
from synapse_tui.widgets.text import one_line, plural

from .dialog import Dialog
from .setting_editor import SettingEditor

FilesNow = Callable[[], SettingsFiles]
MAX_PROBLEMS = 3
"""How many problems are told; the line below says how many more there are."""


class SettingsScreen(Dialog[None]):
    """Lists the settings, and opens an editor for the chosen one.

    Args:
        files: Gives the files as they are trusted now; called in a thread.
    """

    TITLE_TEXT: ClassVar[str] = "Settings"
    SUBTITLE: ClassVar[str] = "type to find · ↑↓ choose · Enter changes · Esc closes"
    BOX_CLASSES: ClassVar[str] = "-settings"
    AUTO_FOCUS = "#query"

    def __init__(self, files: FilesNow) -> None:
        super().__init__()
        self._files = files
        self._key = ""
        """The setting that was marked last."""
        self._survey: Survey | None = None
        self._shown: list[Entry] = []
        self._watch: FileWatch | None = None
        self._written = ""
        """The setting that is being written here: that it changes is no news."""

    def body(self) -> ComposeResult:
        """The search, the settings, and what is told of the marked one."""
        yield SearchInput(id="query", placeholder="a part of a name, a meaning or a value", compact=True)
        yield Static("", id="problems", markup=False)
        results = Choices(id="results", markup=False, compact=True)
        results.can_focus = False
        yield results
        yield Static("", id="about", markup=False)
        yield Static("", id="news", classes="faint", markup=False)

    def buttons(self) -> ComposeResult:
        """Change and close."""
        yield Button("Change", id="change", variant="primary", compact=True)
        yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        """Look, and again whenever a file changes."""
        self.run_worker(self._begin(), exit_on_error=False)

    async def _begin(self) -> None:
        files = await asyncio.to_thread(self._files)
        paths = [*(files.path(layer) for layer in files.layers), files.paths.trusted]
        if self.is_mounted:
            self._watch = FileWatch(paths, self.show_news)
        await self._look()

    async def on_unmount(self) -> None:
        """Watch no more."""
        watch, self._watch = self._watch, None
        if watch is not None:
            await watch.close()

    def show_news(self) -> None:
        """Look again."""
        self.run_worker(self._look(), exclusive=True, group="survey", exit_on_error=False)

    async def _look(self) -> None:
        before = self._survey
        self._survey = await asyncio.to_thread(lambda: survey(self._files()))
        if before is not None:
            self._tell_changes(before, self._survey)
        self._fill()
        for screen in self.app.screen_stack:
            if isinstance(screen, SettingEditor) and screen.is_mounted:
                screen.show_survey(self._survey)

    def _tell_changes(self, before: Survey, now: Survey) -> None:
        """Say what somebody else has changed while the screen was open."""
        known = {entry.key: entry.given for entry in before.entries}
        changed = [entry.key for entry in now.entries if known.get(entry.key, entry.given) != entry.given]
        others = [key for key in changed if key != self._written]
        if others:
            self._say(f"changed outside just now: {', '.join(others)}")
        if self._written in changed:
            self._written = ""

    def _say(self, text: str) -> None:
        news = self.query_one("#news", Static)
        news.update(Content(one_line(text)))
        news.display = bool(text)

    def on_resize(self) -> None:
        """Rows depend on the width."""
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
        view.add_options(rows or [Option(Content(" no setting is called that"), disabled=True)])
        ids = [row.id for row in rows]
        if rows:
            view.highlighted = ids.index(key) if key in ids else 1
        else:
            self.query_one("#about", Static).update("")

    def _show_problems(self) -> None:
        assert self._survey is not None
        problems = self._survey.problems
        told = [f"▲ {one_line(self._survey.shorter(each.message))}" for each in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            told.append(f"  and {plural(len(problems) - MAX_PROBLEMS, 'more problem')}")
        label = self.query_one("#problems", Static)
        label.update(Content.styled("\n".join(told), "$state-waiting"))
        label.display = bool(told)

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
        """The editor is about to write."""
        self._written = self._key

    def _edited(self, said: str | None) -> None:
        if said:
            self._say(said)
            self.show_news()

    def action_leave(self) -> None:
        """Take the search away, or else leave."""
        query = self.query_one("#query", Input)
        if query.value:
            query.value = ""
        else:
            self.dismiss(None)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        if event.button.id == "change":
            self._chosen()
        else:
            self.dismiss(None)
