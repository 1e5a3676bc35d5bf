"""Whose tools a request agrees to, and which requests are front ends' own errands (titles, tags, what to say next). Pure.

Whose tools may be used is what the request says, in this order:

1. ``tool_choice: "none"``: nobody's. No tool is offered or run, whatever else is said.
2. ``outspoken: {"tools": "none" | "client" | "gateway" | "both"}``, or the header ``X-Outspoken-Tools``; an errand has none of the gateway's by the
   header, as front ends send theirs with every request.
3. ``tools`` with something in it: the client's alone. Such a client runs its own loop, and expects each call to be its own.
4. An errand: nobody's.
5. ``tools: []``: nobody's. It says that there are none.
6. Nothing: the gateway's.

``outspoken: {"approvals": "wait"}``, or the header ``X-Outspoken-Approvals: wait``, says that somebody will decide about calls that need approval.

A key may say whose tools its requests use (`outspoken keys add --tools-from`): they do where they do not say themselves, and may not want more.

An errand is a small request that a front end makes for itself, on behalf of nobody. It is told by ``outspoken: {"task": …}``, by the header
``X-Outspoken-Task`` or Open WebUI's ``X-OpenWebUI-Task`` (its administrators set it to ``{{TASK}}``), and by the words that front ends send as
they are installed. An errand has no tools and no memory, is asked for once more at most, and is no incident.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from adapters.http.common import Problem
from adapters.http.errorsas import Disconnect
from agent_core.jsonvalue import Json
from agent_core.messages import Message, text_of
from agent_core.records import changed, dataclass
from agent_core.text.patterns import late
from agent_core.tools.offer import ToolsFrom

TOOLS_HEADER = "X-Outspoken-Tools"
APPROVALS_HEADER = "X-Outspoken-Approvals"
DISCONNECT_HEADER = "X-Outspoken-Disconnect"
WAIT = "wait"
TASK_HEADERS = ("X-Outspoken-Task", "X-OpenWebUI-Task")
_SAID_BY = (*TASK_HEADERS, APPROVALS_HEADER, TOOLS_HEADER)
NO_TOOLS = "none"
_OWN = frozenset({"session", "tools", "task", "approvals"})
"""What stands in the object ``outspoken`` of a request."""
_ERRANDS = (
    # Open WebUI. What it asks with documents begins alike ("Respond to the user query"), and is somebody's question.
    late(r"\A### Task:\s+(?!Respond to the user).*(?:<chat_history>|autocompletion system)", re.DOTALL),
    late(r"\AProvide a concise, 5-word-or-less title for the conversation"),  # LibreChat
    late(r"\AWrite a concise title for this conversation"),
)
_ERRANDS_OF_THE_SYSTEM = late(  # LobeChat
    r"\AYou are (?:a professional conversation summarizer|an assistant skilled in conversation who needs to summarize)"
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request wants to have done for it beside an answer."""

    tools: ToolsFrom = ToolsFrom.GATEWAY
    errand: bool = False
    forbidden: bool = False
    """It has said that no tool may be used: nothing else that it says changes that."""
    said: bool = False
    """It has said itself whose tools it wants."""
    waits: bool = False
    """A call that needs somebody's approval waits for it; else it is not run, as nobody is there to ask."""


def wish_of(
    own: Mapping[str, Json], tools: Sequence[object], choice: Json, *, emptied: bool, messages: Sequence[Message]
) -> Wish | str:
    """What the body of a request says: `own` is its ``outspoken`` object, `emptied` that it brings an empty list of tools. In words, if it
    makes no sense."""
    if unknown := sorted(own.keys() - _OWN):
        return f"outspoken.{unknown[0]} is not known; it has: {', '.join(sorted(_OWN))}"
    asked, task = own.get("tools"), own.get("task")
    if asked is not None and asked not in list(ToolsFrom):
        return f"outspoken.tools must be one of: {', '.join(ToolsFrom)}"
    if task is not None and not isinstance(task, str):
        return "outspoken.task must be text"
    waits = own.get("approvals")
    if waits not in (None, WAIT):
        return f'outspoken.approvals must be "{WAIT}", or left out'
    wish = _tools_wish(asked, tools, choice, errand=_is_errand(task, tools, messages), emptied=emptied)
    return changed(wish, waits=True) if waits is not None else wish


def _is_errand(task: str | None, tools: Sequence[object], messages: Sequence[Message]) -> bool:
    return bool(task) or (not tools and _sounds_like_one(messages))


