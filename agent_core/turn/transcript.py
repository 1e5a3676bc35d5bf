"""Journal to messages: what the model gets to read.

Theory. A request is: the system prompt, the history (closed turns of the session, or the conversation that a stateless
client brought), the current turn's items, and at the end what this one call needs beside them (partial text to go on from,
advice). Advice is a paragraph that begins with ``[outspoken]``: marked as the gateway's, never stored, never part of later turns. It
stands at the end of the person's message or the tool's result before it, and only behind the model's own words in a message of
its own: some providers and templates refuse two messages of the person in a row (Gemma, Mistral, Llama), or one behind a tool's
result (Mistral's code 3230). A notice stands in the history behind the text it belongs to, in brackets, as the gateway's words.

Laws (tests/agent_core/test_transcript.py): `problems(messages)` is empty for whatever `request_messages` builds, and the strictest
provider takes it (tests/agent_core/strict.py); each tool call is answered by exactly one result, right behind it; no user message is
left without an assistant message between it and the next turn's; nothing that the gateway said appears as the person's words without
its mark.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence

from agent_core.failures.exits import ExitCode
from agent_core.failures.remedies import Advice, advice_words
from agent_core.jsonvalue import Json
from agent_core.messages import GATEWAY_PREFIX, THOUGHTS, Message, is_void, shown_still, tells, text_of
from agent_core.text.tongue import speaking, spelled
from agent_core.tools.arguments import spelt_well
from agent_core.tools.base import EffectClass
from agent_core.turn.effects import CallModel
from agent_core.turn.standing import Standing
from agent_core.turn.state import Activity, AdviceItem, AssistantItem, Item, PersonItem, Segment, ToolItem

REMEMBERED_THOUGHT_CHARS = 8_000
"""How much of a plain thought of an earlier turn goes back: its provider wants to see one, not to read it."""
MARK = "[Notice from the gateway, not written by the model:"
NO_OUTPUT = "(no output)"
"""A tool's result that is empty: several providers refuse a message without content."""
STRAY = f"{GATEWAY_PREFIX} A tool's result, whose call is not part of this conversation any more:"
READ = "I have the results."
"""What stands as the model's words between a tool's result and what the person wrote while it ran."""


def _advice_message(advice: Advice, detail: str = "", reasoning: str = "") -> Message:
    return {"role": "user", "content": advice_words(advice, detail, reasoning)}


def _assistant(item: AssistantItem) -> Message:
    message: Message = {"role": "assistant", "content": item.text or None}
    if item.calls:
        message["tool_calls"] = [
            {"id": c.call, "type": "function", "function": {"name": c.name, "arguments": c.arguments.strip() or "{}"}}
            for c in item.calls
        ]
    elif not item.text:
        message["content"] = ""
    if item.thoughts:
        message[THOUGHTS] = dict(item.thoughts)
    return message


def item_messages(items: Iterable[Item], *, with_advice: bool) -> list[Message]:
    """What was said and done in a turn, as it came."""
    messages: list[Message] = []
    for item in items:
        match item:
            case AssistantItem():
                messages.append(_assistant(item))
            case ToolItem():
                content = item.text if item.text.strip() else NO_OUTPUT
                messages.append({"role": "tool", "tool_call_id": item.call, "content": content})
            case PersonItem():
                messages.append(item.input.to_message())
            case AdviceItem():
                if with_advice:
                    messages.append(_advice_message(item.advice, item.detail))
    return messages


def closed_turn_messages(turn: Standing) -> list[Message]:
    """A closed turn as later turns tell it: the person's words, what was said and done, and how it ended."""
    if turn.opened is None or turn.exit is None:
        return []
    messages = [shown_still(message.to_message()) for message in turn.opened.input]
    if turn.exit.code in TOO_MUCH:
        messages = [shortened(message) for message in messages]
    messages += _remembered(item_messages(_ended(turn), with_advice=False))
    cut = [e.text for e in turn.timeline if isinstance(e, Segment) and e.visible and not _told(e, turn.items)]
    with speaking(""):  # the model reads English
        notice = turn.exit.notice()
    closing = "\n\n".join(cut)
    if notice is not None:
        marked = f"{MARK} {spelled(notice.text)}]"
        closing = f"{closing}\n\n{marked}" if closing else marked
    if closing:
        messages.append({"role": "assistant", "content": closing})
    return messages


