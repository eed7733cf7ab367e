"""Runs a host's Textual application and attaches it to the terminals of clients."""

from __future__ import annotations

import asyncio
import logging
import shlex
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from synapse_tui.core.errors import SynapseError
from synapse_tui.core.model import AgentSpec
from synapse_tui.daemon.recording.asciicast import ScreenRecorder
from synapse_tui.host.host import Host
from synapse_tui.settings.keymap import textual_key
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.paths import own_command
from synapse_tui.ui.app import SynapseApp, read_keymap
from synapse_tui.ui.screens.main import restore_view, view_state
from synapse_tui.ui.screens.questions import RestoreOffer
from synapse_tui.ui.screens.shell import SessionControls
from synapse_tui.widgets.appearance import adopt_environment
from synapse_tui.widgets.driver import DriverOptions, TerminalLink, driver_class
from synapse_tui.widgets.driver.synapse_driver import DETACHED_SIZE, Tap, smallest
from synapse_tui.widgets.text import plural

from .connection import Connection, handed_terminal
from .project import ProjectFiles

log = logging.getLogger(__name__)


class ScreenTap:
    """Records everything the application draws, as an asciicast."""

    def __init__(
        self,
        recorder: ScreenRecorder,
        repaint: Callable[[], None],
        tell: Callable[[SynapseError], None],
    ) -> None:
        self._recorder = recorder
        recorder.on_gap = repaint
        recorder.on_error = tell

    @classmethod
    async def start(
        cls,
        path: Path,
        size: tuple[int, int],
        *,
        environ: Mapping[str, str],
        title: str,
        overwrite: bool,
        repaint: Callable[[], None],
        tell: Callable[[SynapseError], None],
    ) -> ScreenTap:
        """Start recording to a new file; raises SynapseError if it cannot be created."""

        def make() -> ScreenRecorder:
            return ScreenRecorder(path, *size, environ=environ, title=title, overwrite=overwrite)

        return cls(await asyncio.to_thread(make), repaint, tell)

    def drawn(self, data: str) -> None:
        self._recorder.output(data.encode("utf-8", "replace"))

    def resized(self, columns: int, lines: int) -> None:
        self._recorder.resized(columns, lines)

    async def close(self) -> None:
        await self._recorder.close()


MAX_FAILURES = 3
FAILURE_SECONDS = 60.0
"""More failures than `MAX_FAILURES` in this many seconds end the attach: restarting would not help."""


@dataclass(slots=True)
class Viewer:
    """A client whose terminal shows the application; `record` ends with it.

    One that `comes_back` after a handover restores the terminal itself at the end.
    """

    connection: Connection
    link: TerminalLink
    record: ScreenTap | None = None
    comes_back: bool = False


@dataclass(slots=True)
class Opening:
    """Initial state of the application; `defaults` are agents that were not requested explicitly."""

    specs: list[AgentSpec] = field(default_factory=list)
    defaults: list[AgentSpec] = field(default_factory=list)
    layout: str = ""
    view: Mapping[str, object] | None = None
    restore: RestoreOffer | None = None


