"""The changes of an agent: files, hunks, remarks on lines, the forecast, and what becomes of it all."""

from __future__ import annotations

import asyncio
import functools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

from rich.cells import cell_len
from textual import events, on
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Button, Input, OptionList, Static
from textual.widgets.option_list import Option

from synapse_tui.agents.worktrees import keep, merge
from synapse_tui.agents.worktrees.changes import FileDiff, FolderChanges, read_changes
from synapse_tui.agents.worktrees.trees import Repository, Worktree
from synapse_tui.core.errors import HistoryError, SynapseError
from synapse_tui.core.locks import ModificationQuery
from synapse_tui.system.language import name_list, tr
from synapse_tui.widgets.agent_rows import changed_columns
from synapse_tui.widgets.fit import pad, shorten, width_of
from synapse_tui.widgets.option_lists import Check, Choices
from synapse_tui.widgets.text import code_line, plural, printable
from synapse_tui.widgets.views import party

from .dialog import Confirm, Dialog, Form, label
from .shell import Shell

WIDE = 110  # width from which the hunks are beside the files
MOST_LINES = 2000  # lines of a file's changes that are shown
MOST_WRITTEN = 500  # of the last writes that hooks reported, to say who has changed a file
MOST_COLOURED = 300  # lines of them that have the colours of their language: a few milliseconds
_STYLES = {"+": "$add on $add-ground", "-": "$del on $del-ground", "@": "$accent", "\\": "$faint"}
_GROUNDS = {"+": "on $add-ground", "-": "on $del-ground"}
Result = TypeVar("Result")
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)")


class Remark(NamedTuple):
    """What a person says of a line.

    Attributes:
        path: The file.
        number: The number of the line in the file as it is now, or of the one that followed a removed line.
        line: The line, with its sign.
        text: The remark.
    """

    path: str
    number: int
    line: str
    text: str


class ChangesActions:
    def __init__(self, app: Shell) -> None:
        self._app = app
        self._host = app.host
        self._reviews: dict[str, Review] = {}

    def action_changes(self, agent_id: str = "") -> None:
        main = self._app.main
        session = self._host.agents.get(agent_id or main.active)
        if session is None:
            self._app.notice(main.no_agent(), "warning", still=lambda: not main.agents)
            return
        agent_id = session.agent_id
        self._reviews = {key: review for key, review in self._reviews.items() if key in self._host.agents}
        review = self._reviews.get(agent_id)
        if review is None or review.folder != session.cwd:
            review = self._reviews[agent_id] = Review(self._app, agent_id, session.cwd)
        self._app.ask(ChangesView(review), self._app.notice)


