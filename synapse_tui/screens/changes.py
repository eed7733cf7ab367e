"""The changes of an agent: files and hunks, the forecast of conflicts, and merging a worktree."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.errors import SynapseError
from synapse_tui.language import tr
from synapse_tui.widgets.fit import pad, shorten
from synapse_tui.widgets.option_lists import Check, Choices
from synapse_tui.widgets.text import plural, printable
from synapse_tui.worktrees.changes import Changes, FileDiff, read_changes
from synapse_tui.worktrees.merge import Conflict, Merged, merge
from synapse_tui.worktrees.trees import Repository

from .dialog import Dialog, Form, label
from .shell import Shell

WIDE = 110  # width from which the hunks are beside the files
MOST_LINES = 2000  # lines of a file's changes that are shown
_STYLES = {"+": "$add on $add-ground", "-": "$del on $del-ground", "@": "$accent", "\\": "$faint"}


class ChangesActions:
    def __init__(self, app: Shell) -> None:
        self._app = app
        self._host = app.host

    def action_changes(self, agent_id: str = "") -> None:
        main = self._app.main
        session = self._host.agents.get(agent_id or main.active)
        if session is None:
            self._app.notice("no agent is open", "warning")
            return
        folder, name = session.cwd, self._app.label(session.agent_id)

        async def read() -> Changes:
            return await asyncio.to_thread(read_changes, folder, os.environ)

        async def merge_it(commit: str, *, squash: bool) -> str:
            return await self._merge(session.agent_id, folder, commit, squash=squash)

        self._app.ask(ChangesView(name, read, merge_it), self._app.notice)

    async def _merge(self, agent_id: str, folder: Path, commit: str, *, squash: bool) -> str:
        """Merge an agent's worktree, or have the agent resolve conflicts; return what came of it."""

        def work() -> Merged | None:
            repository = Repository(folder, os.environ)
            tree = repository.tree_at(folder)
            return None if tree is None else merge(repository, tree, squash=squash, commit=commit)

        done = await asyncio.to_thread(work)
        name = self._app.label(agent_id)
        if done is None:
            return tr(f"{name} has no worktree")
        if done.conflicts:
            files = ", ".join(done.conflicts)
            text = (
                f"{done.onto} was merged into your worktree and conflicts in {files}. Resolve the conflicts "
                "and commit; do not abort or reset the merge."
            )
            await self._host.send(agent_id, text)
            return tr(f"{name} was asked to resolve conflicts in {files}; merge again afterwards")
        if not done.commit:
            return tr(f"{done.onto} has all of {name} already")
        return tr(f"{done.onto} has the work of {name} now")


class ChangesView(Dialog[str]):
    """Lists the changed files and shows the hunks of one; the result is what came of merging."""

    BOX_CLASSES: ClassVar[str] = "-full"
    SUBTITLE: ClassVar[str] = "↑↓ file · Space, b scroll · r reads again · Esc closes"
    AUTO_FOCUS = "#files"
    BINDINGS: ClassVar = [
        ("m", "merge"),
        ("r", "read"),
        ("space,pagedown", "scroll(1)"),
        ("b,pageup", "scroll(-1)"),
        ("q", "leave"),
    ]

    def __init__(
        self,
        name: str,
        read: Callable[[], Awaitable[Changes]],
        merge_it: Callable[..., Awaitable[str]],
    ) -> None:
        super().__init__(tr(f"Changes of {name}"))
        self._name_of_agent = name
        self._read = read
        self._merge = merge_it
        self._changes: Changes | None = None

    def body(self) -> ComposeResult:
        yield Static("", id="about", markup=False)
        with Horizontal(id="panes"):
            yield Choices(id="files", markup=False, compact=True)
            with VerticalScroll(id="hunks", can_focus=False):
                yield Static("", id="hunk", markup=False)

    def buttons(self) -> ComposeResult:
        yield Button(tr("Merge (m)"), id="merge", compact=True)
        yield from super().buttons()

    def pressed(self, button: str) -> None:
        if button == "merge":
            self.action_merge()
        else:
            self.dismiss(None)

    def on_mount(self) -> None:
        self.query_one("#merge", Button).display = False
        self.action_read()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-beside")
        self.call_after_refresh(self._show_files)

    def action_read(self) -> None:
        self.run_worker(self._look(), exclusive=True, exit_on_error=False, group="changes")

    async def _look(self) -> None:
        self.query_one("#about", Static).update(Content.styled(tr("reading…"), "$muted"))
        try:
            self._changes = await self._read()
        except SynapseError as error:
            self._changes = None
            self.show_error(error)
        else:
            self.show_error("")
        self._show_files()

    def _show_files(self) -> None:
        changes, files = self._changes, self.query_one("#files", OptionList)
        marked = files.highlighted or 0
        files.clear_options()
        self.query_one("#about", Static).update(about(changes) if changes is not None else Content(""))
        self.query_one("#merge", Button).display = changes is not None and changes.tree is not None
        width = files.content_size.width - 1
        if changes is not None and width > 0:
            files.add_options([Option(_row(file, width)) for file in changes.files])
            files.highlighted = min(marked, len(changes.files) - 1) if changes.files else None
        self._show_hunks()

    @on(OptionList.OptionHighlighted, "#files")
    def _show_hunks(self) -> None:
        place = self.query_one("#files", OptionList).highlighted
        shown = self._changes.files[place] if self._changes is not None and place is not None else None
        self.query_one("#hunk", Static).update(hunks(shown) if shown is not None else Content(""))
        self.query_one("#hunks", VerticalScroll).scroll_home(animate=False)

    def action_scroll(self, pages: int) -> None:
        view = self.query_one("#hunks", VerticalScroll)
        view.scroll_relative(y=pages * max(view.size.height - 2, 1), animate=False)

    def action_merge(self) -> None:
        changes = self._changes
        if changes is None or changes.tree is None:
            self.show_error("only a worktree can be merged")
            return

        def merged(text: str | None) -> None:
            if text is not None:
                self.dismiss(text)

        form = MergeForm(self._name_of_agent, changes.tree.onto, self._merge, commits=changes.uncommitted > 0)
        self.app.push_screen(form, merged)


