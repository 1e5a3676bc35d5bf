"""What the rehearsal model does for programs: it calls their tools, obeys ``tool_choice``, answers in the form that is asked for, thinks, draws. Pure."""

from __future__ import annotations

import json
import re

from agent_core.jsonvalue import Json
from agent_core.model.rehearsal.conversation import RehearsalRequest
from agent_core.model.rehearsal.forms import sample
from agent_core.model.rehearsal.wire import EndReply, PlayedCall, Say, Script, Show, Think

OWN = frozenset(
    [
        "write_file",
        "append_file",
        "read_file",
        "edit_file",
        "delete_file",
        "list_files",
        "search_files",
        "fetch_url",
        "search_web",
        "remember",
        "recall",
        "todo",
        "send_file",
        "forget",
        "remind",
        "schedule",
        "list_scheduled",
        "cancel_scheduled",
        "set_timezone",
        "run_command",
        "read_output",
        "stop_command",
        "start_task",
        "send_message",
        "remember_for_everybody",
        "speak",
    ]
)
"""Tools that the plain requests are for: they are not called because their name is in the words."""
PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEUlEQVR42mPQq43GihiGlgQAjP9BgSm9lmsAAAAASUVORK5CYII="
)


def for_programs(conversation: RehearsalRequest) -> Script | None:
    """The reply to a request of a program; None if it is none."""
    wanted = None if conversation.results else _wanted(conversation)
    if wanted is not None:
        name, arguments = wanted
        return (PlayedCall(name, json.dumps(arguments, ensure_ascii=False)), EndReply("tool_calls"))
    if (form := _form(conversation.form)) is not None:
        return (Say(json.dumps(form, ensure_ascii=False)), EndReply("stop"))
    if conversation.results and _named(conversation) is not None:
        shown = "\n\n".join(result.strip()[:3000] for result in conversation.results)
        return (Say(f"This is what came back:\n\n```\n{shown}\n```"), EndReply("stop"))
    words = conversation.words.lower()
    if re.match(r"(?:please )?think\b", words):
        thought = "The person wants to see a thought. This is one; it has two sentences."
        return (Think(thought), Say("I have thought about it: it is a rehearsal."), EndReply("stop"))
    if re.match(r"(?:please )?(?:draw|paint)\b", words):
        return (Say("A small square:"), Show(PICTURE), EndReply("stop"))
    return None


def _wanted(conversation: RehearsalRequest) -> tuple[str, Json] | None:
    """The tool that is to be called, with its arguments."""
    choice, names = conversation.choice, sorted(conversation.tools)
    function = choice.get("function") if isinstance(choice, dict) else None
    demanded = function.get("name") if isinstance(function, dict) else None
    if isinstance(demanded, str) and demanded in conversation.tools:
        return demanded, _arguments(conversation, demanded)
    named = _named(conversation)
    if named is None and choice == "required" and names:
        named = names[0]
    return (named, _arguments(conversation, named)) if named is not None else None


def _named(conversation: RehearsalRequest) -> str | None:
    """A program's tool of which the words speak: ``call NAME …``, or a word of its name."""
    words = conversation.words.lower()
    called = re.match(r"(?:please )?(?:call|use) ([\w.-]+)", words)
    for name in sorted(conversation.tools):
        if called is not None and called[1] == name.lower():
            return name
    said = set(re.findall(r"[a-z]{4,}", words))
    for name in sorted(conversation.tools - OWN):
        if said & set(re.findall(r"[a-z]{4,}", name.lower())):
            return name
    return None


def _arguments(conversation: RehearsalRequest, name: str) -> Json:
    """Those that the person wrote behind ``call NAME``, else some that fit."""
    begun = conversation.words.find("{")
    if begun >= 0:
        try:
            given: Json = json.loads(conversation.words[begun:])
        except ValueError:
            given = None
        if isinstance(given, dict):
            return given
    found = sample(conversation.schemas.get(name))
    if not isinstance(found, dict):
        return {}
    said = re.match(r"\s*(?:please )?(?:call|use) [\w.-]+\s+(\S.*)", conversation.words, re.IGNORECASE | re.DOTALL)
    if said is not None and len(found) == 1 and all(isinstance(value, str) for value in found.values()):
        return dict.fromkeys(found, said[1].strip())  # it takes one text, and there is one
    return found


def _form(form: Json) -> Json:
    """What fits a ``response_format``; None if none is asked for."""
    kind = form.get("type") if isinstance(form, dict) else None
    if kind == "json_object":
        return {"rehearsed": True}
    described = form.get("json_schema") if isinstance(form, dict) else None
    return sample(described.get("schema")) if kind == "json_schema" and isinstance(described, dict) else None