class Review:
    """What an agent has changed, and what a person does with it; remarks stay until they are sent."""

    def __init__(self, app: Shell, agent_id: str, folder: Path) -> None:
        self._app = app
        self._name = app.label(agent_id)
        self._host = app.host
        self._agent_id = agent_id
        self.folder = folder
        self.remarks: list[Remark] = []
        self.writers: dict[str, str] = {}
        """Who has written a file of a shared folder, as far as hooks report it, by its path."""

    @property
    def name(self) -> str:
        if self._agent_id in self._host.agents:
            self._name = self._app.label(self._agent_id)
        return self._name

    async def read(self) -> FolderChanges:
        changes = await asyncio.to_thread(read_changes, self.folder, os.environ)
        self.writers = await self._find_writers(changes.top) if changes.tree is None else {}
        return changes

    async def _find_writers(self, top: Path) -> dict[str, str]:
        safety, labels = self._host.safety, self._app.labels()
        if not safety.enabled:
            return {}
        try:
            found = await safety.changes(ModificationQuery(limit=MOST_WRITTEN))
        except HistoryError:
            return {}
        writers: dict[str, list[str]] = {}
        for each in found:
            path = safety.keys.path(each.file)
            if path.is_relative_to(top):
                writers.setdefault(path.relative_to(top).as_posix(), []).append(party(each.agent_id, labels))
        return {path: name_list(dict.fromkeys(names)) for path, names in writers.items()}

    async def commit(self, message: str) -> str:
        done = await self._in_tree(lambda repository, tree: merge.commit(repository, tree, message))
        return (
            tr(f"the work of {self.name} is committed") if done else tr(f"{self.name} has nothing to commit")
        )

    async def merge(self, commit: str, *, squash: bool) -> str:
        """Merge the worktree, or have the agent resolve conflicts; return what came of it."""
        done = await self._in_tree(
            lambda repository, tree: merge.merge(repository, tree, squash=squash, commit=commit)
        )
        if done is None:
            return tr(f"{self.name} has no worktree")
        if done.conflicts:
            files = merge.listed(done.conflicts)
            await self._host.send(self._agent_id, done.request)
            return tr(f"{self.name} was asked to resolve conflicts in {files}; merge again afterwards")
        if not done.commit:
            return tr(f"{done.onto} has all of {self.name} already")
        return tr(f"{done.onto} has the work of {self.name} now")

    async def discard(self) -> str:
        """Close the agent, and remove its worktree and branch; all of it is kept."""
        name = self.name
        if self._agent_id in self._host.agents:  # not if a program of another kept its worktree
            await self._host.close(self._agent_id)
        kept = await self._in_tree(lambda repository, tree: keep.remove(repository, tree, "discarded"))
        if kept is None:
            return tr(f"{name} has no worktree")
        return tr(
            f"the worktree of {name} is discarded; 'synapse worktree keep --restore {kept.name}' undoes it"
        )

    async def _in_tree(self, work: Callable[[Repository, Worktree], Result]) -> Result | None:
        def find() -> Result | None:
            repository = Repository(self.folder, os.environ)
            tree = repository.tree_at(self.folder)
            return None if tree is None else work(repository, tree)

        return await asyncio.to_thread(find)

    def remark(self, remark: Remark) -> None:
        """Note what is said of a line in place of what was said of it before; nothing if it is empty."""
        others = [each for each in self.remarks if each[:3] != remark[:3]]
        self.remarks = [*others, remark] if remark.text else others

    async def send(self) -> str:
        """Send all remarks as one message."""
        said = sorted(self.remarks, key=lambda each: (each.path, each.number))
        parts = [f"{each.path}:{each.number}\n> {each.line}\n{each.text}" for each in said]
        await self._host.send(self._agent_id, "\n\n".join(["Remarks on your changes:", *parts]))
        self.remarks = []
        return tr(f"{plural(len(said), 'remark')} sent to {self.name}")