def _tools_wish(asked: Json, tools: Sequence[object], choice: Json, *, errand: bool, emptied: bool) -> Wish:
    forbidden = choice == NO_TOOLS
    if forbidden:
        return Wish(ToolsFrom.NONE, errand, forbidden=True)
    if asked is not None:
        return Wish(ToolsFrom(str(asked)), errand, said=True)
    if tools:
        return Wish(ToolsFrom.CLIENT, errand)
    if errand:
        return Wish(ToolsFrom.NONE, errand)
    return Wish(ToolsFrom.NONE if emptied else ToolsFrom.GATEWAY)


def wish_with(wish: Wish, headers: Mapping[str, str]) -> Wish | Problem:
    """The wish with what headers say, where the body says nothing."""
    if not [name for name in _SAID_BY if name in headers]:
        return wish
    if any((task := headers.get(name, "").strip()) and not task.startswith("{{") for name in TASK_HEADERS):
        wish = replace(wish, errand=True, tools=wish.tools if wish.said else wish.tools.within(ToolsFrom.CLIENT))
    if waits := headers.get(APPROVALS_HEADER, "").strip().lower():
        if waits != WAIT:
            words = f"{APPROVALS_HEADER} must be {WAIT}, or left out."
            return Problem(400, words, param=APPROVALS_HEADER, code="invalid_header")
        wish = replace(wish, waits=True)
    asked = headers.get(TOOLS_HEADER, "").strip().lower()
    if not asked:
        return wish
    if asked not in list(ToolsFrom):
        words = f"{TOOLS_HEADER} must be one of: {', '.join(ToolsFrom)}."
        return Problem(400, words, param=TOOLS_HEADER, code="invalid_header")
    if wish.forbidden or wish.said:
        return wish
    # Front ends send their headers with everything: an errand has none of the gateway's for it
    wanted = ToolsFrom(asked)
    return replace(wish, tools=wanted.within(ToolsFrom.CLIENT) if wish.errand else wanted, said=True)


def gone_with(headers: Mapping[str, str], configured: Disconnect) -> Disconnect | Problem:
    """What happens to a request whose client hangs up: as its header says, else as the server is configured."""
    said = headers.get(DISCONNECT_HEADER, "").strip().lower()
    if not said:
        return configured
    if said not in list(Disconnect):
        words = f"{DISCONNECT_HEADER} must be one of: {', '.join(Disconnect)}."
        return Problem(400, words, param=DISCONNECT_HEADER, code="invalid_header")
    return Disconnect(said)


def wish_of_key(wish: Wish, allowed: ToolsFrom | None) -> Wish | Problem:
    """The wish as the request's key has it; a problem where the request itself wants tools that its key may not use."""
    if allowed is None or wish.tools is ToolsFrom.NONE:
        return wish
    brought = wish.tools.clients
    if wish.tools.within(allowed) is not wish.tools and (wish.said or brought):
        words = f"This key may use tools from: {allowed}. The request wants them from: {wish.tools}."
        return Problem(403, words, "permission_error", param="tools", code="tools_not_allowed")
    if wish.said or wish.errand:
        return wish
    return replace(wish, tools=allowed if brought else allowed.within(ToolsFrom.GATEWAY))


def named_choice(choice: Json) -> str:
    """The tool that a ``tool_choice`` names, in either endpoint's spelling; empty if it names none."""
    if not isinstance(choice, dict):
        return ""
    function = choice.get("function")
    name = function.get("name") if isinstance(function, dict) else choice.get("name")
    return name if isinstance(name, str) else ""


@dataclass(frozen=True, slots=True)
class AllowedTools:
    """Which of the tools that a request brings are to be offered, and whether one of them has to be called."""

    names: tuple[str, ...]
    mode: str


def allowed_tools(choice: Json) -> AllowedTools | str | None:
    """What a ``tool_choice`` allows, in either endpoint's spelling; None if it is of another type. A text says what is wrong with it."""
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return None
    said = choice.get("allowed_tools", choice)
    listed = said.get("tools") if isinstance(said, dict) else None
    mode = said.get("mode", "auto") if isinstance(said, dict) else None
    if not isinstance(listed, list) or mode not in ("auto", "required"):
        return "tool_choice of the type allowed_tools must have tools, and the mode auto or required."
    return AllowedTools(tuple(dict.fromkeys(filter(None, map(named_choice, listed)))), str(mode))


def _sounds_like_one(messages: Sequence[Message]) -> bool:
    """A lone message of the words that a front end sends as it is installed."""
    said = [m for m in messages if m.get("role") not in ("system", "developer")]
    if len(said) != 1 or said[0].get("role") != "user":
        return False
    first = text_of(messages[0].get("content"))
    if messages[0] is not said[0] and _ERRANDS_OF_THE_SYSTEM.search(first):
        return True
    words = text_of(said[0].get("content")).lstrip()
    return any(errand.search(words) for errand in _ERRANDS)
