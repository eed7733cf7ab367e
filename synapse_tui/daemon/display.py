"""The application of a host, and the terminals that it is shown on, one after the other."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from synapse_tui.app import SynapseApp
from synapse_tui.driver import LinkOptions, TerminalLink, detached_driver_class
from synapse_tui.errors import SessionError
from synapse_tui.host import Host
from synapse_tui.model import AgentSpec
from synapse_tui.screens.session import SessionControls
from synapse_tui.screens.view_state import view_state
from synapse_tui.sessions.wire import close_all
from synapse_tui.widgets.appearance import adopt_environment
from synapse_tui.widgets.text import plural
from synapse_tui.widgets.tiles import as_layout

from .connection import Connection
from .project import ProjectFiles

log = logging.getLogger(__name__)

MAX_FAILURES = 3
FAILURE_SECONDS = 60.0
"""So many failures of the application within so many seconds end the attach: it would fail for ever."""


@dataclass(slots=True)
class Viewer:
    """A client that has lent its terminal.

    Attributes:
        connection: To the client.
        link: Its terminal.
        environ: Its environment.
    """

    connection: Connection
    link: TerminalLink
    environ: Mapping[str, str] = field(default_factory=dict)


class Display:
    """Runs the application on the newest client's terminal; without a client it runs unseen.

    Args:
        host: Whose agents are shown.
        project: Profiles and settings.
        name: Name of the session.
        specs: Agents to open at the start.
        layout: How the panes are arranged at the start.
    """

    def __init__(
        self,
        host: Host,
        project: ProjectFiles,
        name: str,
        *,
        specs: Sequence[AgentSpec] = (),
        layout: str = "",
    ) -> None:
        self._host = host
        self._project = project
        self._name = name
        self._specs = list(specs)
        self._layout = layout or project.settings.text("tui.layout")
        self._view: Mapping[str, object] | None = None
        self._app: SynapseApp | None = None
        self._viewer: Viewer | None = None
        self._size = (120, 40)
        self._failures: deque[float] = deque(maxlen=MAX_FAILURES)
        self._leaving: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def attached(self) -> bool:
        """Whether a client's terminal is drawn on."""
        return self._viewer is not None

    # -- the application's life ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run the application until the person stops everything; it is made anew when it fails."""
        try:
            while not self._stopped:
                failed = await self._run_once()
                if not failed:
                    return
                self._fail(failed)
        finally:
            self._leave("stopped", "all agents are stopped")
            await self.settle()

    async def _run_once(self) -> BaseException | None:
        """Run one application to its end.

        Returns:
            Why it failed; None when it ended as asked.
        """
        app = self._app = self._make_app()
        try:
            await app.run_async()
        except Exception as error:
            log.exception("the application failed")
            return error
        finally:
            self._app = None
        return app._exception

    def _make_app(self) -> SynapseApp:
        viewer = self._viewer
        size = (viewer.link.size.columns, viewer.link.size.lines) if viewer is not None else self._size
        app = SynapseApp(
            self._host,
            specs=self._specs,
            layout=self._layout,
            driver_class=detached_driver_class(
                size, link=viewer.link if viewer is not None else None, on_hangup=self._hung_up
            ),
            trust=lambda: self._project.trust(self._host),
            session=SessionControls(self._name, self.detach),
            view=self._view,
        )
        self._specs = []
        return app

    def _fail(self, error: BaseException) -> None:
        log.error("the application is made anew after %s", error)
        now = time.monotonic()
        often = len(self._failures) == MAX_FAILURES and now - self._failures[0] < FAILURE_SECONDS
        self._failures.append(now)
        if often:
            self._leave("failed", f"the application failed again and again: {error}; the agents go on")

    def stop(self) -> None:
        """End the application."""
        self._stopped = True
        if self._app is not None:
            self._app.exit()

    # -- terminals -------------------------------------------------------------------------------------------

    def attach(self, connection: Connection, environ: Mapping[str, str]) -> None:
        """Show the application on the terminal that a client handed over; the client before is told.

        Args:
            connection: With the descriptors of the terminal.
            environ: The client's environment; agents that are opened from now on inherit it.

        Raises:
            SessionError: The client handed over no terminal.
            TerminalUnfit: It cannot be drawn on.
        """
        descriptors = connection.take_descriptors()
        try:
            if len(descriptors) != 2:
                raise SessionError("no terminal was handed over", "attach from a terminal")
            options = LinkOptions(descriptors[0], descriptors[1], environ)
            link = TerminalLink(options, asyncio.get_running_loop())
        finally:
            close_all(descriptors)
        self._leave("taken", f"session '{self._name}' was taken over by another terminal")
        self._viewer = Viewer(connection, link, environ)
        self._host.inherit(environ)
        if self._app is not None:
            self._app.attach(link)
        else:
            adopt_environment(environ)
        connection.send(**{"is": "attached", "session": self._name})

    def open(self, specs: Sequence[AgentSpec]) -> None:
        """Open agents, beside those that are there."""
        if self._app is None:
            self._specs += specs
        elif specs:
            self._app.open_agents(specs)

    def arrange(self, layout: str) -> None:
        """Arrange the panes; an empty name leaves them as they are."""
        if layout and self._app is None:
            self._layout = layout
            self._view = None
        elif layout and self._app is not None:
            self._app.commands.set_layout(as_layout(layout))

    def resized(self, connection: Connection) -> None:
        """A client's terminal has another size."""
        if self._viewer is not None and self._viewer.connection is connection and self._app is not None:
            self._app.terminal_resized()

    def gone(self, connection: Connection) -> None:
        """A client is gone: its terminal is drawn on no more, and given back as far as it is still ours."""
        if self._viewer is not None and self._viewer.connection is connection:
            self._leave("", "", abandoned=True)

    def detach(self) -> None:
        """Give the terminal back; everything goes on."""
        live = sum(session.exit is None for session in self._host.agents.values())
        agents = f"{plural(live, 'agent')} go{'es' if live == 1 else ''} on" if live else "no agents run"
        self._leave("detached", f"detached from session '{self._name}': {agents}")

    def _hung_up(self) -> None:
        self._leave("detached", "the terminal went away", abandoned=True)

    def _leave(self, why: str, text: str, *, abandoned: bool = False) -> None:
        viewer, self._viewer = self._viewer, None
        if viewer is None:
            return
        size = viewer.link.size
        self._size = (size.columns, size.lines)
        if self._app is not None:
            self._view = view_state(self._app.main)
            self._app.release()
        viewer.link.listener = None
        task = asyncio.get_running_loop().create_task(_give_back(viewer, why, text, abandoned=abandoned))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def settle(self) -> None:
        """Return when every terminal that was left is given back."""
        await asyncio.gather(*self._leaving, return_exceptions=True)


async def _give_back(viewer: Viewer, why: str, text: str, *, abandoned: bool) -> None:
    """Leave a terminal clean, then tell its client."""
    try:
        await viewer.link.close_soon(abandoned=abandoned)
    finally:
        viewer.connection.answer({"is": "end", "why": why, "text": text})