class ChangesView(Dialog[str]):
    """Lists the changed files and shows the hunks of one; the result is what came of it."""

    BOX_CLASSES: ClassVar[str] = "-full"
    AUTO_FOCUS = "#files"
    BINDINGS: ClassVar = [
        ("m", "merge"),
        ("c", "commit"),
        ("D", "discard"),
        ("s", "send"),
        ("r", "read"),
        ("space,pagedown", "scroll(1)"),
        ("b,pageup", "scroll(-1)"),
        ("q", "leave"),
    ]

    def __init__(self, review: Review) -> None:
        super().__init__(tr(f"Changes in the folder of {review.name}"))
        self._review = review
        self._changes: FolderChanges | None = None
        self._lines: list[Remark] = []  # of the shown rows, without what is said of them

    def subtitle(self) -> str:
        if self._changes is None or not self._changes.files:
            return tr("r reads again · Esc closes")
        if self.query_one("#hunks").has_focus:
            return tr("↑↓ line · Tab next field · Enter remark · r reads again · Esc closes")
        if self.query_one("#files").has_focus:
            return tr("↑↓ file · Tab lines · r reads again · Esc closes")
        return tr("Tab next field · Enter presses it · r reads again · Esc closes")

    def body(self) -> ComposeResult:
        yield Static("", id="about", markup=False)
        with Horizontal(id="panes"):
            yield Choices(id="files", markup=False, compact=True)
            yield Choices(id="hunks", markup=False, compact=True)

    def buttons(self) -> ComposeResult:
        yield Button("", id="send", compact=True)
        yield Button(tr("Merge (m)"), id="merge", compact=True)
        yield Button(tr("Commit (c)"), id="commit", compact=True)
        yield Button(tr("Discard (D)"), id="discard", compact=True)
        yield from super().buttons()

    def pressed(self, button: str) -> None:
        actions = {
            "send": self.action_send,
            "merge": self.action_merge,
            "commit": self.action_commit,
            "discard": self.action_discard,
        }
        actions.get(button, self.action_leave)()

    def on_mount(self) -> None:
        self._show_buttons()
        self.action_read()

    def on_resize(self, event: events.Resize) -> None:
        self.set_class(event.size.width >= WIDE, "-beside")
        self.call_after_refresh(self._show_files)

    def action_read(self) -> None:
        self.run_latest(self._look, "changes")

    async def _look(self) -> None:
        self.query_one("#about", Static).update(Content.styled(tr("reading…"), "$muted"))
        try:
            self._changes = await self._review.read()
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
        self._subtitle(self.subtitle())
        self.query_one("#about", Static).update(about(changes) if changes is not None else Content(""))
        self._show_buttons()
        width = files.content_size.width - 1
        if changes is not None and width > 0:
            rows = [_row(file, width, self._review.writers.get(file.path, "")) for file in changes.files]
            files.add_options(map(Option, rows))
            files.highlighted = min(marked, len(changes.files) - 1) if changes.files else None
        self._show_hunks()

    def _show_buttons(self) -> None:
        tree = self._tree
        for name in ("merge", "discard"):
            self.query_one(f"#{name}", Button).display = tree is not None
        uncommitted = tree is not None and self._changes is not None and self._changes.uncommitted > 0
        self.query_one("#commit", Button).display = uncommitted
        send, count = self.query_one("#send", Button), len(self._review.remarks)
        send.display = count > 0
        send.label = tr(f"Send {plural(count, 'remark')} (s)")

    @property
    def _shown(self) -> FileDiff | None:
        place = self.query_one("#files", OptionList).highlighted
        return self._changes.files[place] if self._changes is not None and place is not None else None

    @on(OptionList.OptionHighlighted, "#files")
    def _show_hunks(self) -> None:
        view, file = self.query_one("#hunks", OptionList), self._shown
        view.clear_options()
        self._lines = []
        if file is None:
            return
        said = {remark[:3]: remark.text for remark in self._review.remarks}
        rows = hunks(file)
        for line, row in zip(numbered(file), rows, strict=False):
            self._add(line, row)
            if text := said.get(line[:3]):
                self._add(
                    line, Content.styled(f"  ╰ {printable(text)} · {tr('not sent yet')}", "italic $accent")
                )
        left = len(file.lines) - len(rows)
        if left > 0:
            view.add_option(Option(Content.styled(tr(f"and {left} more"), "$faint"), disabled=True))
        view.highlighted = None
        view.scroll_home(animate=False)

    def _add(self, line: Remark, row: Content) -> None:
        self._lines.append(line)
        self.query_one("#hunks", OptionList).add_option(Option(row))

    @on(events.DescendantFocus)
    def _mark_a_line(self) -> None:
        view = self.query_one("#hunks", OptionList)
        if view.has_focus and view.highlighted is None and self._lines:
            view.highlighted = 0
        if not self.busy:
            self._subtitle(self.subtitle())

    @on(OptionList.OptionSelected, "#hunks")
    def _remark(self, event: OptionList.OptionSelected) -> None:
        line = self._lines[event.option_index]
        before = next((remark.text for remark in self._review.remarks if remark[:3] == line[:3]), "")

        def said(text: str | None) -> None:
            if text is not None:
                self._review.remark(line._replace(text=text))
                self._show_buttons()
                self._show_hunks()
                view = self.query_one("#hunks", OptionList)
                view.highlighted = min(event.option_index, len(self._lines) - 1)

        self.app.push_screen(RemarkForm(line, before), said)

    def action_scroll(self, pages: int) -> None:
        view = self.query_one("#hunks", OptionList)
        view.scroll_relative(y=pages * max(view.size.height - 2, 1), animate=False)

    def action_send(self) -> None:
        if self._review.remarks:
            self.attempt(self._review.send)

    def action_merge(self) -> None:
        if self._tree is None:
            self.show_error("only a worktree can be merged")
            return
        uncommitted = self._changes is not None and self._changes.uncommitted > 0
        self._then_leave(MergeForm(self._review, self._tree.onto, commits=uncommitted))

    def action_commit(self) -> None:
        if self._tree is None:
            self.show_error("work can be committed only in a worktree")
            return
        self._then_leave(CommitForm(self._review))

    def action_discard(self) -> None:
        tree = self._tree
        if tree is None:
            self.show_error("only a worktree can be discarded")
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.attempt(self._review.discard)

        text = tr(
            f"{self._review.name} is closed, and its worktree and the branch {tree.own_branch} are removed. "
            "All that they hold is kept for 30 days."
        )
        title = tr(f"Discard the work of {self._review.name}?")
        self.app.push_screen(Confirm(title, text, tr("Discard it")), answered)

    @property
    def _tree(self) -> Worktree | None:
        return self._changes.tree if self._changes is not None else None

    def _then_leave(self, form: Form[str]) -> None:
        def done(text: str | None) -> None:
            if text is not None:
                self.dismiss(text)

        self.app.push_screen(form, done)


