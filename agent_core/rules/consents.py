"""Standing consents: for how long somebody's word counts, and for what exactly. Pure.

A *kind* is what "always" covers: a tool, and what decides where its effect happens, by a table. Of an address that is its host, of a path its folder,
of anything else that decides the value as it is. A call is covered by exactly the kind that it has itself, so that what is shown beneath the
question is all that is agreed to.

Once the model has read words of others, only what was agreed to in answer to a question that said so counts, and that in its own conversation:
nobody who agreed before has agreed to what a page wants. So "always" is not offered then.

Laws (tests/agent_core/test_consents.py): a call has the kind that was agreed to, or it is asked about; calls of one kind go to one host, one folder,
one recipient; what was agreed to before words of others were read lets no call through after that.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable
from enum import StrEnum

from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.rules.taint import host_of
from agent_core.text.shown import middle, plain
from agent_core.text.tongue import speak
from agent_core.tools.arguments import parsed

LONGEST = 300
"""Characters of what decides. What is longer cannot be shown whole, and is agreed to once only."""
DECIDES = frozenset({
    "path", "url", "uri", "command", "cmd", "argv", "script", "code", "host", "hosts", "to", "chat", "channel", "recipient", "name", "pattern",
    "scope", "person", "address", "server", "database", "table", "repo", "repository", "owner", "branch", "source", "destination", "file", "network",
})  # fmt: skip
"""Names of arguments that say where something happens, or what exactly does."""
_ADDRESSES = frozenset({"url", "uri", "address"})
_PATHS = frozenset({"path", "file"})


class Lasting(StrEnum):
    """For how long a consent counts."""

    ONCE = ""
    CONVERSATION = "conversation"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Kind:
    """Calls that one consent covers."""

    tool: str
    limits: tuple[tuple[str, str], ...] = ()
    """What decides, by the argument's name; empty: any arguments."""
    tainted: bool = False
    """The question said that the model had read words of others."""
    asker: str = ""
    """Whose turns it covers, where several people share a conversation, as ACCOUNT/PERSON; empty: everybody's there."""

    def shown(self) -> str:
        """What is covered, beneath the question: exactly, and in no language."""
        return ", ".join((middle(plain(self.tool), 100), *(f"{key} {plain(value)}" for key, value in self.limits)))

    def words(self) -> str:
        """What is covered, for people: exactly, in their language."""
        tool = middle(plain(self.tool), 100)
        if not self.limits:
            return speak("every call of {tool}, with any arguments", tool=tool)
        limits = ", ".join(f"{key} {plain(value)}" for key, value in self.limits)
        return speak("every call of {tool} with {limits}", tool=tool, limits=limits)


def kind_of(tool: str, arguments: str) -> Kind | None:
    """What a standing consent to this call would cover; None if there can be none."""
    found = parsed(arguments)
    if isinstance(found, str):
        return None
    limits = [(name, _limit(name, found[name])) for name in sorted(found) if name.lower() in DECIDES]
    if any(not value or len(value) > LONGEST for _, value in limits):
        return None
    return Kind(tool, tuple(limits))


def _limit(name: str, value: Json) -> str:
    """What of an argument decides; empty if it cannot be said."""
    lower = name.lower()
    if isinstance(value, str) and lower in _ADDRESSES and "://" in value:
        host = host_of(value)
        return f"{value.partition('://')[0].lower()}://{host}/…" if host else ""
    if isinstance(value, str) and lower in _PATHS:
        folder = posixpath.dirname(posixpath.normpath(value))
        usable = folder and not folder.startswith((".", "/"))
        return f"{folder}/…" if usable else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def offered(tool: str, arguments: str, *, tainted: bool, once: bool) -> tuple[Lasting, ...]:
    """For how long somebody may agree to a call; `once`: to no more than this one."""
    if once or kind_of(tool, arguments) is None:
        return (Lasting.ONCE,)
    return (Lasting.ONCE, Lasting.CONVERSATION) if tainted else (Lasting.ONCE, Lasting.CONVERSATION, Lasting.ALWAYS)


def covered(kinds: Iterable[Kind], tool: str, arguments: str, *, tainted: bool) -> Kind | None:
    """The consent that covers a call, if there is one; `tainted`: the model has read words of others."""
    given = tuple(kinds)
    kind = kind_of(tool, arguments) if given else None
    if kind is None:
        return None
    same = (one for one in given if (one.tool, one.limits) == (kind.tool, kind.limits))
    return next((one for one in same if one.tainted or not tainted), None)
