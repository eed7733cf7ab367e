"""Names to addresses without waiting for a name server on the loop, at exit, or in anybody else's threads."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import ip_address
from typing import Any

MAX_LOOKUPS = 32
"""How many names are looked up at a time; a name server that hangs holds one thread a name."""

GetAddrInfo = Callable[..., Sequence[tuple[Any, ...]]]


class Resolver:
    """Looks names up in threads of its own, which nobody waits for.

    Args:
        getaddrinfo: Asks the system.
        limit: How many names are looked up at a time.
    """

    def __init__(self, getaddrinfo: GetAddrInfo = socket.getaddrinfo, limit: int = MAX_LOOKUPS) -> None:
        self._getaddrinfo = getaddrinfo
        self._left = asyncio.Semaphore(limit)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses of a host, in the order of trying; an address is its own.

        Raises:
            OSError: It has none, or they cannot be found out.
        """
        try:
            return (str(ip_address(host)),)
        except ValueError:
            pass
        await self._left.acquire()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Sequence[str]] = loop.create_future()

        def settle(found: Sequence[str] | OSError) -> None:
            self._left.release()
            if answer.done():
                return
            if isinstance(found, OSError):
                answer.set_exception(found)
            else:
                answer.set_result(found)

        def ask() -> None:
            found = self._ask(host, port)
            try:
                loop.call_soon_threadsafe(settle, found)
            except RuntimeError:
                return  # the loop has ended meanwhile: nobody wants to know any more

        # A daemon: a name server that does not answer must not keep the program from ending.
        threading.Thread(target=ask, name=f"lookup-{host[:40]}", daemon=True).start()
        return await answer

    def _ask(self, host: str, port: int) -> Sequence[str] | OSError:
        try:
            found = self._getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            return error
        except UnicodeError:
            return OSError("the name cannot be looked up")
        return tuple(dict.fromkeys(str(each[4][0]) for each in found))