class RemarkForm(Form[str]):
    VERB: ClassVar[str] = "Note"
    SUBTITLE: ClassVar[str] = "Enter notes it · Esc cancels"

    def __init__(self, line: Remark, text: str) -> None:
        super().__init__(tr(f"{code_line(line.path)}, line {line.number}"))
        self._line = line
        self._text = text

    def body(self) -> ComposeResult:
        yield Static(Content(code_line(self._line.line)), classes="text", markup=False)
        yield Input(self._text, id="remark", compact=True)

    def submit(self) -> None:
        self.dismiss(self.value("remark"))


class CommitForm(Form[str]):
    VERB: ClassVar[str] = "Commit"
    SUBTITLE: ClassVar[str] = "Enter commits · Esc cancels"

    def __init__(self, review: Review) -> None:
        super().__init__(tr(f"Commit the work of {review.name}"))
        self._review = review

    def body(self) -> ComposeResult:
        yield label(tr("What is uncommitted is committed as"))
        yield Input(tr(f"Work of {self._review.name}"), id="commit", compact=True)

    def submit(self) -> None:
        message = self.value("commit")
        if message:
            self.attempt(lambda: self._review.commit(message))
        else:
            self.show_error("enter a message for the commit")


class MergeForm(Form[str]):
    VERB: ClassVar[str] = "Merge"
    SUBTITLE: ClassVar[str] = "Enter merges · Tab next field · Esc cancels"
    AUTO_FOCUS = "Input, Checkbox"

    def __init__(self, review: Review, onto: str, *, commits: bool) -> None:
        super().__init__(tr(f"Merge {review.name} into {onto}"))
        self._review = review
        self._commits = commits

    def body(self) -> ComposeResult:
        if self._commits:
            yield label(tr("What is uncommitted is committed as"))
            yield Input(tr(f"Work of {self._review.name}"), id="commit", compact=True)
        yield Check(tr("As one commit"), id="squash", compact=True)

    def submit(self) -> None:
        commit = self.value("commit") if self._commits else ""
        if self._commits and not commit:
            self.show_error("enter a message for the commit")
            return
        squash = self.query_one(Check).value
        self.attempt(lambda: self._review.merge(commit, squash=squash))


