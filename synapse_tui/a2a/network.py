"""Where and how the agents of a host are served: addresses, names, certificates (settings `a2a.*`)."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.errors import ConfigError

from .access import AccessRules

if TYPE_CHECKING:
    from synapse_tui.settings import Settings

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files.

    Attributes:
        cert: Certificate chain of our servers.
        key: Its private key.
    """

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Network:
    """Where and how agents are served.

    Attributes:
        bind: Addresses besides those of the loopback interface.
        allowed_hosts: Further names for the header Host, in lower case; with a port, or for any.
        allowed_origins: Web origins that may call.
        tls: What https is served with; None for http.
        ca: Certificates that are trusted when others are called, besides the system's; None for none.
    """

    bind: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tls: TlsFiles | None = None
    ca: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> Network:
        """What the settings say.

        Raises:
            ConfigError: One of them makes no sense.
        """
        return cls(
            bind=tuple(dict.fromkeys(map(_address, settings.words("a2a.bind")))),
            allowed_hosts=_matching(settings, "a2a.allowed_hosts", _HOST, "agents.example.com"),
            allowed_origins=_matching(settings, "a2a.allowed_origins", _ORIGIN, "https://app.example.com"),
            tls=_tls_files(settings),
            ca=Path(ca).expanduser() if (ca := settings.text("a2a.tls_ca")) else None,
        )

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.tls is None else "https"

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach the agents."""
        return any(not ipaddress.ip_address(address).is_loopback for address in self.bind)

    def endpoint(self, port: int) -> str:
        """The URL by which the registry names the server of a port."""
        return f"{self.scheme}://127.0.0.1:{port}"

    def check(self, rules: AccessRules) -> None:
        """Make sure that agents may be served so.

        Raises:
            ConfigError: Other machines could reach them without a key, or the certificate is of no use.
        """
        if self.exposed and (not rules.enabled or rules.fault):
            raise ConfigError(
                f"agents are not served on {', '.join(self.bind)} (a2a.bind) without keys: "
                + (rules.fault or "SYNAPSE_AUTH_ENABLED is not set"),
                "run `synapse auth setup`, or take a2a.bind out of ~/.synapse/settings.json",
            )
        if self.tls is not None:
            from .tls import server_context  # noqa: PLC0415 - seldom needed

            server_context(self.tls)

    def notice(self) -> str:
        """What the person is to know of it; empty where only this machine can reach the agents."""
        if not self.exposed:
            return ""
        told = f"other machines can reach the agents by {self.scheme} on {', '.join(self.bind)}, with a key"
        return told if self.tls else f"{told}; without a certificate (a2a.tls_cert) keys travel in clear text"


LOOPBACK = Network()


def _address(word: str) -> str:
    try:
        return str(ipaddress.ip_address(word.strip("[]")))
    except ValueError:
        raise ConfigError(
            f"a2a.bind: '{word}' is no address", "give addresses, such as 192.168.1.5, or 0.0.0.0 for all"
        ) from None


def _matching(settings: Settings, key: str, pattern: re.Pattern[str], example: str) -> tuple[str, ...]:
    words = [word.lower() for word in settings.words(key)]
    for word in words:
        if not pattern.fullmatch(word):
            raise ConfigError(f"{key}: '{word}' cannot be one", f"it looks like {example}")
    return tuple(words)


def _tls_files(settings: Settings) -> TlsFiles | None:
    cert, key = settings.text("a2a.tls_cert"), settings.text("a2a.tls_key")
    if not cert and not key:
        return None
    if not cert or not key:
        missing = "a2a.tls_key" if cert else "a2a.tls_cert"
        raise ConfigError(f"{missing} is not set", "a certificate needs its key: set both, or neither")
    return TlsFiles(Path(cert).expanduser(), Path(key).expanduser())