class MergeForm(Form[str]):
    VERB: ClassVar[str] = "Merge"
    SUBTITLE: ClassVar[str] = "Enter merges · Tab next field · Esc cancels"
    AUTO_FOCUS = "Input, Checkbox"

    def __init__(
        self, name: str, onto: str, merge_it: Callable[..., Awaitable[str]], *, commits: bool
    ) -> None:
        super().__init__(tr(f"Merge {name} into {onto}"))
        self._name_of_agent = name
        self._merge = merge_it
        self._commits = commits

    def body(self) -> ComposeResult:
        if self._commits:
            yield label(tr("What is uncommitted is committed as"))
            yield Input(tr(f"Work of {self._name_of_agent}"), id="commit", compact=True)
        yield Check(tr("As one commit"), id="squash", compact=True)

    def submit(self) -> None:
        commit = self.value("commit") if self._commits else ""
        if self._commits and not commit:
            self.show_error("enter a message for the commit")
            return
        squash = self.query_one(Check).value
        self.attempt(lambda: self._merge(commit, squash=squash))


def about(changes: Changes) -> Content:
    """Return the lines above the files: branch, counts, and the forecast."""
    tree, files = changes.tree, changes.files
    where = (
        tr("in the project's folder") if tree is None else f"{tree.branch} → {tree.onto or tree.base[:12]}"
    )
    counts = [plural(len(files), "file") if files else tr("nothing has changed")]
    if files:
        counts.append(f"+{sum(file.added for file in files)} −{sum(file.removed for file in files)}")
    if tree is not None and changes.uncommitted:
        counts.append(tr(f"{changes.uncommitted} not committed"))
    parts = [(where, "$muted"), ("  " + " · ".join(counts), "$ink")]
    name = tree.name if tree is not None else ""
    parts += [(f"\n▲ {_forecast(conflict, name)}", "$needs") for conflict in changes.conflicts]
    return Content.assemble(*parts)


def _forecast(conflict: Conflict, name: str) -> str:
    other = conflict.other if conflict.one == name else conflict.one
    if conflict.files is None:
        return tr("conflicts cannot be foreseen: git is older than 2.38")
    return tr(f"will conflict with {other} in {printable(', '.join(conflict.files))}")


def _row(file: FileDiff, width: int) -> Content:
    counts = f" +{file.added}", f" −{file.removed}"
    room = max(width - sum(map(len, counts)) - 1, 8)
    path = pad(shorten(printable(file.path), room, "start"), room)
    return Content.assemble((f" {path}", "$ink"), (counts[0], "$add"), (counts[1], "$del"))


def hunks(file: FileDiff) -> Content:
    """Return the hunks of a file, coloured by what each line does."""
    lines = [
        (printable(line).replace("\t", "    ") + "\n", _STYLES.get(line[:1], "$ink"))
        for line in file.lines[:MOST_LINES]
    ]
    left = len(file.lines) - len(lines)
    more = [(tr(f"and {left} more"), "$faint")] if left > 0 else []
    return Content.assemble(*lines, *more)
