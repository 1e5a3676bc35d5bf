"""What every request has to be before anybody serves it: headers that can be read, JSON that is not bottomless. Pure.

Law (tests/adapters/test_entrance.py): whatever bytes stand in the headers that are used here, they are read or refused, with 401 or 403 where
they were to prove who calls and 400 elsewhere; nothing raises. Only headers that somebody here reads are judged.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import orjson

from adapters.contract.platforms import Platform, Proof
from adapters.http.common import Problem
from adapters.platforms import platforms
from agent_core.jsonvalue import Json
from agent_core.text.wellformed import whole_json

ADDRESSES_KNOWN = 256
AUTHORIZATION = {"Authorization": Proof(401)}


def proofs() -> Mapping[str, Proof]:
    """Headers that are to prove who calls: ours, and those of the platforms' calls."""
    return _proofs(platforms())


@lru_cache(1)
def _proofs(of: tuple[Platform, ...]) -> Mapping[str, Proof]:
    return AUTHORIZATION | {name: proof for one in of for name, proof in one.proofs.items()}


USED = (
    "Host", "Origin", "Content-Type", "Idempotency-Key", "X-Client-Request-Id", "X-Request-Id", "X-Outspoken-Session",
    "X-Outspoken-Disconnect", "X-Outspoken-Errors", "X-Outspoken-Tools", "X-Outspoken-Approvals", "X-Outspoken-Task", "X-OpenWebUI-Task",
    "Access-Control-Request-Headers", "Sec-Fetch-Site", "X-Forwarded-For", "X-Outspoken-Browser", "Last-Event-ID",
)  # fmt: skip
_UNREADABLE = re.compile("[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")
"""What no header holds: control characters, and bytes that are no UTF-8 (which the server gives as surrogates)."""
_NAME = re.compile(r"[A-Za-z0-9._~-]*|\[[0-9A-Fa-f:.]+\]")
MOST_DEPTH = 100
"""So deep may JSON be nested: what is stored is read again by a parser that ends at 200."""
_AUTHORITIES_KNOWN = 64
"""Every request names its host; most name the same."""
_PARSERS_DEPTH = 1024
"""orjson refuses what is nested so deep."""


def unreadable(headers: Mapping[str, str]) -> Problem | None:
    """Why a request with these headers is refused before it is looked at, or None."""
    if _UNREADABLE.search("\t".join(headers.values())):  # hardly ever, so they are looked at one by one only then
        for name, proof in proofs().items():
            if (value := headers.get(name)) is not None and _UNREADABLE.search(value):
                return _unproven(proof, f"The header {name} cannot be read.")
        for name in USED:
            if (value := headers.get(name)) is not None and _UNREADABLE.search(value):
                return _bad(name)
    for name, proof in proofs().items():
        if proof.form and (value := headers.get(name)) is not None and not re.fullmatch(proof.form, value):
            return _unproven(proof, f"{name} {proof.form_words}.")
    if not authority_ok(headers.get("Host", "")):
        return _bad("Host")
    origin = headers.get("Origin", "")
    if origin not in ("", "null"):
        scheme, mark, authority = origin.partition("://")
        if not mark or not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) or not authority_ok(authority):
            return _bad("Origin")
    return None


def _unproven(proof: Proof, words: str) -> Problem:
    return Problem(proof.status, words, "authentication_error", code="invalid_api_key")


def _bad(name: str) -> Problem:
    return Problem(400, f"The header {name} cannot be read.", code="invalid_header")


@lru_cache(_AUTHORITIES_KNOWN)
def authority_ok(text: str) -> bool:
    """Whether this is a host's name or address, with or without a port, and nothing else."""
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port
    except ValueError:
        return False
    name = text.removesuffix(f":{port}") if port is not None else text.removesuffix(":")
    return parts.netloc == text and _NAME.fullmatch(name) is not None


class NotJson(ValueError):
    """A body that cannot be read, in words for whoever sent it."""


def json_of(raw: bytes) -> Json:
    """The JSON of a body. Raises `NotJson`."""
    try:
        value: Json = orjson.loads(raw)
        if raw.count(b"[") + raw.count(b"{") > MOST_DEPTH:
            room = _PARSERS_DEPTH - MOST_DEPTH
            orjson.loads(b"[" * room + raw + b"]" * room)
    except orjson.JSONDecodeError as error:
        if "surrogate" in str(error) and (mended := whole_json(raw)) != raw:
            return json_of(mended)
        if "recursion" in str(error) or "depth" in str(error):
            raise NotJson(f"The body is not valid JSON: it is nested deeper than {MOST_DEPTH} levels.") from error
        raise NotJson(f"The body is not valid JSON: {error}") from error
    return value


def client_of(peer: str, forwarded: str, trusted: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> str:
    """Who is at the other end: the peer, or whom a trusted proxy says that it speaks for (the last one that is no proxy of ours)."""
    if not is_among(peer, trusted):
        return peer
    for one in reversed([part.strip() for part in forwarded.split(",")]):
        if not is_among(one, trusted):
            return one or peer
    return peer


def is_among(address: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    """Whether an address belongs to one of these networks; what is no address does not."""
    found = address_of(address)
    return found is not None and any(found in network for network in networks if network.version == found.version)


@lru_cache(ADDRESSES_KNOWN)
def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The address, of IPv4 where it is one in the clothes of IPv6; None if it is none."""
    try:
        found = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
