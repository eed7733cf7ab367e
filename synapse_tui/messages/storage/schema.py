"""Migrations of the database to the current tables (`tables.py`).

A published step is never changed, since existing databases have taken it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias

from synapse_tui.core.errors import HistoryError
from synapse_tui.system.dataclass import dataclass

if TYPE_CHECKING:
    from sqlalchemy import Connection

PUSH_STEP = (
    """CREATE TABLE push_configs (
        id VARCHAR NOT NULL PRIMARY KEY,
        project VARCHAR NOT NULL,
        agent_name VARCHAR NOT NULL,
        protocol VARCHAR NOT NULL,
        url VARCHAR NOT NULL,
        task_id VARCHAR NOT NULL,
        config_id VARCHAR NOT NULL,
        events JSON NOT NULL,
        token VARCHAR NOT NULL,
        scheme VARCHAR NOT NULL,
        credentials VARCHAR NOT NULL,
        secret VARCHAR NOT NULL,
        persist BOOLEAN NOT NULL,
        owner VARCHAR NOT NULL,
        created_at DATETIME NOT NULL,
        ended_at DATETIME
    )""",
    """CREATE TABLE push_deliveries (
        id VARCHAR NOT NULL PRIMARY KEY,
        subscription_id VARCHAR NOT NULL,
        task_id VARCHAR NOT NULL,
        event VARCHAR NOT NULL,
        subject VARCHAR NOT NULL,
        body VARCHAR NOT NULL,
        state VARCHAR NOT NULL,
        attempts INTEGER NOT NULL,
        status INTEGER NOT NULL,
        problem VARCHAR NOT NULL,
        created_at DATETIME NOT NULL,
        due_at DATETIME NOT NULL,
        ended_at DATETIME
    )""",
    "CREATE INDEX ix_push_deliveries_subscription_id ON push_deliveries (subscription_id)",
)


Step: TypeAlias = "Sequence[str | Callable[[Connection], None]]"


class Additive(tuple[str, ...]):
    """A step that hosts without it need not know: new tables, and columns with defaults."""

    __slots__ = ()


STEPS: Sequence[Step] = (
    (
        """CREATE TABLE tasks (
            id VARCHAR NOT NULL PRIMARY KEY,
            agent_name VARCHAR NOT NULL,
            agent_type VARCHAR NOT NULL,
            project VARCHAR NOT NULL,
            context_id VARCHAR NOT NULL,
            peer_task_id VARCHAR NOT NULL,
            sender_id VARCHAR NOT NULL,
            sender_type VARCHAR NOT NULL,
            sender_endpoint VARCHAR NOT NULL,
            sender_verified BOOLEAN NOT NULL,
            input VARCHAR NOT NULL,
            output VARCHAR NOT NULL,
            truncated BOOLEAN NOT NULL,
            status VARCHAR NOT NULL,
            delivery VARCHAR NOT NULL,
            reason VARCHAR NOT NULL,
            priority INTEGER NOT NULL,
            response_expected BOOLEAN NOT NULL,
            metadata JSON NOT NULL,
            owner VARCHAR NOT NULL,
            created_at DATETIME NOT NULL,
            updated_at DATETIME NOT NULL,
            submitted_at DATETIME,
            finished_at DATETIME
        )""",
        "CREATE INDEX ix_tasks_finished_at ON tasks (finished_at)",
        """CREATE TABLE task_changes (
            id INTEGER NOT NULL PRIMARY KEY,
            task_id VARCHAR NOT NULL,
            time DATETIME NOT NULL,
            state VARCHAR NOT NULL,
            delivery VARCHAR NOT NULL,
            reason VARCHAR NOT NULL
        )""",
        "CREATE INDEX ix_task_changes_task_id ON task_changes (task_id)",
        """CREATE TABLE outbox (
            task_id VARCHAR NOT NULL PRIMARY KEY,
            project VARCHAR NOT NULL,
            agent_name VARCHAR NOT NULL,
            rank FLOAT NOT NULL,
            parked BOOLEAN NOT NULL,
            urgent BOOLEAN NOT NULL,
            entered BOOLEAN NOT NULL,
            prompt BOOLEAN NOT NULL
        )""",
    ),
    (
        "ALTER TABLE tasks ADD COLUMN replied BOOLEAN NOT NULL DEFAULT 0",
        "ALTER TABLE tasks ADD COLUMN reply VARCHAR NOT NULL DEFAULT ''",
        "CREATE INDEX ix_tasks_reply ON tasks (reply)",
    ),
    (
        "ALTER TABLE tasks ADD COLUMN caller VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE tasks ADD COLUMN follows VARCHAR NOT NULL DEFAULT ''",
        "ALTER TABLE tasks ADD COLUMN messages JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE tasks ADD COLUMN artifacts JSON NOT NULL DEFAULT '[]'",
        "ALTER TABLE tasks ADD COLUMN session VARCHAR NOT NULL DEFAULT ''",
        "UPDATE tasks SET session = context_id",
        # Covers pages of tasks, so that rows with their texts are not read.
        """CREATE INDEX ix_tasks_page ON tasks (
            project, agent_name, updated_at, id, follows, sender_id, caller, context_id, status
        )""",
    ),
    PUSH_STEP,
    (
        "ALTER TABLE tasks ADD COLUMN kept BOOLEAN NOT NULL DEFAULT 1",
        "CREATE INDEX ix_tasks_unkept ON tasks (finished_at) WHERE kept = 0",
        # Covers every list and count, newest first.
        """CREATE INDEX ix_tasks_newest ON tasks (
            created_at, id, project, agent_name, agent_type, sender_id, status, submitted_at, finished_at
        )""",
    ),
    ("ALTER TABLE tasks ADD COLUMN called VARCHAR",),
    (
        """CREATE TABLE watches (
            task_id VARCHAR NOT NULL PRIMARY KEY,
            "order" JSON NOT NULL,
            sent INTEGER NOT NULL,
            helped INTEGER NOT NULL,
            in_vain INTEGER NOT NULL,
            nudge_id VARCHAR NOT NULL,
            steps JSON NOT NULL,
            state VARCHAR NOT NULL
        )""",
    ),
    (
        """CREATE TABLE conversations (
            project VARCHAR NOT NULL,
            alias VARCHAR NOT NULL,
            agent VARCHAR NOT NULL,
            context_id VARCHAR NOT NULL,
            opened BOOLEAN NOT NULL,
            PRIMARY KEY (project, alias)
        )""",
        """CREATE TABLE external_tasks (
            id VARCHAR NOT NULL PRIMARY KEY,
            project VARCHAR NOT NULL,
            alias VARCHAR NOT NULL,
            context_id VARCHAR NOT NULL,
            sender JSON NOT NULL,
            text VARCHAR NOT NULL,
            state VARCHAR NOT NULL,
            delivery VARCHAR NOT NULL,
            reason VARCHAR NOT NULL,
            artifacts JSON NOT NULL,
            response_expected BOOLEAN NOT NULL,
            about JSON NOT NULL,
            reply VARCHAR NOT NULL,
            owner VARCHAR NOT NULL,
            created_at DATETIME NOT NULL,
            updated_at DATETIME NOT NULL
        )""",
        "CREATE INDEX ix_external_tasks_newest ON external_tasks (project, alias, created_at)",
        """CREATE TABLE entries (
            "key" VARCHAR NOT NULL PRIMARY KEY,
            project VARCHAR NOT NULL,
            alias VARCHAR NOT NULL,
            task_id VARCHAR NOT NULL,
            kind VARCHAR NOT NULL,
            text VARCHAR NOT NULL,
            at DATETIME NOT NULL,
            sender_id VARCHAR NOT NULL,
            name VARCHAR NOT NULL
        )""",
        "CREATE INDEX ix_entries_task ON entries (project, alias, task_id)",
    ),
    Additive(("ALTER TABLE tasks ADD COLUMN command VARCHAR NOT NULL DEFAULT ''",)),
    Additive(("ALTER TABLE push_configs ADD COLUMN local BOOLEAN",)),
    Additive(("ALTER TABLE tasks ADD COLUMN peer_name VARCHAR",)),
)
"""Statements of each step, in order; the version of a file is the number of steps taken."""


_VERSIONS = "schema_version"
_VERSION, _SINCE = 1, 2
"""Ids of its rows: the number of steps taken, and the least number of steps whose hosts may use the file, if
that is smaller."""


class ForeignFile(Exception):
    """A database of another program."""


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A file shared with another program."""

    tables: frozenset[str] = frozenset()  # the tables that identify it
    version: int = 0  # the number of steps that it counts as having taken