class Display:
    """Runs the application on the terminals of its clients, or detached if there are none."""

    def __init__(self, host: Host, project: ProjectFiles, name: str, opening: Opening | None = None) -> None:
        self._host = host
        self._project = project
        self._name = name
        self._opening = opening or Opening()
        self._app: SynapseApp | None = None
        self._viewers: list[Viewer] = []
        self._taps: list[Tap] = []
        self._size = DETACHED_SIZE
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._leaving: set[asyncio.Task[None]] = set()
        self._farewells: list[tuple[Connection, Mapping[str, object]]] = []
        """Clients that have been detached and are notified when the session has ended."""
        self._stopped = False
        self.ending = False
        """Whether the application has ended for good and the agents are being stopped."""
        self.wanted = True
        """Whether a person asked to stop the agents; if not, they are offered again at the next start."""
        self.successor = ""
        """Interpreter of the version that takes over the agents; empty if none."""

    @property
    def offering(self) -> bool:
        return self._opening.restore is not None

    @property
    def attached(self) -> bool:
        return bool(self._viewers)

    def _viewer(self, connection: Connection) -> Viewer | None:
        return next((viewer for viewer in self._viewers if viewer.connection is connection), None)

    def view(self) -> Mapping[str, object]:
        if self._app is not None and self._app.begun:
            return view_state(self._app.main)
        return self._opening.view or {}

    def whole_view(self) -> Mapping[str, object]:
        """Return the view with what no workspace saves: the agents that did not start."""
        if self._app is not None and self._app.begun:
            return {**self.view(), "not_started": self._app.new_agents.not_started()}
        return self._opening.view or {}

    # -- the application's life ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the application until everything is stopped; if it fails, it is recreated."""
        try:
            while not self._stopped:
                failed = await self._run_once()
                if failed is None:
                    if not self._stopped:
                        self._log_end("the person at the terminal")
                    return
                self._fail(failed)
        finally:
            self.ending = not self.successor
            if self.successor:
                self._end("handover", f"session '{self._name}' goes on in another version")
            else:
                self._end("stopped", "all agents are stopped")
            await self.settle()

    def farewell(self) -> None:
        farewells, self._farewells = self._farewells, []
        for connection, answer in farewells:
            connection.answer(answer)

    async def _run_once(self) -> BaseException | None:
        app = self._app = self._make_app()
        try:
            await app.run_async()
        except Exception as error:
            log.exception("the application failed")
            return error
        finally:
            opening = Opening(layout=self._opening.layout, view=self.whole_view())
            if app.unanswered is not None:  # the next one asks again
                opening.specs, opening.defaults = app.requested
                opening.restore = app.unanswered
            self._opening = opening
            self._app = None
        return app._exception

    def _make_app(self) -> SynapseApp:
        opening = self._opening
        app = SynapseApp(
            self._host,
            specs=opening.specs,
            defaults=opening.defaults,
            layout=opening.layout,
            driver_class=driver_class(
                DriverOptions(
                    detached=True,
                    size=self._present_size(),
                    links=[viewer.link for viewer in self._viewers],
                    taps=self._taps,
                    on_hangup=self._hung_up,
                )
            ),
            trust=lambda: self._project.trust(self._host),
            read_again=lambda: self._project.read_again(self._host),
            settings_files=self._project.settings_files,
            session=SessionControls(self._name, self.detach),
            view=opening.view,
            restore=opening.restore,
        )
        opening.specs, opening.defaults, opening.restore = [], [], None
        return app

    def _present_size(self) -> tuple[int, int]:
        if self._viewers:
            size = smallest([viewer.link.size for viewer in self._viewers])
            self._size = (size.columns, size.lines)
        return self._size

    def _fail(self, error: BaseException) -> None:
        log.error("the application is made anew after: %s", error, exc_info=error)
        now = time.monotonic()
        often = len(self._failures) == MAX_FAILURES and now - self._failures[0] < FAILURE_SECONDS
        self._failures.append(now)
        if often:
            self._end("failed", f"the application failed again and again: {error}; the agents go on")

    def stop(self, why: str, *, wanted: bool = False, successor: str = "") -> None:
        """End the application.

        `why` says who or what ends it, for the log; `wanted`, whether a person asked to stop the agents.
        `successor` is the interpreter of the version that takes over the agents, if any.
        """
        if not successor:
            self._log_end(why)
        self.wanted, self.successor = wanted, successor
        self._stopped = True
        if successor:
            for viewer in self._viewers:
                viewer.link.pause_input()  # the next version reads what is typed from now on
        if self._app is not None:
            self._app.exit()

    def _log_end(self, why: str) -> None:
        log.info("session '%s' is ended: %s", self._name, why)

    def _repaint(self) -> None:
        if self._app is not None and self._app.is_running:
            self._app.refresh()

    # -- terminals -------------------------------------------------------------------------------------------

    async def attach(
        self,
        connection: Connection,
        environ: Mapping[str, str],
        *,
        record: str = "",
        overwrite: bool = False,
        take: bool = False,
        comes_back: bool = False,
    ) -> None:
        """Show the application on the client's terminal, besides the others unless it takes it from them.

        With `take` the other clients are detached and notified. Agents opened from now on inherit `environ`.
        If `record` names a file, the screen is recorded to it until the client leaves.

        Raises:
            SessionError: The client sent no terminal descriptors.
            TerminalUnfit: The terminal is not usable.
            SynapseError: The recording cannot be created.
        """
        link = handed_terminal(connection, environ)
        size = (link.size.columns, link.size.lines)
        try:
            tap = await self._record(record, size, environ, overwrite=overwrite) if record else None
        except BaseException:
            link.close()
            raise
        if take:
            self._end("taken", f"session '{self._name}' was taken over by another terminal")
        link.before_input = connection.read  # the client may be reading it
        self._viewers.append(Viewer(connection, link, tap, comes_back))
        if tap is not None:
            self._taps.append(tap)
        self._host.inherit(environ)
        if self._app is not None:
            self._app.attach(link)
        else:
            adopt_environment(environ)
        connection.send(**{"is": "attached", "session": self._name, **self._ways_to_leave()})

    async def _record(
        self, path: str, size: tuple[int, int], environ: Mapping[str, str], *, overwrite: bool
    ) -> ScreenTap:
        return await ScreenTap.start(
            Path(path),
            size,
            environ=environ,
            title=self._name,
            overwrite=overwrite,
            repaint=self._repaint,
            tell=self._told,
        )

    def _told(self, error: Exception) -> None:
        if self._app is not None:
            self._app.notice_error(error)

    def open(self, specs: Sequence[AgentSpec], defaults: Sequence[AgentSpec] = ()) -> None:
        if self._app is None:
            self._opening.specs += specs
            self._opening.defaults += defaults
        elif specs or defaults:
            self._app.open_agents(specs, defaults)

    def arrange(self, layout: str) -> None:
        """Change the layout; an empty name leaves it unchanged."""
        if layout and self._app is None:
            self._opening.layout = layout
        elif layout and self._app is not None:
            self._app.arrange(layout)

    def restore(self, view: Mapping[str, object]) -> None:
        """Restore a saved view once the agents being opened are there."""
        if self._app is not None and view:
            self._app.call_later(restore_view, self._app.main, view)

    def offer(self, restore: RestoreOffer | None) -> None:
        self._opening.restore = restore

    def resized(self, connection: Connection) -> None:
        if self._viewer(connection) is not None:
            self._present_size()
            if self._app is not None:
                self._app.terminal_resized()

    def pinged(self, connection: Connection) -> None:
        """Answer a client that asks whether this host still reads its terminal."""
        connection.send(**{"is": "pong", **self._ways_to_leave()})

    def reads_itself(self, connection: Connection) -> None:
        """Leave the input to a client that this host did not answer, until it hands over what was typed."""
        viewer = self._viewer(connection)
        if viewer is not None:
            viewer.link.leave_input()

    def _ways_to_leave(self) -> dict[str, object]:
        """Return the keys by which a person detaches, for a client whose host does not answer."""
        keymap = read_keymap(self._host.settings, self._host.profiles.profiles)
        action = keymap.find("detach")
        leader = textual_key(keymap.leader)
        keys = [[textual_key(key)] for key in action.keys]
        keys += [[leader, textual_key(key)] for key in action.leader]
        return {"leave": keys, "way": keymap.way("detach") if keys else ""}

    def resumed(self, connection: Connection, typed: bytes) -> None:
        """Repaint the terminal of a client that this host did not answer, and take what was typed there."""
        viewer = self._viewer(connection)
        if viewer is not None:
            viewer.link.take_back(typed)
            self._repaint()

    # -- leaving ---------------------------------------------------------------------------------------------

    def gone(self, connection: Connection) -> None:
        """Stop drawing on the terminal of a client that disconnected, and restore it as far as possible."""
        viewer = self._viewer(connection)
        if viewer is not None:
            self._leave(viewer, "", "", abandoned=True)

    def detach(self, connection: Connection | None = None) -> None:
        """Detach a client, by default the one that was used last; agents and application continue."""
        for waiting, answer in self._farewells:
            if waiting is connection:  # it does not wait for the end
                waiting.answer({**answer, "text": "the agents are being stopped"})
        viewer = self._acting() if connection is None else self._viewer(connection)
        if viewer is not None:
            live = sum(session.exit is None for session in self._host.agents.values())
            agents = f"{plural(live, 'agent')} still running" if live else "no agents run"
            back = " ".join((own_command("synapse-tui"), "attach", shlex.quote(self._name)))
            text = f"detached from session '{self._name}': {agents}; to come back: {back}"
            self._leave(viewer, "detached", text)

    def _acting(self) -> Viewer | None:
        """Return the client at whose terminal was typed last."""
        link = self._app.acting if self._app is not None else None
        newest = self._viewers[-1] if self._viewers else None
        return next((viewer for viewer in self._viewers if viewer.link is link), newest)

    def _hung_up(self) -> None:
        for viewer in [each for each in self._viewers if each.link.hung_up]:
            self._leave(viewer, "detached", "the terminal went away", abandoned=True)

    def _end(self, why: str, text: str) -> None:
        for viewer in tuple(self._viewers):
            self._leave(viewer, why, text)

    def _leave(self, viewer: Viewer, why: str, text: str, *, abandoned: bool = False) -> None:
        self._viewers.remove(viewer)
        if self._app is not None:
            self._app.release(viewer.link)
        viewer.link.listener = None
        if viewer.record is not None:
            self._taps.remove(viewer.record)
            self._later(viewer.record.close())
        self._later(self._give_back(viewer, why, text, abandoned=abandoned))

    async def _give_back(self, viewer: Viewer, why: str, text: str, *, abandoned: bool) -> None:
        try:
            passed_on = why == "handover" and viewer.comes_back
            await viewer.link.close_soon(abandoned=abandoned, passed_on=passed_on)
        finally:
            answer = {"is": "end", "why": why, "text": text}
            if why == "stopped":
                self._farewells.append((viewer.connection, answer))
            else:
                viewer.connection.answer(answer)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def settle(self) -> None:
        """Wait until all detached terminals are restored and all recordings are complete."""
        while self._leaving:
            await asyncio.gather(*self._leaving, return_exceptions=True)