def about(changes: FolderChanges) -> Content:
    """Return the lines above the files: branch, counts, and the forecast."""
    tree, files = changes.tree, changes.files
    where = tr("the project's folder") if tree is None else f"{tree.branch} → {tree.onto or tree.base[:12]}"
    counts = [plural(len(files), "file") if files else tr("nothing has changed")]
    if files:
        both = changed_columns(sum(file.added for file in files), sum(file.removed for file in files))
        counts += filter(None, [" ".join("".join(piece.text for piece in both).split())])
    if tree is not None and changes.uncommitted:
        counts.append(tr(f"{changes.uncommitted} not committed"))
    parts = [(where, "$muted"), ("  " + " · ".join(counts), "$ink")]
    name = tree.name if tree is not None else ""
    if changes.busy:
        text = tr(f"in the middle of a {changes.busy}: merge again once the agent has ended it")
        parts.append((f"\n▲ {text}", "$needs"))
    parts += [(f"\n▲ {_forecast(conflict, name)}", "$needs") for conflict in changes.conflicts]
    return Content.assemble(*parts)


def _forecast(conflict: merge.Conflict, name: str) -> str:
    other = conflict.other if conflict.one == name else conflict.one
    if conflict.files is None:
        return tr("conflicts cannot be foreseen: git is older than 2.38")
    return tr(f"will conflict with {other} in {code_line(', '.join(conflict.files))}")


def _row(file: FileDiff, width: int, writers: str = "") -> Content:
    counts = changed_columns(file.added, file.removed)
    room = max(width - width_of(counts) - 1, 8)
    who = f"  {shorten(writers, room // 2)}" if writers else ""
    room -= cell_len(who)
    path = pad(shorten(code_line(file.path), room, "start"), room)
    return Content.assemble(
        (f" {path}", "$ink"), (who, "$muted"), *((piece.text, piece.style) for piece in counts)
    )


def numbered(file: FileDiff) -> Iterator[Remark]:
    """Yield the lines of a file's hunks with their numbers."""
    number = 0
    for line in file.lines[:MOST_LINES]:
        begin = _HUNK.match(line)
        if begin is not None:
            number = int(begin[1])
        yield Remark(file.path, number, line, "")
        number += begin is None and line[:1] in ("+", " ")


def hunks(file: FileDiff) -> list[Content]:
    """Return the lines of a file's hunks, coloured by what each does, and by the language of the file."""
    lines = [code_line(line) for line in file.lines[:MOST_LINES]]
    drawn = [Content.styled(line, _STYLES.get(line[:1], "$ink")) for line in lines]
    language = language_of(Path(file.path).name)
    begins = [place for place, line in enumerate(lines[:MOST_COLOURED]) if line.startswith("@@") and language]
    for begin, end in pairwise([*begins, min(len(lines), MOST_COLOURED)]):
        for sign in "-+":  # a hunk as it was, and as it is: each is one text
            places = [place for place in range(begin + 1, end) if lines[place][:1] in (sign, " ")]
            for place, code in zip(
                places, _coloured([lines[at][1:] for at in places], language), strict=False
            ):
                mark = lines[place][:1]
                sign_style = _STYLES.get(mark, "$ink")
                drawn[place] = Content.assemble((mark, sign_style), code).stylize(_GROUNDS.get(mark, ""))
    return drawn


def _coloured(lines: Sequence[str], language: str) -> list[Content]:
    from textual.highlight import highlight  # noqa: PLC0415 - only for this view

    from synapse_tui.widgets.answer_text import CodeColours  # noqa: PLC0415

    code = "\n".join([*lines, "."])  # blank lines at the end would be dropped
    whole = highlight(code, language=language, theme=CodeColours)
    found = whole.split("\n", allow_blank=True)[:-1]
    return found if [line.plain for line in found] == list(lines) else []


@functools.cache
def language_of(name: str) -> str:
    """Return the language of a file by its name, as Pygments calls it; empty if it knows none."""
    from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]  # noqa: PLC0415

    for _name, aliases, patterns, _types in get_all_lexers(plugins=False):
        if aliases and any(fnmatch(name, pattern) for pattern in patterns):
            return str(aliases[0])
    return ""
