"""Where and how the agents of a host are served: addresses, names, certificates (settings `a2a.*`)."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.core.errors import ConfigError, PortsExhausted, SpawnError
from synapse_tui.system.dataclass import dataclass
from synapse_tui.system.files import LARGEST, read_regular

from .access import AccessRules

if TYPE_CHECKING:
    from synapse_tui.settings import Settings

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+")


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files of our servers: a certificate chain and its private key."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Network:
    """Where and how agents are served.

    Attributes:
        bind: Addresses to listen on in addition to loopback.
        allowed_hosts: Additional names accepted in the Host header, in lower case; without a port, for any
            port.
        tls: Certificate for HTTPS; None serves HTTP.
        ca: Certificates to trust in outgoing calls, in addition to the system's.
    """

    bind: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tls: TlsFiles | None = None
    ca: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> Network:
        return cls(
            bind=tuple(dict.fromkeys(map(_address, settings.words("a2a.bind")))),
            allowed_hosts=_matching(settings, "a2a.allowed_hosts", _HOST, "agents.example.com"),
            allowed_origins=_matching(settings, "a2a.allowed_origins", _ORIGIN, "https://app.example.com"),
            tls=_tls_files(settings),
            ca=_file(ca) if (ca := settings.text("a2a.tls_ca")) else None,
        )

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.tls is None else "https"

    @property
    def exposed(self) -> bool:
        return any(not ipaddress.ip_address(address).is_loopback for address in self.bind)

    def endpoint(self, port: int) -> str:
        return f"{self.scheme}://127.0.0.1:{port}"

    def check(self, rules: AccessRules) -> None:
        """Raise ConfigError if others could call agents without a key, or the certificate cannot be used."""
        if self.exposed and (not rules.enabled or rules.fault):
            raise ConfigError(
                f"agents are not served on {', '.join(self.bind)} (a2a.bind) without keys: "
                + (rules.fault or "SYNAPSE_AUTH_ENABLED is not set"),
                "run `synapse auth setup`, or take a2a.bind out of ~/.synapse/settings.json",
            )
        if self.tls is not None:
            server_context(self.tls)

    def notice(self) -> str:
        """A notice for the person; empty if only this machine can reach the agents."""
        if not self.exposed:
            return ""
        warning = (
            f"other machines can reach the agents by {self.scheme} on {', '.join(self.bind)}, with a key"
        )
        return (
            warning
            if self.tls
            else f"{warning}; without a certificate (a2a.tls_cert) keys travel in clear text"
        )


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
    return TlsFiles(_file(cert), _file(key))


def _file(path: str) -> Path:
    """Return a file that the user's settings name; a relative path starts beside them, not where we run."""
    return Path("~/.synapse").expanduser() / Path(path).expanduser()


