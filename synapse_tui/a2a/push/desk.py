"""The desk where callers ask to be told of tasks; what it takes is kept, and told by `outgoing`."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import uuid4

from synapse_tui.errors import InvalidValue, TargetRefused
from synapse_tui.store.push import Subscription

from .book import SubscriptionBook
from .model import PushConfig, PushProtocol, config_of
from .policy import TargetPolicy
from .resolver import Resolver

MAX_FIELD = 4096
"""Characters of a token, of credentials, of a secret."""
_SCHEME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}")
_ID = re.compile(r"[\x21-\x7e]{1,128}")


class PushDesk:
    """Takes push configurations and webhooks.

    Args:
        project: Folder of the project.
        policy: Decides which URLs may be called.
        clock: The time now, aware.
        make_id: Makes UUIDs.
    """

    def __init__(
        self,
        project: str = "",
        *,
        policy: TargetPolicy | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        make_id: Callable[[], str] = lambda: str(uuid4()),
    ) -> None:
        self._project = project
        self._policy = policy or TargetPolicy(Resolver())
        self._clock = clock
        self._make_id = make_id
        self._book = SubscriptionBook(lambda _id, _subscription: None)

    # -- configurations of tasks (A2A) ---

    async def create(self, config: PushConfig, *, sender_id: str = "") -> PushConfig:
        """Tell someone of a task from now on; made anew when it has a configuration of that id.

        Args:
            config: Whom to tell. To miss nothing, create it before the task is, under the id that the task
                will have.
            sender_id: The agent whose signature the request carries; empty for none.

        Returns:
            It as `get` gives it, with its id.

        Raises:
            TargetRefused: Its URL may not be called, or an agent asks for it.
            InvalidValue: Its token, authentication or id cannot be sent in a header.
            PushLimit: The task has too many.
            HistoryError: It cannot be written down.
        """
        check_asker(sender_id)
        check_fields(config)
        await self._policy.check(config.url)
        default = config.task_id if config.protocol is PushProtocol.V03 else self._make_id()
        subscription = Subscription(
            self._make_id(),
            self._project,
            config.agent_id,
            config.protocol.value,
            config.url,
            self._clock(),
            task_id=config.task_id,
            config_id=config.config_id or default,
            token=config.token,
            scheme=config.scheme,
            credentials=config.credentials,
        )
        self._book.add(subscription)
        return config_of(subscription)

    async def get(self, task_id: str, config_id: str = "") -> PushConfig:
        """A configuration of a task; the first one without an id.

        Raises:
            PushNotFound: There is none of that id.
        """
        return config_of(self._book.config(task_id, config_id))

    async def list(self, task_id: str) -> tuple[PushConfig, ...]:
        """The configurations of a task, in the order of making."""
        return tuple(config_of(each) for each in self._book.of_task(task_id))

    async def delete(self, task_id: str, config_id: str) -> None:
        """Tell someone no more, also not of what waits.

        Raises:
            PushNotFound: There is none of that id.
        """
        self._book.remove(self._book.config(task_id, config_id).id)


def check_asker(sender_id: str) -> None:
    """Refuse agents: one in a sandbox could have what it reads sent anywhere by this program.

    Raises:
        TargetRefused: It is one.
    """
    if sender_id:
        raise TargetRefused(
            f"{sender_id} asks for pushes: an agent in a sandbox would get around it so",
            "agents wait for answers by 'synapse send'; a person or a program may ask for pushes",
        )


def check_fields(config: PushConfig) -> None:
    """Look whether all of it can stand in headers.

    Raises:
        InvalidValue: Some of it cannot; the value is not told.
    """
    for name in ("token", "credentials"):
        check_header(getattr(config, name), name)
    if config.scheme and not _SCHEME.fullmatch(config.scheme):
        raise InvalidValue("the authentication scheme is not valid", "use a word such as Bearer")
    if config.config_id and not _ID.fullmatch(config.config_id):
        raise InvalidValue(
            "the id of the push configuration is not valid", "use at most 128 ASCII characters"
        )


def check_header(value: str, name: str) -> None:
    """Look whether a value can stand in a header.

    Raises:
        InvalidValue: It cannot.
    """
    if len(value) > MAX_FIELD or (value and not re.fullmatch(r"[\x20-\x7e]+", value)):
        raise InvalidValue(f"the {name} is not valid", f"use at most {MAX_FIELD} printable ASCII characters")
