"""Certificates: what our servers show, and whom our clients trust.

A call to this machine trusts the very certificate of the settings and nothing else, whatever name stands in
it: it is made for others, who call by that name, while the registry names 127.0.0.1.
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import TYPE_CHECKING

from synapse_tui.errors import ConfigError

if TYPE_CHECKING:
    from .network import Network, TlsFiles

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


def server_context(files: TlsFiles) -> ssl.SSLContext:
    """What servers speak https with: TLS 1.2 or newer.

    Raises:
        ConfigError: The certificate or its key cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # No password: nobody is there to be asked for one.
        context.load_cert_chain(files.cert, files.key, password=_no_password)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the certificate {files.cert} with the key {files.key} cannot be used: {_reason(error)}",
            "correct a2a.tls_cert and a2a.tls_key: PEM files, the chain and its key without a password",
        ) from error
    return context


def client_context(network: Network, *, near: bool) -> ssl.SSLContext:
    """What calls over https trust.

    Args:
        network: Whose certificates.
        near: Whether this machine is called, where our servers show a certificate that we know.

    Raises:
        ConfigError: A file cannot be used.
    """
    if not near or network.tls is None:
        context = ssl.create_default_context()
        if network.ca is not None:
            _trust(context, network.ca, "a2a.tls_ca")
        return context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    # The certificate itself is the anchor: it need not be one that may sign others.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    _trust(context, network.tls.cert, "a2a.tls_cert", most=1)
    return context


def _trust(context: ssl.SSLContext, path: Path, setting: str, *, most: int = 1000) -> None:
    """Trust the first certificates of a file: those after the server's own may have signed any other's."""
    try:
        found = _CERTIFICATE.findall(path.read_text(encoding="ascii", errors="replace"))
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
