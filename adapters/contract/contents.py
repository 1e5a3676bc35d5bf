"""The stored form of a part's content."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from adapters.contract.chat import Content, ContentKind
from adapters.text.styled import Styled
from agent_core import storedjson
from agent_core.text.tongue import speak

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@functools.cache
def _adapter() -> TypeAdapter[Content]:
    from pydantic import TypeAdapter

    return TypeAdapter(Content)


def encode(content: Content) -> bytes:
    """The content as a delivery's `want`."""
    return storedjson.dumps(content)


def decode(want: bytes) -> Content:
    """The content of a delivery; one that this program cannot read becomes a sentence that says so."""
    try:
        return _adapter().validate_json(want)
    except ValueError:
        words = speak(
            "(A part of this conversation was stored by another version of this program and cannot be shown.)"
        )
        return Content(ContentKind.ASIDE, Styled(words, ()))
