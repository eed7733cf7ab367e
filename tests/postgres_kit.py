"""A PostgreSQL server of its own for the tests, on a private Unix socket; skipped where there is none.

It runs as a user without rights, as the server demands, and forgets all that it is told when it ends.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

PASSWORD = "p@ss/w:rd?#%"
"""Has every character that means something in a URL."""
_QUICK = "-c fsync=off -c full_page_writes=off -c listen_addresses="


@dataclass(frozen=True)
class Server:
    """A server that runs.

    Attributes:
        folder: Of its socket and its data.
        tools: Of its programs.
        user: The system user as which it runs; None for this one.
    """

    folder: Path
    tools: Path
    user: str | None

    def url(self, database: str, user: str = "synapse", password: str = PASSWORD) -> str:
        login = f"{user}:{quote(password, safe='')}" if password else user
        return f"postgresql://{login}@/{database}?host={quote(str(self.folder), safe='')}"

    def sql(self, *statements: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run statements as the server's administrator; gives the rows of the last one."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), dbname=database, user="postgres", autocommit=True
        ) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, *, trigrams: bool = True) -> Iterator[str]:
        """A new database of the user `synapse`, removed afterwards; gives its URL."""
        name = f"t{secrets.token_hex(6)}"
        self.sql(f"CREATE DATABASE {name} OWNER synapse")
        if trigrams:
            self.sql("CREATE EXTENSION IF NOT EXISTS pg_trgm", database=name)
        try:
            yield self.url(name)
        finally:
            self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    def stop(self) -> None:
        """Stop at once, as in a power cut."""
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def start(self) -> None:
        """Start again."""
        options = f"-k {self.folder} {_QUICK}"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-l", log, "-w", "-o", options, "start")

    def freeze(self) -> None:
        """Let all its processes stand still."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        first = int((self.folder / "data/postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            os.kill(pid, number)

    def _run(self, tool: str, *words: str) -> None:
        command = [str(self.tools / tool), *words]
        if self.user is not None:
            command = ["runuser", "-u", self.user, "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/")


def find_tools() -> Path | None:
    """Where the programs of the newest server are."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    places = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parents[1].name)
    )
    return places[-1].parent if places else None


def why_not() -> str:
    """Why no server can be run here; empty where one can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'synapse-tui[postgres]'"
    if find_tools() is None:
        return "PostgreSQL is not installed: no initdb on PATH nor in /usr/lib/postgresql"
    if os.getuid() == 0 and (_server_user() is None or not shutil.which("runuser")):
        return "PostgreSQL does not run as root, and there is no user 'postgres' or 'nobody' with runuser"
    return ""


@contextmanager
def running() -> Iterator[Server]:
    """A server for as long as it is needed."""
    tools = find_tools()
    assert tools is not None
    user = _server_user() if os.getuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket has 107 bytes at most
    if user is not None:
        shutil.chown(folder, user)
        folder.chmod(0o755)
    server = Server(folder, tools, user)
    guard = _guard(server)
    try:
        server._run(
            "initdb", "-D", str(folder / "data"), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8",
            "--locale=C.UTF-8",
        )  # fmt: skip
        (folder / "data/pg_hba.conf").write_text(
            "local all postgres trust\nlocal all all scram-sha-256\n", encoding="utf-8"
        )
        server.start()
        server.sql(f"CREATE ROLE synapse LOGIN PASSWORD '{PASSWORD}'")
        yield server
    finally:
        guard.communicate()


def _guard(server: Server) -> subprocess.Popen[bytes]:
    """What ends a server and removes its folder when its input ends: also when the tests are killed."""
    data = server.folder / "data"
    stop = f"{server.tools}/pg_ctl -D {data} -m immediate -w stop"
    if server.user is not None:
        stop = f"runuser -u {server.user} -- {stop}"
    script = (
        f"read _; if [ -e {data}/postmaster.pid ]; then"
        f' kill -CONT $(head -n 1 {data}/postmaster.pid); {stop}; fi; rm -rf "{server.folder}"'
    )
    return subprocess.Popen(
        ["/bin/sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _server_user() -> str | None:
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None
