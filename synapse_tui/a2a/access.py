"""Access rules: keys, the exception for the user's own processes, and rate limits.

The user's own processes need no key, since they could read the settings anyway. A request counts as theirs if
it comes from this machine, the kernel reports the peer socket as owned by the same user, and it was made by a
loopback name and neither forwarded nor a notification: all three, because a tunnel or proxy runs as the
same user but serves others, and a host sends notifications to where its callers asked. Where the system does
not report owners, that check is skipped unless keys are required. All other callers need a key, whatever the
settings. With `SYNAPSE_AUTH_ENABLED` and without `SYNAPSE_ALLOW_LOCALHOST` every caller does.
"""

from __future__ import annotations

import ipaddress
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from synapse_tui.core.model import INTERRUPT_PRIORITY, USER
from synapse_tui.settings import SCHEMA
from synapse_tui.settings.keys import ApiKey, digest_of, read_keys
from synapse_tui.system.dataclass import dataclass

from .problems import HttpProblem
from .socket_owner import Owner

if TYPE_CHECKING:
    from synapse_tui.settings import Settings

log = logging.getLogger(__name__)

MAX_CALLERS = 2000
"""Number of token buckets; the least recently used is evicted first."""


class TokenBuckets:
    """Token buckets by caller, each with a capacity of one minute's worth."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, most: int = MAX_CALLERS) -> None:
        self._clock = clock
        self._most = most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str, per_minute: int) -> int:
        """Take a token. Returns 0, or the seconds until the next one is available."""
        if per_minute <= 0:
            return 0
        tokens, since = self._buckets.get(caller, (float(per_minute), self._clock()))
        tokens = min(float(per_minute), tokens + (self._clock() - since) * per_minute / 60)
        self._buckets[caller] = (tokens - 1 if tokens >= 1 else tokens, self._clock())
        self._buckets.move_to_end(caller)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return 0 if tokens >= 1 else math.ceil((1 - tokens) * 60 / per_minute)


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of a request; `scope["state"]["principal"]` in each request that the guard admits.

    Attributes:
        name: The name of its key, or the id of the agent that signed; empty for the person.
        admin: Whether it has the person's permissions: see all tasks, reorder the outbox, read the inbox,
            watch, manage webhooks and external agents.
        verified: Whether a key, a signature or the kernel proves who it is.
        local: Whether it is the person on this machine, who could call its other programs directly.
    """

    name: str = ""
    admin: bool = False
    verified: bool = False
    max_priority: int = INTERRUPT_PRIORITY
    local: bool = False

    def may_see(self, caller: str) -> bool:
        return self.admin or caller == self.name


PERSON = Principal("", admin=True, verified=True, local=True)
"""The person who owns the agents, by a process of the same user or in the application itself."""
NOBODY = Principal()
"""An unauthenticated caller; it may read a card at most."""


def signed_by(sender_id: str, *, near: bool) -> Principal:
    """The principal of a valid signature: an agent of this host, or its person."""
    if sender_id == USER.sender_id:
        return replace(PERSON, local=near)
    return Principal(sender_id, verified=True)