NOT_BEGUN = "It was not carried out: the turn ended before it was begun."
CHANGED_NOTHING = "No result came before the turn ended. It changes nothing, so it can be called again."
NOT_KNOWN = "No result came, and it is not known whether the call was carried out."


def _ended(turn: Standing) -> list[Item]:
    """The items with what is known of calls that had no result when the turn ended. Those that were handed to a client have theirs to come."""
    have = {item.call for item in turn.items if isinstance(item, ToolItem)}
    acts = {entry.call: entry for entry in turn.timeline if isinstance(entry, Activity) and entry.call not in have}
    out: list[Item] = []
    open_calls: list[Item] = []
    for item in turn.items:
        if not isinstance(item, ToolItem):
            out += open_calls
            open_calls = []
        out.append(item)
        if isinstance(item, AssistantItem):
            open_calls = [ToolItem(c.call, c.name, _end_of(turn, acts[c.call])) for c in item.calls if c.call in acts]
    return out + open_calls


def _end_of(turn: Standing, activity: Activity) -> str:
    if turn.round.effect_class(activity.name) is EffectClass.PURE:
        return CHANGED_NOTHING
    return NOT_KNOWN if activity.started else NOT_BEGUN


def _remembered(messages: list[Message]) -> list[Message]:
    """The same with the thoughts that later turns still need: those beside calls, the plain ones shortened."""
    called = any(message.get("tool_calls") for message in messages)
    out: list[Message] = []
    for message in messages:
        thoughts = message.get(THOUGHTS)
        if isinstance(thoughts, dict):
            text = thoughts.get("text")
            brief = {**thoughts, "text": text[:REMEMBERED_THOUGHT_CHARS]} if isinstance(text, str) else thoughts
            rest = {key: value for key, value in message.items() if key != THOUGHTS}
            out.append({**message, THOUGHTS: brief} if called or "beside" in thoughts else rest)
        else:
            out.append(message)
    return out


TOO_MUCH = frozenset({ExitCode.CONTEXT_OVERFLOW, ExitCode.REQUEST_TOO_LARGE})
"""A turn that ended so had said more than the model can read: later turns tell only how it began, or each of them would end so."""
TOLD_CHARS = 2_000


def shortened(message: Message) -> Message:
    """The message with the beginnings of its long texts, and a word in place of each picture or file."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": _beginning(content)}
    if not isinstance(content, list):
        return message
    return {**message, "content": _beginning(text_of(content))}


def _beginning(text: str) -> str:
    rest = len(text) - TOLD_CHARS
    return (
        text
        if rest <= 0
        else f"{text[:TOLD_CHARS]}\n[… {rest} characters are left out here: they were more than the model can read]"
    )


def _told(segment: Segment, items: Iterable[Item]) -> bool:
    """Whether a reply that came to a good end has said this segment's text."""
    text = segment.text.strip()
    return any(isinstance(item, AssistantItem) and text in item.text for item in items)


def repaired(messages: Sequence[Message]) -> list[Message]:
    """The same conversation in the form that every provider takes.

    An id stands for one call: providers that number the calls of each reply anew give them the same ids again, which Anthropic, Bedrock and Gemini
    refuse for as long as both are told.
    What says nothing is not told: a reply without words and calls, a part without words; a result without words says so. Neighbouring assistant
    messages become one; a result stands behind its call, wherever it was told behind it; a call without a
    result gets one that says so; a result without a call is told as what it is; a conversation that ends a turn without any
    reply gets a short one; arguments of a call are a JSON object.
    """
    merged: list[Message] = []
    strays: list[Message] = []
    open_calls: dict[str, None] = {}
    unanswered: dict[str, int] = {}  # where the place of a result is that has not come yet
    odd = called = False  # most conversations are neither
    for message in messages:
        content, calls = message.get("content"), "tool_calls" in message
        called = called or calls
        odd = odd or (not calls and (not isinstance(content, str) or not content or content.isspace()))
    if odd:
        messages = [_telling(message) for message in messages if not is_void(message)]
    if called:
        messages = _apart(messages)
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = message.get("tool_call_id")
            if isinstance(call, str) and call in open_calls:
                del open_calls[call]
                merged.append(message)
            elif isinstance(call, str) and call in unanswered:
                merged[unanswered.pop(call)] = message
            else:
                strays.append(message)
            continue
        one_reply = bool(open_calls) and role == "assistant" == merged[-1].get("role")  # none of its results has come
        if one_reply and _goes_on(messages[position:], open_calls):  # in several messages
            merged[-1] = _joined(merged[-1], _readable(message))
            open_calls = dict.fromkeys(call_ids(merged[-1]))
            continue
        if open_calls or strays:
            unanswered.update(zip(open_calls, itertools.count(len(merged))))
            merged += _no_results(open_calls)
            merged += map(_stray, strays)
            strays = []
        message = _readable(message)  # noqa: PLW2901
        if role == "assistant" and merged and merged[-1].get("role") == "assistant":
            merged[-1] = _joined(merged[-1], message)
        else:
            merged.append(message)
        open_calls = dict.fromkeys(call_ids(merged[-1])) if role == "assistant" else {}
    if not open_calls and not strays:
        return merged
    return merged + _no_results(open_calls) + [_stray(message) for message in strays]


