"""Signatures of webhooks: the specification's own (https://www.standardwebhooks.com, version v1), and GitHub's. Pure.

Law (tests/webhooks/test_rules.py): what is signed with a secret is found good with any list that holds it, within the tolerance, and
nothing else is; every comparison takes as long wherever the difference stands.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from enum import StrEnum

PREFIX = "whsec_"
SECRET_BYTES = (24, 64)
"""How long a secret may be, by the specification."""
TOLERANCE_MS = 5 * 60_000
"""So far from our clock a call's own time may lie."""
MOST_SIGNATURES = 20
"""So many of a call's signatures are looked at."""


class Unsigned(StrEnum):
    """Why a call is not taken for what it says it is."""

    INCOMPLETE = "incomplete"
    """A header is missing, or is none."""
    TOO_OLD = "too_old"
    TOO_NEW = "too_new"
    WRONG = "wrong"
    """It is signed with none of our secrets."""


def key_of(secret: str) -> bytes:
    """The bytes of a secret as it is written, ``whsec_`` and base64. Raises ValueError in words without the secret."""
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX).encode(), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("is no whsec_ followed by base64") from None
    least, most = SECRET_BYTES
    if not least <= len(key) <= most:
        raise ValueError(f"holds {len(key)} bytes, and must hold {least} to {most}")
    return key


def signature(key: bytes, message: str, seconds: int, body: bytes) -> str:
    """One signature."""
    made = hmac.new(key, _bytes(f"{message}.{seconds}.") + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(made).decode()}"


def _bytes(header: str) -> bytes:
    """What stands in a header, as it came: bytes that are no UTF-8 are read as halves of surrogate pairs."""
    return header.encode("utf-8", "surrogatepass")


def headers(keys: Iterable[bytes], message: str, now_ms: int, body: bytes) -> dict[str, str]:
    """The three headers of a message that is sent now: signed with every secret, so that one can be changed for another."""
    seconds = now_ms // 1000
    return {
        "webhook-id": message,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signature(key, message, seconds, body) for key in keys),
    }


def unsigned(
    keys: Iterable[bytes], message: str, timestamp: str, signatures: str, body: bytes, now_ms: int
) -> Unsigned | None:
    """Why a call with these headers is not taken for ours; None if it is."""
    if not message or not signatures or not (timestamp.isascii() and timestamp.isdigit()) or len(timestamp) > 15:
        return Unsigned.INCOMPLETE
    apart = int(timestamp) * 1000 - now_ms
    if apart < -TOLERANCE_MS:
        return Unsigned.TOO_OLD
    if apart > TOLERANCE_MS:
        return Unsigned.TOO_NEW
    given = [_bytes(one) for one in signatures.split(" ")[:MOST_SIGNATURES]]
    good = False
    for key in keys:
        ours = signature(key, message, int(timestamp), body).encode()
        for one in given:  # all of them, whichever is good
            good |= hmac.compare_digest(ours, one)
    return None if good else Unsigned.WRONG


def github_unsigned(keys: Iterable[bytes], signature_header: str, body: bytes) -> Unsigned | None:
    """The same of ``X-Hub-Signature-256``, which signs the body alone: it has no time."""
    if not signature_header.startswith("sha256="):
        return Unsigned.INCOMPLETE
    given, good = _bytes(signature_header), False
    for key in keys:
        good |= hmac.compare_digest(b"sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest().encode(), given)
    return None if good else Unsigned.WRONG
