"""Certificates for tests, made as a person would."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from synapse_tui.a2a.network import TlsFiles


def make_certificate(folder: Path, name: str) -> TlsFiles:
    """A certificate for a name, signed by its own key; the test is skipped where it cannot be made."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate")
    files = TlsFiles(folder / f"{name}.pem", folder / f"{name}.key")
    words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    out = ["-keyout", str(files.key), "-out", str(files.cert)]
    subprocess.run([openssl, *words, *names, *out], check=True, capture_output=True)
    return files
