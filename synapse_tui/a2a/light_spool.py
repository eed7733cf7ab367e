"""The command line's client where it may not connect: the agent's spool, or an error that says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from synapse_tui.errors import PeerUnreachable
from synapse_tui.spool.client import SpoolAccount, SpoolClient, forbidden
from synapse_tui.spool.files import SpoolRequest

from .dialect import Call


def without_connection(
    endpoint: str,
    call: Call,
    error: OSError,
    *,
    timeout: float,
    environ: Mapping[str, str],
    name_of: Callable[[str], str] = str,
) -> tuple[int, bytes]:
    """Make a call after connecting has failed; nothing of it has been sent yet.

    The request is signed by the agent in whose sandbox this runs, whoever it says it is from: only then does
    the agent's host carry it.

    Args:
        endpoint: URL of the peer.
        call: What to call.
        error: What connecting failed with.
        timeout: Seconds that the answer may take.
        environ: Tells of the agent and its spool.
        name_of: Gives the words by which errors name the peer.

    Returns:
        Status and body of the peer's answer.

    Raises:
        PeerUnreachable: There is no other way, or nobody answers on it.
    """
    account = SpoolAccount.of(environ)
    if not forbidden(error, account.folder if account else None):
        raise PeerUnreachable(
            f"nobody answers at {name_of(endpoint)}", "the agent may have just ended; see 'synapse list'"
        ) from error
    if account is None:
        raise PeerUnreachable(
            f"connecting to {name_of(endpoint)} is forbidden here: {error.strerror}; nothing was sent",
            _hint(environ),
        ) from error
    request = SpoolRequest(
        call.method,
        endpoint,
        call.target,
        call.body,
        call.headers(endpoint, account.agent_id, account.token_of),
        timeout,
    )
    answer = SpoolClient(account.folder, account.token).exchange(request)
    return answer.status, answer.body


def _hint(environ: Mapping[str, str]) -> str:
    if environ.get("SYNAPSE_SPOOL") and Path(environ["SYNAPSE_SPOOL"]).is_dir():
        return (
            "the sandbox keeps SYNAPSE_AGENT_ID or SYNAPSE_TOKEN from the command: let them through (Codex: "
            "shell_environment_policy.ignore_default_excludes = true)"
        )
    return "allow the command the network, or run it in an agent that synapse-tui has opened"