def _apart(messages: Sequence[Message]) -> Sequence[Message]:
    """The same with an id of its own for each call, and for its result."""
    ids = [call for message in messages if "tool_calls" in message for call in call_ids(message)]
    if len(ids) == len(set(ids)):
        return messages
    taken: set[str] = set()
    told: dict[str, str] = {}
    out: list[Message] = []
    for message in messages:
        call, calls = message.get("tool_call_id"), call_ids(message)
        told.update((each, _another(each, taken) if each in taken else each) for each in dict.fromkeys(calls))
        taken.update(told[each] for each in calls)
        if isinstance(call, str) and told.get(call, call) != call:
            message = {**message, "tool_call_id": told[call]}  # noqa: PLW2901
        elif any(told[each] != each for each in calls):
            message = {**message, "tool_calls": [_called(call, told) for call in _calls(message)]}  # noqa: PLW2901
        out.append(message)
    return out


def _another(call: str, taken: Container[str]) -> str:
    return next(name for n in itertools.count(2) if (name := f"{call}_{n}") not in taken)


def _calls(message: Message) -> list[Json]:
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _called(call: Json, told: Mapping[str, str]) -> Json:
    known = call.get("id") if isinstance(call, dict) else None
    return {**call, "id": told[known]} if isinstance(call, dict) and isinstance(known, str) else call


def _telling(message: Message) -> Message:
    content = message.get("content")
    if message.get("role") == "tool" and not tells(content):
        return {**message, "content": NO_OUTPUT}
    if not isinstance(content, list):
        return message
    parts = [part for part in content if tells([part])]
    return {**message, "content": parts} if 0 < len(parts) < len(content) else message


def _goes_on(messages: Sequence[Message], open_calls: Mapping[str, None]) -> bool:
    """Whether the first of these was said beside the open calls: their results come behind all that the assistant says here."""
    if not open_calls.keys().isdisjoint(call_ids(messages[0])):
        return False
    later = next((message for message in messages if message.get("role") != "assistant"), None)
    return later is not None and later.get("role") == "tool" and later.get("tool_call_id") in open_calls


def _stray(result: Message) -> Message:
    """A result whose call is not there: no provider takes it as one, and what it says is told nevertheless."""
    content = result.get("content")
    words = f"{STRAY}\n"
    if isinstance(content, list):
        return {"role": "user", "content": [{"type": "text", "text": words}, *content]}
    return {"role": "user", "content": f"{words}{content}"}


