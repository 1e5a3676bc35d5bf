"""What the gateway and a worker say to each other: frames of JSON and bytes, their lengths first. Pure.

Nothing that comes from a worker is more than data: no pickle, because a page that took a worker over would have the gateway.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import orjson

from agent_core.jsonvalue import Json

_HEAD = struct.Struct(">II")
HEAD_BYTES = _HEAD.size


class Unsendable(Exception):
    """A value has no form in JSON: half a character, or a number of more than 64 bits."""


def frame(value: Mapping[str, Json], blob: bytes = b"") -> bytes:
    """A frame. Raises `Unsendable`."""
    body = json_of(value)
    return b"".join((_HEAD.pack(len(body), len(blob)), body, blob))


def json_of(value: Mapping[str, Json]) -> bytes:
    """An object as JSON. Raises `Unsendable`."""
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise Unsendable(str(error)) from error


def lengths(head: bytes) -> tuple[int, int]:
    """How many bytes of JSON follow a frame's first bytes, and how many others."""
    body, blob = _HEAD.unpack(head)
    return int(body), int(blob)


def value_of(body: bytes) -> dict[str, Json]:
    """The value of a frame. Raises `ValueError`."""
    value: Json = orjson.loads(body)
    if not isinstance(value, dict):
        raise ValueError("a frame holds an object")  # noqa: TRY004 - as for other bytes that are no frame
    return value