NOTHING = SharedFile()


def migrate(connection: Connection, steps: Sequence[Step] = STEPS, adopted: SharedFile = NOTHING) -> None:
    """Run the pending steps in the caller's transaction."""
    place = str(connection.engine.url.database)
    take_steps(connection, _version(connection, adopted), steps, place=place)


def take_steps(connection: Connection, taken: int, steps: Sequence[Step], *, place: str) -> None:
    if taken > len(steps):
        since = connection.exec_driver_sql(f"SELECT version FROM schema_version WHERE id = {_SINCE}").scalar()  # noqa: S608 - a number
        if since is not None and since <= len(steps):
            return
        raise HistoryError(
            f"{place} was written by a newer synapse-tui (version {taken} of its tables)",
            "use that one, or name another database",
        )
    for step in steps[taken:]:
        for statement in step:
            if callable(statement):
                statement(connection)
            else:
                connection.exec_driver_sql(statement)
    if taken < len(steps):
        since = max((at for at, step in enumerate(steps, 1) if not isinstance(step, Additive)), default=0)
        numbers = {_VERSION: len(steps)} | ({_SINCE: since} if since < len(steps) else {})
        connection.exec_driver_sql("DELETE FROM schema_version")
        for row, number in numbers.items():
            connection.exec_driver_sql(
                f"INSERT INTO schema_version (id, version) VALUES ({row:d}, {number:d})"  # noqa: S608 - numbers
            )


