"""Files in a large body: taken out of its JSON while it comes, so that no body is in memory as a whole.

JSON holds the bytes of a file as one string of base64. Of a body that is larger than what is read at once,
each long one that stands behind `raw` (A2A 1.0) or `bytes` (A2A 0.3, the dialect) goes to the disk, decoded,
and a word that nobody can guess stands in its place. What reads the parts of the message asks for the file by
that word.
"""

from __future__ import annotations

import base64
import binascii
import os
import tempfile
from collections.abc import Callable
from typing import IO

from synapse_tui.agents.delivery.incoming import MAX_FILES
from synapse_tui.errors import MessageError

from .problems import HttpProblem

KEYS = frozenset({b"raw", b"bytes"})
LONG = 8 * 1024
"""Bytes of the shortest string that is taken out: as many as may be files leave room for the text."""
PIECE = 64 * 1024
"""Bytes that are worked on in one go: other threads wait meanwhile."""
_LONGEST_KEY = max(map(len, KEYS))
_BETWEEN = b'" \t\r\n:'
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HINT = "encode the bytes as base64 (RFC 4648)"


class BodyFiles:
    """The files of one body, by the words that stand for them.

    Args:
        closed: Called once when they are not needed any more.
    """

    def __init__(self, closed: Callable[[], None] = lambda: None) -> None:
        self._files: dict[bytes, IO[bytes]] = {}
        self._asked: set[bytes] = set()
        self._closed = closed
        self._open = True

    def create(self) -> tuple[bytes, IO[bytes]]:
        """A word for a new file, and the file: one without a name, which goes with its descriptor.

        Raises:
            HttpProblem: There are as many as a message may have.
        """
        if len(self._files) >= MAX_FILES:
            raise HttpProblem(
                413,
                "too_many_files",
                f"the body has more than {MAX_FILES} files",
                "pack them, or send several messages",
                {"connection": "close"},
            )
        word = b"file " + os.urandom(16).hex().encode()
        file = self._files[word] = tempfile.TemporaryFile()  # noqa: SIM115 - closed with all of them
        return word, file

    def find(self, content: bytes) -> IO[bytes] | None:
        """The file that a content stands for; None where it is a content itself."""
        if content in self._files:
            self._asked.add(content)
        return self._files.get(content)

    def check(self) -> None:
        """See that every file was asked for.

        Raises:
            MessageError: One belongs to no part of the message.
        """
        if len(self._asked) < len(self._files):
            raise MessageError(
                "the body has long base64 that is no file of a message part",
                "give files as 'raw' or 'file.bytes' of the message's parts",
            )

    def close(self) -> None:
        """Remove the files; calling it twice is harmless."""
        for file in self._files.values():
            file.close()
        if self._open:
            self._open = False
            self._closed()


class Sieve:
    """Takes the files out of a body.

    Args:
        files: Where they go.
        most: Bytes of JSON that may be left.
    """

    def __init__(self, files: BodyFiles, most: int) -> None:
        self._files = files
        self._most = most
        self._left = bytearray()
        self._in_string = self._escaped = False
        self._string = bytearray()
        """What the string that is being read has so far, as much of it as is of interest."""
        self._key = b""
        """The last string, when nothing but a colon has come since."""
        self._between = bytearray()
        """What has come since the last string, as much of it as is of interest."""
        self._taken: _Base64 | None = None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the body.

        Raises:
            HttpProblem: There is too much in it besides files, or a file is no base64.
        """
        view = memoryview(data)
        for start in range(0, len(data), PIECE):
            self._feed(bytes(view[start : start + PIECE]))
            if len(self._left) > self._most:
                raise HttpProblem(
                    413,
                    "body_too_large",
                    f"the body has over {self._most:,} bytes ({self._most >> 20} MiB) besides its files",
                    "put the text into a file and name the file in the message",
                    {"connection": "close"},
                )

    def end(self) -> bytes:
        """The JSON without the files."""
        return bytes(self._left)

    def _feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._taken is not None:
                at = self._file(data, at, self._taken)
            elif self._in_string:
                at = self._text(data, at)
            else:
                at = self._outside(data, at)

    def _outside(self, data: bytes, at: int) -> int:
        quote = data.find(b'"', at)
        end = len(data) if quote < 0 else quote + 1
        self._between += data[at:end][-LONG:]
        self._left += data[at:end]
        if quote >= 0:
            # Only what stands right behind a key and a colon is its value.
            follows = self._between.count(b":") == 1 and not self._between.strip(_BETWEEN)
            self._key = bytes(self._string) if follows else b""
            self._in_string = True
            self._string.clear()
            self._between.clear()
        return end

    def _text(self, data: bytes, at: int) -> int:
        """Go on in a string; it ends at a quote that is not escaped."""
        start = at
        while at < len(data):
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            quote, escape = data.find(b'"', at), data.find(b"\\", at)
            if quote >= 0 and (escape < 0 or quote < escape):
                at = quote + 1
                self._in_string = False
                break
            if escape < 0:
                at = len(data)
                break
            self._escaped = True
            at = escape + 1
        self._left += data[start:at]
        if self._key in KEYS:
            self._string += data[start : at - (not self._in_string)]
            if len(self._string) >= LONG:
                self._take()
        elif len(self._string) <= _LONGEST_KEY:
            self._string += data[start : at - (not self._in_string)][: _LONGEST_KEY + 1]
        return at

    def _take(self) -> None:
        """Let what has come of the string, and the rest of it, go to a file."""
        over = not self._in_string
        del self._left[len(self._left) - len(self._string) - over :]
        word, file = self._files.create()
        self._left += base64.b64encode(word)
        self._taken = _Base64(file)
        self._taken.add(bytes(self._string))
        self._string.clear()
        self._escaped = False
        if over:
            self._end_file(self._taken)

    def _file(self, data: bytes, at: int, taken: _Base64) -> int:
        quote = data.find(b'"', at)
        taken.add(data[at : quote if quote >= 0 else len(data)])
        if quote < 0:
            return len(data)
        self._end_file(taken)
        return quote + 1

    def _end_file(self, taken: _Base64) -> None:
        taken.end()
        self._taken, self._in_string = None, False
        self._left += b'"'


class _Base64:
    """Decodes base64 piece by piece into a file; both alphabets, padded or not."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._rest = b""
        self._over = False

    def add(self, data: bytes) -> None:
        # JSON may write a slash with a backslash before it, and a piece may end between the two.
        self._rest += data
        cut = self._rest.endswith(b"\\")
        text = self._rest.replace(b"\\/", b"/")
        whole = (len(text) - cut) // 4 * 4
        self._decode(text[:whole])
        self._rest = text[whole:]

    def end(self) -> None:
        self._decode(self._rest + b"=" * (-len(self._rest) % 4))
        self._rest = b""
        self._file.flush()

    def _decode(self, text: bytes) -> None:
        if not text:
            return
        try:
            if self._over:
                raise ValueError("there is more behind its end")
            self._file.write(binascii.a2b_base64(text.translate(_URL_SAFE), strict_mode=True))
        except ValueError as error:
            raise HttpProblem(
                400, "invalid_base64", f"a file in the body is no base64: {error}", _HINT
            ) from None
        self._over = text.endswith(b"=")
