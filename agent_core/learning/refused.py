"""What models refused of conversations that clients bring along each time: remembered by content, so that it is not sent there again.

A conversation that the gateway keeps remembers that by itself (`SessionMemory`). One that is brought along has no name; what is in it tells it
again. Only pictures, sounds and files are remembered, which are no two people's by chance; words are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from agent_core.failures.leftout import LeftOut, LeftOutKind, Suspect, attached
from agent_core.messages import Message

MOST = 1_000
"""Parts that are remembered; the one that came up longest ago is forgotten first."""

_Key: TypeAlias = tuple[str, str, LeftOutKind, str]


class RefusedContents:
    """As long as the process runs."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[_Key, Suspect] = {}

    def note(self, left: Sequence[LeftOut], messages: Sequence[Message]) -> None:
        there = attached(messages)
        for one in left:
            for part in one.parts:
                for kind, key in there:
                    if kind is part.kind and part.key in ("", key):
                        self._keep((one.endpoint, one.model, kind, key), Suspect(key, kind, part.role, part.named))
        while len(self._known) > MOST:
            del self._known[next(iter(self._known))]

    def of(self, messages: Sequence[Message]) -> tuple[LeftOut, ...]:
        """What of `messages` is known to be refused, and where."""
        if not self._known:
            return ()
        there = attached(messages)
        found = [known for known in self._known if (known[2], known[3]) in there]
        for known in found:
            self._keep(known, self._known[known])
        return tuple(
            LeftOut(endpoint, model, (self._known[endpoint, model, kind, key],)) for endpoint, model, kind, key in found
        )

    def _keep(self, key: _Key, part: Suspect) -> None:
        self._known.pop(key, None)
        self._known[key] = part