def is_foreign(tables: Collection[str], adopted: SharedFile = NOTHING) -> bool:
    """Whether a database with these tables belongs to another program; False if it is empty."""
    return bool(tables) and _VERSIONS not in tables and not is_adopted(tables, adopted)


def is_adopted(tables: Collection[str], adopted: SharedFile) -> bool:
    return bool(adopted.tables) and adopted.tables <= set(tables)


def _version(connection: Connection, adopted: SharedFile) -> int:
    from sqlmodel import inspect  # noqa: PLC0415 - quick readers need the steps alone

    tables = inspect(connection).get_table_names()
    if _VERSIONS in tables:
        return int(connection.exec_driver_sql("SELECT MAX(version) FROM schema_version").scalar() or 0)
    if is_foreign(tables, adopted):
        raise ForeignFile(f"it has the tables {', '.join(tables[:5])}")
    connection.exec_driver_sql(
        "CREATE TABLE schema_version (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL)"
    )
    return adopted.version if is_adopted(tables, adopted) else 0


POSTGRES_STEPS: Sequence[Step] = (
    (
        """CREATE TABLE tasks (
            id text COLLATE "C" NOT NULL PRIMARY KEY,
            agent_name text COLLATE "C" NOT NULL,
            agent_type text COLLATE "C" NOT NULL,
            project text COLLATE "C" NOT NULL,
            context_id text COLLATE "C" NOT NULL,
            peer_task_id text NOT NULL,
            sender_id text COLLATE "C" NOT NULL,
            sender_type text NOT NULL,
            sender_endpoint text NOT NULL,
            sender_verified boolean NOT NULL,
            input text NOT NULL,
            output text NOT NULL,
            truncated boolean NOT NULL,
            status text COLLATE "C" NOT NULL,
            delivery text COLLATE "C" NOT NULL,
            reason text NOT NULL,
            priority integer NOT NULL,
            response_expected boolean NOT NULL,
            metadata json NOT NULL,
            owner text COLLATE "C" NOT NULL,
            created_at timestamptz NOT NULL,
            updated_at timestamptz NOT NULL,
            submitted_at timestamptz,
            finished_at timestamptz,
            replied boolean NOT NULL DEFAULT false,
            reply text COLLATE "C" NOT NULL DEFAULT '',
            caller text COLLATE "C" NOT NULL DEFAULT '',
            follows text COLLATE "C" NOT NULL DEFAULT '',
            messages json NOT NULL DEFAULT '[]',
            artifacts json NOT NULL DEFAULT '[]',
            session text COLLATE "C" NOT NULL DEFAULT '',
            kept boolean NOT NULL DEFAULT true
        )""",
        "CREATE INDEX ix_tasks_finished_at ON tasks (finished_at)",
        """CREATE INDEX ix_tasks_newest ON tasks (
            created_at, id, project, agent_name, agent_type, sender_id, status, submitted_at, finished_at
        )""",
        "CREATE INDEX ix_tasks_unkept ON tasks (finished_at) WHERE NOT kept",
        "CREATE INDEX ix_tasks_unfinished ON tasks (owner) WHERE finished_at IS NULL",
        "CREATE INDEX ix_tasks_reply ON tasks (reply) WHERE reply = 'due'",
        "CREATE INDEX ix_tasks_page ON tasks (project, agent_name, updated_at, id)",
        """CREATE TABLE task_changes (
            id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            task_id text COLLATE "C" NOT NULL,
            time timestamptz NOT NULL,
            state text NOT NULL,
            delivery text NOT NULL,
            reason text NOT NULL
        )""",
        "CREATE INDEX ix_task_changes_task_id ON task_changes (task_id)",
        """CREATE TABLE outbox (
            task_id text COLLATE "C" NOT NULL PRIMARY KEY,
            project text COLLATE "C" NOT NULL,
            agent_name text COLLATE "C" NOT NULL,
            rank double precision NOT NULL,
            parked boolean NOT NULL,
            urgent boolean NOT NULL,
            entered boolean NOT NULL,
            prompt boolean NOT NULL
        )""",
        """CREATE TABLE push_configs (
            id text COLLATE "C" NOT NULL PRIMARY KEY,
            project text COLLATE "C" NOT NULL,
            agent_name text COLLATE "C" NOT NULL,
            protocol text NOT NULL,
            url text NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            config_id text NOT NULL,
            events json NOT NULL,
            token text NOT NULL,
            scheme text NOT NULL,
            credentials text NOT NULL,
            secret text NOT NULL,
            persist boolean NOT NULL,
            owner text COLLATE "C" NOT NULL,
            created_at timestamptz NOT NULL,
            ended_at timestamptz
        )""",
        """CREATE TABLE push_deliveries (
            id text COLLATE "C" NOT NULL PRIMARY KEY,
            subscription_id text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            event text NOT NULL,
            subject text NOT NULL,
            body text NOT NULL,
            state text COLLATE "C" NOT NULL,
            attempts integer NOT NULL,
            status integer NOT NULL,
            problem text NOT NULL,
            created_at timestamptz NOT NULL,
            due_at timestamptz NOT NULL,
            ended_at timestamptz
        )""",
        "CREATE INDEX ix_push_deliveries_subscription_id ON push_deliveries (subscription_id)",
        """CREATE TABLE file_locks (
            id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            file_path text COLLATE "C" NOT NULL UNIQUE,
            file_name text COLLATE "C" NOT NULL DEFAULT '',
            agent_name text COLLATE "C" NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            locked_at timestamptz NOT NULL,
            expires_at timestamptz NOT NULL,
            intent text NOT NULL,
            process text COLLATE "C" NOT NULL,
            call text COLLATE "C" NOT NULL
        )""",
        "CREATE INDEX ix_file_locks_agent_name ON file_locks (agent_name)",
        """CREATE TABLE file_modifications (
            id bigint NOT NULL GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
            task_id text COLLATE "C" NOT NULL,
            agent_name text COLLATE "C" NOT NULL,
            file_path text COLLATE "C" NOT NULL,
            file_name text COLLATE "C" NOT NULL DEFAULT '',
            change_type text NOT NULL,
            affected_lines text NOT NULL,
            intent text NOT NULL,
            timestamp timestamptz NOT NULL,
            metadata json NOT NULL
        )""",
        "CREATE INDEX ix_file_modifications_task_id ON file_modifications (task_id)",
        "CREATE INDEX ix_file_modifications_agent_name ON file_modifications (agent_name)",
        "CREATE INDEX ix_file_modifications_file_path ON file_modifications (file_path, id)",
        "CREATE INDEX ix_file_modifications_timestamp ON file_modifications (timestamp)",
        # Maps the projects of all machines to their repository.
        """CREATE TABLE projects (
            project text COLLATE "C" NOT NULL PRIMARY KEY,
            repository text COLLATE "C" NOT NULL
        )""",
        "CREATE INDEX ix_projects_repository ON projects (repository)",
        # The searched texts; a trigger records changes, as in `messages/search.py`.
        """CREATE TABLE search_docs (
            task_id text COLLATE "C" NOT NULL PRIMARY KEY,
            created_at timestamptz NOT NULL,
            body text COLLATE "C" NOT NULL,
            short_words text[] COLLATE "C" NOT NULL
        )""",
        # A short pending list: it delays whoever flushes it, and indexing steps must be short.
        """CREATE INDEX ix_search_docs_short_words ON search_docs USING gin (short_words)
            WITH (gin_pending_list_limit = 1024)""",
        "CREATE INDEX ix_search_docs_newest ON search_docs (created_at, task_id)",
        """CREATE TABLE search_stale (
            created_at timestamptz NOT NULL,
            task_id text COLLATE "C" NOT NULL,
            PRIMARY KEY (created_at, task_id)
        )""",
        """CREATE FUNCTION note_stale() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF TG_OP = 'DELETE' THEN
                INSERT INTO synapse.search_stale VALUES (old.created_at, old.id) ON CONFLICT DO NOTHING;
            ELSE
                INSERT INTO synapse.search_stale VALUES (new.created_at, new.id) ON CONFLICT DO NOTHING;
            END IF;
            RETURN NULL;
        END $$""",
        """CREATE TRIGGER search_added AFTER INSERT OR DELETE ON tasks
            FOR EACH ROW EXECUTE FUNCTION note_stale()""",
        """CREATE TRIGGER search_changed AFTER UPDATE OF input, output, kept ON tasks FOR EACH ROW
            WHEN (old.input <> new.input OR old.output <> new.output OR old.kept <> new.kept)
            EXECUTE FUNCTION note_stale()""",
    ),
    ('ALTER TABLE tasks ADD COLUMN called text COLLATE "C"',),
    (
        """CREATE TABLE watches (
            task_id text COLLATE "C" NOT NULL PRIMARY KEY,
            "order" json NOT NULL,
            sent integer NOT NULL,
            helped integer NOT NULL,
            in_vain integer NOT NULL,
            nudge_id text COLLATE "C" NOT NULL,
            steps json NOT NULL,
            state text COLLATE "C" NOT NULL
        )""",
    ),
    Additive(("ALTER TABLE tasks ADD COLUMN command text NOT NULL DEFAULT ''",)),
    Additive(("ALTER TABLE push_configs ADD COLUMN local boolean",)),
    Additive(("ALTER TABLE tasks ADD COLUMN peer_name text",)),
)
"""Statements of each step, in order; the version of a database is the number of steps taken."""