def _readable(message: Message) -> Message:
    """With calls whose arguments any server can read: vLLM (400) and llama.cpp (500) take nothing in which a model once wrote no JSON."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return message
    return {**message, "tool_calls": [_readable_call(call) for call in calls]}


def _readable_call(call: Json) -> Json:
    function = call.get("function") if isinstance(call, dict) else None
    written = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(written, str):
        return call
    arguments = spelt_well(written)
    return call if arguments == written else {**call, "function": {**function, "arguments": arguments}}


def _no_results(calls: Iterable[str]) -> list[Message]:
    return [{"role": "tool", "tool_call_id": call, "content": NOT_KNOWN} for call in calls]


def call_ids(message: Message) -> list[str]:
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [c["id"] for c in calls if isinstance(c, dict) and isinstance(c.get("id"), str)]  # pyright: ignore[reportReturnType]


def _joined(first: Message, second: Message) -> Message:
    """Two assistant messages in one, with what both said, called and thought."""
    texts = [t for t in (first.get("content"), second.get("content")) if isinstance(t, str) and t]
    joined: Message = {**first, **second, "content": "\n\n".join(texts) if texts else second.get("content")}
    calls, more = first.get("tool_calls"), second.get("tool_calls")
    if isinstance(calls, list) and isinstance(more, list):
        joined["tool_calls"] = [*calls, *more]
    thoughts, later = first.get(THOUGHTS), second.get(THOUGHTS)
    if isinstance(thoughts, dict) and isinstance(later, dict):
        thought = [t for t in (thoughts.get("text"), later.get("text")) if isinstance(t, str) and t]
        joined[THOUGHTS] = {**thoughts, **later, **({"text": "\n\n".join(thought)} if thought else {})}
    return joined


def request_messages(
    system: str, history: Sequence[Message], turn: Standing, call: CallModel, *, elide_results_over: int = 0
) -> list[Message]:
    """The whole conversation for one model call.

    `history` is what `closed_turn_messages` gave for earlier turns (or the client's own). `elide_results_over` > 0 shortens
    tool results of this turn that are longer (characters), all but the latest two: the last means against overflow.
    """
    assert turn.opened is not None
    messages: list[Message] = []
    if system:
        messages.append({"role": "system", "content": system})
    messages += history
    messages += [message.to_message() for message in turn.opened.input]
    current = item_messages(turn.items, with_advice=True)
    messages += elide(current, elide_results_over, keep=2) if elide_results_over else current
    return ending_with(messages, call)


def later_messages(turn: Standing, since: int, call: CallModel) -> list[Message]:
    """What of the conversation for one model call stands behind so many of the turn's items."""
    return ending_with(item_messages(turn.items[since:], with_advice=True), call)


def ending_with(messages: list[Message], call: CallModel) -> list[Message]:
    """These messages and what stands last, as every provider takes them."""
    if call.partial.strip():
        messages.append({"role": "assistant", "content": call.partial})
    if call.advice is not None:
        messages.append(_advice_message(call.advice, call.detail, call.reasoning))
    return alternating(repaired(messages))


def alternating(messages: Sequence[Message]) -> list[Message]:
    """The same conversation for a provider that insists on the model's words between the person's: see the theory above."""
    out: list[Message] = []
    for message in messages:
        last = out[-1] if out else {}
        before, role = last.get("role"), message.get("role")
        advice = role == "user" and text_of(message.get("content")).startswith(f"{GATEWAY_PREFIX} ")
        if (role == before == "user" and last.get("name") == message.get("name")) or (advice and before == "tool"):
            out[-1] = {**last, "content": _followed(last.get("content"), message.get("content"))}
            continue
        if role == "user" and before == "tool":
            out.append({"role": "assistant", "content": READ})
        out.append(message)
    return out


def _followed(first: Json, second: Json) -> Json:
    """One content behind another."""
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}" if first and second else first or second
    return [*_parts(first), *_parts(second)]


def _parts(content: Json) -> list[Json]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else []


def elide(messages: Sequence[Message], over_chars: int, *, keep: int) -> list[Message]:
    """`messages` with long tool results shortened to their beginning, except the `keep` latest."""
    results = [index for index, message in enumerate(messages) if message.get("role") == "tool"]
    spared = set(results[-keep:]) if keep else set[int]()
    out: list[Message] = []
    for index, message in enumerate(messages):
        content = message.get("content")
        if index in results and index not in spared and isinstance(content, str) and len(content) > over_chars:
            note = f"[… {len(content) - over_chars} characters left out to save space]"
            out.append({**message, "content": f"{content[:over_chars]}\n{note}"})
        else:
            out.append(message)
    return out


def problems(messages: Sequence[Message]) -> list[str]:
    """What a strict provider would object to; empty for a valid conversation."""
    found: list[str] = []
    waiting: list[str] = []
    for position, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = message.get("tool_call_id")
            if call not in waiting:
                found.append(f"message {position}: a result for {call!r}, which is not waiting for one")
            else:
                waiting.remove(str(call))
            continue
        if waiting:
            found.append(f"message {position}: calls without a result before it: {', '.join(waiting)}")
            waiting = []
        if role not in ("system", "developer", "user", "assistant"):
            found.append(f"message {position}: unknown role {role!r}")
        if role == "assistant" and not message.get("content") and not message.get("tool_calls"):
            found.append(f"message {position}: an assistant message with neither text nor calls")
        waiting = call_ids(message)
        if len(waiting) != len(set(waiting)):
            found.append(f"message {position}: two calls with one id")
    if waiting:
        found.append(f"at the end: calls without a result: {', '.join(waiting)}")
    return found
