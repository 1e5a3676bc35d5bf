"""A server's certificate that nobody vouches for."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path


def self_signed(folder: Path) -> ssl.SSLContext:
    """What a server on this machine needs to speak TLS, made by OpenSSL's own program."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    where = ["-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost"]
    subprocess.run([*command, *where], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context
