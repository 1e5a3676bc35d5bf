"""Calls of tools as fields of a reply: which piece belongs to which call, and what of them comes twice. Pure.

Servers number calls, only give them ids, or do neither; they give every call the same number, or a new id to every piece; a name comes
whole, in pieces, again with each piece, or behind its arguments.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import field

from agent_core.jsonvalue import Json
from agent_core.model.stream.arriving import ID_CHARS, TEXT_CALL_INDEX, Arriving, CallNames
from agent_core.model.stream.content import ContentReader
from agent_core.model.stream.once import SaidOnce
from agent_core.model.thinking import ThoughtKeeper
from agent_core.records import dataclass
from agent_core.rules.replies import ArgumentsState, arguments_state
from agent_core.text.wellformed import Joined, label
from agent_core.turn.events import ToolCallCut, ToolCallNamed


@dataclass(slots=True)
class _Slot:
    """A native tool call that is arriving."""

    index: int
    provider_id: str = ""
    name: str = ""
    begun: str = ""
    """A name so far that is only the beginning of one on offer: some servers send names in pieces."""
    early: list[str] = field(default_factory=list[str])
    """Arguments that came before the name."""
    written: list[str] = field(default_factory=list[str])
    """Its arguments so far."""
    after: _Slot | None = None
    """The call whose number and name it shares: it is one of its own only if it says something else (opencode #33064)."""
    held: str = ""
    """An empty object at the beginning: Anthropic's, behind which the arguments come (litellm #4537), or all there is."""
    arguments: Joined = field(default_factory=Joined)
    once: SaidOnce = field(default_factory=SaidOnce)

    @property
    def goes_on(self) -> bool:
        """It has a name, and its arguments have not come to their end."""
        return bool(self.name) and not (self.written and _whole(self.written))

    def repeats(self) -> bool:
        return self.after is not None and "".join(self.written) == "".join(self.after.written)


class NativeCalls:
    """Reads the calls of one reply that come outside of its text."""

    __slots__ = ("_by_id", "_by_index", "_content", "_keeper", "_names", "_out", "_slots")

    def __init__(self, out: Arriving, names: CallNames, keeper: ThoughtKeeper, content: ContentReader) -> None:
        self._out = out
        self._names = names
        self._keeper = keeper
        self._content = content
        self._slots: list[_Slot] = []
        self._by_index: dict[int, _Slot] = {}
        self._by_id: dict[str, _Slot] = {}

    @property
    def called(self) -> bool:
        """A call has begun."""
        return bool(self._slots)

    @property
    def whole(self) -> bool:
        """Each has a name and arguments that have come to their end. An empty object may be the beginning of others."""
        return all(slot.name and not slot.held and slot.written and _whole(slot.written) for slot in self._slots)

    def finish(self) -> None:
        """The reply is over: what was held back, and the calls that are known to be incomplete."""
        self._slots = [slot for slot in self._slots if not slot.repeats()]
        for slot in self._slots:
            if slot.begun and not slot.name:
                self._name(slot, "", more=False)
            rest = slot.held + slot.arguments.finish()
            if rest and slot.name:
                self._out.arguments(slot.index, rest)
        for slot in self._slots:
            if not slot.name:
                self._out.add(ToolCallCut(at=self._out.at, name=""))

    def piece(self, entry: dict[str, Json]) -> None:
        """A piece of a call, or a whole one."""
        function = entry.get("function")
        function = function if isinstance(function, dict) else entry
        name = function.get("name")
        name = label(name) if isinstance(name, str) else ""
        provider_id = _known_by(word(entry.get("id")))
        arguments = function.get("arguments")
        arguments = _spelt(arguments) if isinstance(arguments, dict | list) else word(arguments)
        index = entry.get("index")
        number = index if isinstance(index, int) and index is not True else None
        slot = self._slot(number, provider_id, self._names.tool(name) if name else "", arguments)
        if slot is None:
            return
        if len(entry) > 2:
            self._keeper.call(slot.index, entry)
        if provider_id and not slot.provider_id:
            slot.provider_id = provider_id
            self._by_id.setdefault(provider_id, slot)
        if not slot.name and slot.after is None and (name or (slot.begun and arguments)):
            self._name(slot, name, more=not arguments)
        if arguments:
            self._more_arguments(slot, arguments)

    def _name(self, slot: _Slot, piece: str, *, more: bool) -> None:
        """A name has come, or another piece of it; `more`: there may be yet another."""
        begun = "" if piece.startswith(slot.begun) or piece in self._names.offered else slot.begun
        name = self._names.tool(begun + piece if piece else slot.begun)
        if more and any(each != name and each.startswith(name) for each in self._names.offered):
            slot.begun = name
            return
        slot.name = name
        self._content.call_came_elsewhere()
        call = self._names.call_id(slot.index, slot.provider_id)
        self._out.add(ToolCallNamed(at=self._out.at, index=slot.index, call=call, name=name))
        if slot.early:
            self._out.arguments(slot.index, "".join(slot.early))
            slot.early.clear()

    def _more_arguments(self, slot: _Slot, arguments: str) -> None:
        arguments = slot.arguments.feed(arguments)
        arguments = arguments and slot.once.arguments(arguments)
        if not arguments:
            return
        self._out.chars += len(arguments)
        if not slot.written and arguments.strip() == "{}":
            slot.written, slot.held = [arguments], arguments
            return
        if slot.held:
            if _begins(arguments):
                slot.written, slot.once = [], SaidOnce()
            else:
                arguments = slot.held + arguments
            slot.held = ""
        slot.written.append(arguments)
        if slot.name:
            self._out.arguments(slot.index, arguments)
        else:
            slot.early.append(arguments)

    def _slot(self, index: int | None, provider_id: str, name: str, arguments: str) -> _Slot | None:
        """The call that a piece belongs to, for servers that number calls, that only name ids, and that do neither.

        None if it would be one call too many.
        """
        latest = self._slots[-1] if self._slots else None
        another = False
        if index is None and provider_id:
            unnamed = latest is not None and not latest.provider_id and not (name and latest.name)
            before = self._by_id.get(provider_id) or (latest if unnamed else None)
        else:
            before = latest if index is None else self._by_index.get(index)
            if before is None and latest is not None and not (name or provider_id) and latest.goes_on:
                self._by_index[index or 0] = before = latest  # begun under another number (agno #8880)
            another = before is not None and self._is_another(before, provider_id, name, arguments)
        if before is not None and not another:
            return before
        if not self._names.one_more():
            return None
        fits = index is not None and 0 <= index < TEXT_CALL_INDEX and index not in {slot.index for slot in self._slots}
        slot = _Slot(index if index is not None and fits else self._free_index())
        if before is not None and not name:
            slot.begun, slot.after = before.name or before.begun, before  # the same tool once more
        self._slots.append(slot)
        self._by_index[slot.index if index is None else index] = slot  # who has a number last gets what comes under it
        return slot

    def _free_index(self) -> int:
        """A place behind the others, for a call whose server numbers none, or as nobody would."""
        taken = {slot.index for slot in self._slots}
        behind = max(taken, default=-1) + 1
        return behind if behind < TEXT_CALL_INDEX else next(n for n in range(TEXT_CALL_INDEX) if n not in taken)

    @staticmethod
    def _is_another(slot: _Slot, provider_id: str, name: str, arguments: str) -> bool:
        """A server that gives every call the same number, or none: whether what comes is a new call. Others repeat the name, or make a new
        id, with every piece; so where neither tells, arguments do that begin behind whole ones."""
        if name and slot.name and name != slot.name:
            return True
        if name and provider_id and slot.provider_id and provider_id != slot.provider_id:
            return not arguments or not slot.written or _begins(arguments)
        if not slot.written or not _begins(arguments) or (slot.held and not name):
            return False
        return "".join(slot.written) != arguments and _whole(slot.written)


def word(value: Json) -> str:
    """The text that stands there, if one does."""
    return value if isinstance(value, str) else ""


def _begins(arguments: str) -> bool:
    """Whether a piece of arguments may be the first one."""
    return arguments.lstrip().startswith("{")


def _whole(pieces: list[str]) -> bool:
    """Whether arguments have come to their end."""
    return pieces[-1].rstrip().endswith("}") and arguments_state("".join(pieces)) is ArgumentsState.COMPLETE


def _spelt(arguments: Json) -> str:
    """Arguments that came as an object, as text. What is nested deeper than anybody reads is no object any more."""
    try:
        return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return "{"


def _known_by(provider_id: str) -> str:
    """What a call is known by while its pieces come; one of any length takes little room."""
    return (
        provider_id
        if len(provider_id) <= ID_CHARS
        else hashlib.sha256(provider_id.encode("utf-8", "replace")).hexdigest() * 3
    )
