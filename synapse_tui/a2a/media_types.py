"""Which media types of parts are taken: all that agents or people may know what to do with."""

from __future__ import annotations

import re

from .problems import HttpProblem

_FORM = re.compile(r"([a-z0-9][a-z0-9!#$&^_.+-]{0,126})/([a-z0-9][a-z0-9!#$&^_.+-]{0,126})")
_KINDS = frozenset(
    {"text", "image", "audio", "video", "font", "model", "message", "multipart", "application"}
)
_PRIVATE = frozenset(
    {
        "x-7z-compressed", "x-bzip", "x-bzip2", "x-compress", "x-compressed", "x-csh", "x-diff",
        "x-empty", "x-gzip", "x-httpd-php", "x-ipynb+json", "x-java", "x-javascript", "x-json",
        "x-jsonlines", "x-latex", "x-ndjson", "x-patch", "x-perl", "x-pem-file", "x-php",
        "x-powershell", "x-python", "x-python-code", "x-rar-compressed", "x-ruby", "x-sh",
        "x-shellscript", "x-sql", "x-sqlite3", "x-tar", "x-tex", "x-toml", "x-typescript",
        "x-www-form-urlencoded", "x-x509-ca-cert", "x-xz", "x-yaml", "x-zip-compressed", "x-zstd",
    }
)  # fmt: skip
"""The private types of `application/` that mean the same to everyone."""


def check_media_type(media_type: str, where: str) -> None:
    """See that the type of a part is one that something can be made of.

    Args:
        media_type: The type, with parameters or not; empty for none.
        where: Which part it is, for the error.

    Raises:
        HttpProblem: It is no media type, or one that only its sender knows (415).
    """
    main = media_type.partition(";")[0].strip().lower()
    if not main:
        return
    found = _FORM.fullmatch(main)
    private = found is not None and found[1] == "application" and found[2].startswith("x-")
    if found is None or found[1] not in _KINDS or (private and found[2] not in _PRIVATE):
        raise HttpProblem(
            415,
            "content_type_not_supported",
            f"{where} is of the type '{main[:100]}', which is not known",
            "leave the type out, or send it as application/octet-stream",
        )