CHALLENGE = 'Bearer realm="synapse-tui"'
FAILURES = 60
"""Wrong keys per minute and address."""
LOGGED = 120
"""Refusals logged per minute."""
REFRESH = 1.0
"""Minimum seconds between two checks of the settings."""
_ADMIN = "admin"
_PREFIX = "env.SYNAPSE_"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The settings that govern callers.

    Attributes:
        enabled: Whether keys are required (`SYNAPSE_AUTH_ENABLED`).
        admin_keys: Keys with the person's permissions.
        allow_localhost: Whether the person's own processes are exempt.
        fault: Why no key is accepted; empty if keys are usable.
        rate: Requests per minute for a caller with a key; 0 means unlimited.
        local_rate: The same for the person and the agents.
    """

    enabled: bool = False
    keys: tuple[ApiKey, ...] = ()
    admin_keys: tuple[ApiKey, ...] = ()
    allow_localhost: bool = True
    fault: str = ""
    rate: int = int(str(SCHEMA["a2a.rate_limit"].default))
    local_rate: int = int(str(SCHEMA["a2a.rate_limit_local"].default))

    @classmethod
    def of(cls, settings: Settings) -> AccessRules:
        """Read the rules from the settings. If a guard setting cannot be read, no caller is admitted."""
        rules = cls(
            enabled=settings.flag(f"{_PREFIX}AUTH_ENABLED"),
            keys=read_keys(settings.words(f"{_PREFIX}API_KEYS")),
            admin_keys=tuple(map(_as_admin, read_keys(settings.words(f"{_PREFIX}ADMIN_KEY")))),
            allow_localhost=settings.flag(f"{_PREFIX}ALLOW_LOCALHOST"),
            rate=settings.number("a2a.rate_limit"),
            local_rate=settings.number("a2a.rate_limit_local"),
        )
        if settings.doubtful:
            names = ", ".join(sorted(key.removeprefix("env.") for key in settings.doubtful))
            return replace(rules, enabled=True, fault=f"what is set for {names} cannot be read")
        return replace(rules, fault=rules.find_fault())

    def find_fault(self) -> str:
        admins = {key.name for key in self.admin_keys}
        shared = sorted(admins & {key.name for key in self.keys})
        if shared:
            return f"the name '{shared[0]}' stands for a key and for an admin key"
        if self.enabled and not self.keys and not self.admin_keys:
            return "keys are demanded and none is set"
        return ""

    def find(self, secret: str) -> Principal | None:
        digest = digest_of(secret)
        # Compare with all keys, so that the time taken does not reveal which one nearly matches.
        users = [key for key in self.keys if key.fits(digest)]
        admins = [key for key in self.admin_keys if key.fits(digest)]
        if admins:
            return Principal(admins[0].name, admin=True, verified=True)
        return Principal(users[0].name, verified=True, max_priority=users[0].max_priority) if users else None


def _as_admin(key: ApiKey) -> ApiKey:
    return replace(key, name=_ADMIN) if key.unnamed else key


@dataclass(frozen=True, slots=True)
class RequestOrigin:
    """What is known of a caller before authentication.

    `near` means that it calls from this machine, by a loopback name, and neither was forwarded nor is a
    notification of ours.
    """

    near: bool
    owner: Owner
    key: str | None = None
    address: str = ""


class Access:
    """The rules and rate limits of all servers of a host; `look` waits until the rules are current."""

    def __init__(
        self,
        rules: AccessRules,
        *,
        look: Callable[[], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rules = rules
        self._look = look
        self._clock = clock
        self._looked = clock()
        self._buckets = TokenBuckets(clock=clock)

    async def refresh(self) -> None:
        """Check the settings for changes, at most once a second, in case file notifications do not work."""
        if self._look is not None and self._clock() - self._looked >= REFRESH:
            self._looked = self._clock()
            await self._look()

    def follow(self, rules: AccessRules) -> None:
        if rules != self.rules:
            self.rules = rules
            state = rules.fault or ("keys are demanded" if rules.enabled else "keys are not demanded")
            log.info("the rules about callers have changed: %s", state)

    def judge(self, caller: RequestOrigin) -> Principal:
        """Identify a caller by its key and origin; raises HttpProblem if a key is missing or wrong."""
        rules = self.rules
        mine = self._is_mine(caller)
        if caller.key is None:
            if not mine:
                self._count(f"at {_network(caller.address)}", rules.rate)
                raise self._refusal(caller)
            return replace(PERSON, verified=caller.owner is Owner.OURS)
        found = self._by_key(caller)
        if found is not None:
            return replace(found, admin=found.admin or mine)
        if mine and not rules.enabled:  # no key was needed: this one is for another server
            return replace(PERSON, verified=caller.owner is Owner.OURS)
        raise HttpProblem(
            401,
            "invalid_key",
            rules.fault or "the server does not know this key",
            "see `synapse auth status`; a key that was replaced or withdrawn does not work any more",
            {"www-authenticate": f'{CHALLENGE}, error="invalid_token"'},
        )

    def _is_mine(self, caller: RequestOrigin) -> bool:
        rules = self.rules
        if not rules.enabled:
            return caller.near and caller.owner is not Owner.OTHER
        allowed = rules.allow_localhost and not rules.fault
        return allowed and caller.near and caller.owner is Owner.OURS

    def _by_key(self, caller: RequestOrigin) -> Principal | None:
        """The principal of the caller's key, if it is valid.

        Wrong keys from the same address never block a valid one: keys are too long to guess, and many callers
        may share an address.
        """
        found = None if self.rules.fault else self.rules.find(caller.key or "")
        if found is None:
            wait = self._buckets.take(f"wrong {_network(caller.address)}", FAILURES)
            if wait:
                raise _too_many("too many wrong keys came from this address", wait)
        return found

    def _refusal(self, caller: RequestOrigin) -> HttpProblem:
        rules = self.rules
        if not rules.enabled and not rules.keys and not rules.admin_keys:
            return _not_the_person(caller)
        headers = {"www-authenticate": CHALLENGE}
        if rules.fault:
            return HttpProblem(
                401,
                "no_usable_keys",
                rules.fault,
                "make keys with `synapse auth setup`, or correct the settings",
                headers,
            )
        return HttpProblem(
            401,
            "key_required",
            "a key is needed",
            "send it as X-API-Key or as Authorization: Bearer; `synapse` sends $SYNAPSE_API_KEY",
            headers,
        )

    def count(self, principal: Principal, caller: RequestOrigin, *, signed: bool) -> None:
        """Count a request; raises HttpProblem if the caller's rate limit is exceeded."""
        local = signed or principal.admin
        # Unverified callers are counted by address.
        who = f"caller {principal.name}" if principal.verified or local else f"at {_network(caller.address)}"
        self._count(who, self.rules.local_rate if local else self.rules.rate)

    def _count(self, who: str, rate: int) -> None:
        wait = self._buckets.take(who, rate)
        if wait:
            raise _too_many("too many requests", wait)

    def may_log(self) -> bool:
        return not self._buckets.take("log", LOGGED)


def _too_many(message: str, wait: int) -> HttpProblem:
    return HttpProblem(
        429, "too_many_requests", message, f"try again in {wait} s", {"retry-after": str(wait)}
    )


def _not_the_person(caller: RequestOrigin) -> HttpProblem:
    hint = "call as the agent's own user, from this machine, or with a key of `synapse auth setup`"
    if caller.owner is Owner.OTHER:
        return HttpProblem(403, "foreign_user", "the caller belongs to another user of this machine", hint)
    return HttpProblem(
        403, "forwarded", "the request was forwarded, or made by a name that others can use", hint
    )


def _network(address: str) -> str:
    """The key for rate limits of an address: for IPv6 its first 64 bits, since one caller has them all."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.version == 4:
        return str(parsed)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


DEFAULT_RULES = AccessRules()