_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """The TLS context of our servers: TLS 1.2 or newer."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # No password: there is no one to ask for it.
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificate {files.cert} with the key {files.key} cannot be used: {_reason(error)}",
            "correct a2a.tls_cert and a2a.tls_key: PEM files, the chain and its key without a password",
        ) from error
    return context


def client_context(network: Network, *, local: bool) -> ssl.SSLContext:
    """The TLS context of outgoing calls."""
    if not local or network.tls is None:
        context = ssl.create_default_context()
        if network.ca is not None:
            _trust(context, network.ca, "a2a.tls_ca")
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # The certificate itself is the trust anchor: it need not be a CA.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _trust(context, network.tls.cert, "a2a.tls_cert", most=1)
    return context


def _trust(context: ssl.SSLContext, path: Path, setting: str, *, most: int = 1000) -> None:
    """Trust the first `most` certificates of a file: later ones may be CAs that have signed others, too."""
    try:
        found = _CERTIFICATE.findall(read_regular(path, 16 * LARGEST).decode("ascii", "replace"))
        if not found:
            raise ValueError("there is no certificate in it")
        context.load_verify_locations(cadata="\n".join(found[:most]))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificates in {path} cannot be used: {_reason(error)}", f"correct {setting}: a PEM file"
        ) from error


def _no_password() -> str:
    raise ValueError("the key has a password")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)


ALL_IPV4, ALL_IPV6 = "0.0.0.0", "::"
LOOPBACK_IPV4, LOOPBACK_IPV6 = "127.0.0.1", "::1"
BACKLOG = 128
_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_NO_IPV6 = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.ENODEV}


@dataclass(frozen=True, slots=True)
class LoopbackSockets:
    """The listening sockets of one port on 127.0.0.1, [::1] (if available) and additional addresses."""

    port: int
    sockets: tuple[socket.socket, ...]
    scheme: str = "http"

    @property
    def endpoint(self) -> str:
        return f"{self.scheme}://{LOOPBACK_IPV4}:{self.port}"

    def keep(self) -> tuple[int, ...]:
        """Duplicate the descriptors, inheritable across execve(2)."""
        kept = tuple(os.dup(sock.fileno()) for sock in self.sockets if sock.fileno() >= 0)
        for descriptor in kept:
            os.set_inheritable(descriptor, True)
        return kept

    def close(self) -> None:
        """Release the port. Idempotent, even if a server has already closed the sockets."""
        for sock in self.sockets:
            sock.close()


def bind_loopback(port: int, further: Sequence[str] = (), *, scheme: str = "http") -> LoopbackSockets:
    """Bind a port on all loopback addresses and on additional ones.

    Binds all addresses or none: a process on our port of [::1] would receive requests to `localhost`.

    Raises:
        PortsExhausted: The port is taken, or this user may not bind it.
        SpawnError: The system has no room for another socket.
        ConfigError: An additional address does not belong to this machine.
    """
    with contextlib.ExitStack() as taken:
        sockets: list[socket.socket] = []
        for address in _addresses(further):
            try:
                sock = _listen(address, port)
            except OSError as error:
                if error.errno in _NO_ROOM:
                    hint = "end some agents or other programs, or raise the limits (ulimit)"
                    raise SpawnError(f"port {port} cannot be opened: {error.strerror}", hint) from error
                if error.errno not in _NO_IPV6 or not sockets:
                    raise _taken(port, error) from error
                if address in further:
                    raise _not_here(address) from error
                continue
            sockets.append(taken.enter_context(sock))
            port = sock.getsockname()[1]
        taken.pop_all()
    return LoopbackSockets(port, tuple(sockets), scheme)


def _addresses(further: Sequence[str]) -> list[str]:
    """The addresses to bind; a wildcard replaces the addresses that it includes."""
    everything = ALL_IPV6 in further
    every_ipv4 = everything or ALL_IPV4 in further
    wanted = [ALL_IPV4 if every_ipv4 else LOOPBACK_IPV4, ALL_IPV6 if everything else LOOPBACK_IPV6]
    covered = {ALL_IPV4, ALL_IPV6, LOOPBACK_IPV4, LOOPBACK_IPV6}
    rest = (address for address in further if address not in covered)
    return wanted + [address for address in rest if not (everything if ":" in address else every_ipv4)]


def adopted_sockets(port: int, descriptors: Sequence[int], *, scheme: str = "http") -> LoopbackSockets:
    """The sockets of a port that this process held before it executed another program."""
    sockets = tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)
    for sock in sockets:
        sock.set_inheritable(False)
    return LoopbackSockets(port, sockets, scheme)


def free_port(
    ports: Iterable[int], *, preferred: int = 0, further: Sequence[str] = (), scheme: str = "http"
) -> LoopbackSockets:
    """Bind the first free port of a range; raises PortsExhausted if there is none, or SpawnError."""
    choices = tuple(ports)
    for port in (preferred, *choices) if preferred else choices:
        with contextlib.suppress(PortsExhausted):
            return bind_loopback(port, further, scheme=scheme)
    span = f"{min(choices)}-{max(choices)}" if choices else "(empty)"
    raise PortsExhausted(f"no port is free in {span}", "close an agent of this type, or choose another port")


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that name their protocol; without it answers take 40 ms longer.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        # For a port in TIME_WAIT. Not SO_REUSEPORT: two hosts would share the port and its callers.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address, port))
        # With SO_REUSEADDR a port belongs to the process that listens, not to one that only bound it.
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _not_here(address: str) -> ConfigError:
    return ConfigError(
        f"a2a.bind: {address} is no address of this machine", "give one that it has, or 0.0.0.0 for all"
    )


def _taken(port: int, error: OSError) -> PortsExhausted:
    if error.errno == errno.EACCES:
        return PortsExhausted(f"port {port} is not allowed to this user", "use a port from 1024 on")
    if error.errno == errno.EADDRINUSE:
        return PortsExhausted(
            f"port {port} is taken", "use another port, or end the program that listens there"
        )
    return PortsExhausted(f"port {port} cannot be bound: {os.strerror(error.errno or 0)}", "use another port")
