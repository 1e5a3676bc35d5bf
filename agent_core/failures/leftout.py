"""One refused message does not poison the next: what in a conversation a provider may object to, and what to leave out next. Pure.

Theory. A request that a provider refuses holds something that it will refuse again, in every later request of the conversation. What it may be is
a list of `Suspect`s: each picture, sound or file, each earlier message, each message's thoughts. A provider that says what it means
(`Complaint`) names some of them, and those are left out first. If it says nothing, or is wrong, the others are tried in groups, the likeliest
first (`tries`): pictures, then messages, newest first; a group is twice as large as the one before, and the last holds everything. So a
refusal costs a handful of calls that providers do not charge for, and what is left out in vain is put back.

Nothing disappears: in the place of what is left out stands a sentence, so that roles, calls and their results stay in order, and the model can
say that it has not seen it. A suspect is known by its content, wherever it stands; so what was found in one turn is left out of the next as well,
for the same model.

A model may also fail without a refusal (500, nothing at all, a lost connection), each time that the conversation holds something. Only where
nothing else has helped, and only what gives reason to doubt it (`doubted`), is left out then: what belongs to turns that got no answer, and what
was attached just now; after that, everything.

The words that a person wrote just now are never left out, not by an equal message of earlier on, and not while a client's tools bring their results:
if nothing else helps, the turn says that it was refused.

Laws (tests/agent_core/test_leftout.py): whatever one part is refused, for any conversation, it is found within `MOST_TRIES` calls; a left-out
conversation is as valid as before; what is not left out is not changed; leaving out again changes nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

import orjson

from agent_core.causes import BreakCause
from agent_core.failures.complaints import NOTHING_SAID, Complaint, Concern, Place
from agent_core.jsonvalue import Json
from agent_core.messages import GATEWAY_PREFIX, Message, as_text, text_of
from agent_core.records import dataclass
from agent_core.text.tongue import sentence, speak, speak_many

MOST_TRIES = 6
"""How often something is left out and the model asked again, within one step of a turn."""
MOST_SUSPECTS = 200
"""Older parts of a conversation are not looked at one by one."""
NOTICE_PREFIX = "[Notice from the gateway"
"""How a notice begins in what a model is told of earlier turns."""


class LeftOutKind(StrEnum):
    PICTURE = "picture"
    SOUND = "sound"
    FILE = "file"
    MESSAGE = "message"
    """A message's words; of a call, its arguments as well."""
    THOUGHTS = "thoughts"
    """What a message carries beside its words and calls."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """Something in a conversation that a provider may object to."""

    key: str
    """Its content's digest; empty: all of its kind."""
    kind: LeftOutKind
    role: str = "user"
    named: bool = False
    """The provider said that it is this."""
    now: bool = False
    """It belongs to the message that is being answered."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """What is left out of a conversation for one model."""

    endpoint: str
    model: str
    parts: tuple[Suspect, ...] = ()


_PART_KINDS: Mapping[str, LeftOutKind] = {
    "image_url": LeftOutKind.PICTURE,
    "image": LeftOutKind.PICTURE,
    "input_image": LeftOutKind.PICTURE,
    "input_audio": LeftOutKind.SOUND,
    "audio_url": LeftOutKind.SOUND,
    "file": LeftOutKind.FILE,
    "input_file": LeftOutKind.FILE,
    "video_url": LeftOutKind.FILE,
}
_KIND_OF_CONCERN: Mapping[Concern, LeftOutKind] = {
    Concern.PICTURES: LeftOutKind.PICTURE,
    Concern.PICTURE: LeftOutKind.PICTURE,
    Concern.SOUNDS: LeftOutKind.SOUND,
    Concern.FILES: LeftOutKind.FILE,
    Concern.THOUGHTS: LeftOutKind.THOUGHTS,
    Concern.MESSAGE: LeftOutKind.MESSAGE,
}
ALL_OF_KIND = frozenset({Concern.PICTURES, Concern.SOUNDS, Concern.FILES})
_PLAIN_KEYS = frozenset({"role", "content", "tool_calls", "tool_call_id", "name"})
_WORDS: Mapping[LeftOutKind, str] = {
    LeftOutKind.PICTURE: "a picture was here; the gateway left it out, because the model's provider did not take it",
    LeftOutKind.SOUND: "a recording was here; the gateway left it out, because the model's provider did not take it",
    LeftOutKind.FILE: "a file was here; the gateway left it out, because the model's provider did not take it",
    LeftOutKind.MESSAGE: "a message was here; the gateway left it out, because the model's provider did not take it",
    LeftOutKind.THOUGHTS: "",
}


_PLACEHOLDER = f"[{_WORDS[LeftOutKind.MESSAGE]}]"
"""What was left out already is no suspect."""


# ---------------------------------------------------------------------- what there is


def suspects(
    messages: Sequence[Message], complaint: Complaint, current: int, *, by_size: bool = False
) -> tuple[Suspect, ...]:
    """What of `messages` may be meant by a refusal, the likeliest first; `by_size` the largest, where it is too much that is refused.

    `current` is the position of the first message that is being answered now.
    """
    if complaint.concern is Concern.FIELD:
        return ()
    named = _named(messages, complaint)
    begins = _beginnings(messages)
    asked = _asked(begins, current)
    found: dict[tuple[str, LeftOutKind], tuple[tuple[bool, int, int, int], Suspect]] = {}
    for position in range(len(messages) - 1, -1, -1):
        role, now = str(messages[position].get("role")), position >= current
        for kind, key in _parts(messages[position]):
            if kind is LeftOutKind.MESSAGE and role == "user" and position >= asked:
                continue
            meant = (position, key) in named
            rank = (
                not meant,
                -_size(messages[position], kind, key) if by_size else -begins[position],
                _RANKS.get(kind, _OF_THE_MODEL if role == "assistant" else 1),
                -position,
            )
            suspect = Suspect(key, kind, role, named=meant, now=now)
            if (key, kind) not in found or rank < found[key, kind][0]:
                found[key, kind] = (rank, suspect)
    ordered = [suspect for _, suspect in sorted(found.values(), key=lambda one: one[0])]
    return (*_all_of(complaint, ordered), *ordered)[:MOST_SUSPECTS]


_RANKS: Mapping[LeftOutKind, int] = {
    LeftOutKind.PICTURE: 0,
    LeftOutKind.SOUND: 0,
    LeftOutKind.FILE: 0,
    LeftOutKind.THOUGHTS: 2,
}
_OF_THE_MODEL = 3


def _size(message: Message, kind: LeftOutKind, key: str) -> int:
    """Of a part, or of a message without its pictures and files, in characters."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    if kind in _MEDIA:
        return next((len(str(part)) for part in parts if _kind(part) is kind and digest(part) == key), 0)
    return len(text_of(content)) + len(str(message.get("tool_calls") or ""))


def doubted(messages: Sequence[Message], current: int, *, results: bool = False) -> tuple[Suspect, ...]:
    """What of `messages` may be why a model fails that does not say why; what gives most reason to doubt it is marked as named.

    That is what is attached now, and what turns without an answer left behind; with `results`, calls of the turn that is running and what they
    brought, too. If the turn before had no answer, anything may be it. Otherwise the model has answered what is there.
    """
    begins = _beginnings(messages)
    unanswered = {begins[p] for p in range(min(current, len(messages))) if messages[p].get("role") == "user"}
    for position, message in enumerate(messages[:current]):
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            (unanswered.add if _is_notice(message) else unanswered.discard)(begins[position])
    likely = {
        (key, kind)
        for position, message in enumerate(messages)
        for kind, key in _parts(message)
        if (position >= current and (results or kind in _MEDIA))
        or (position < current and begins[position] in unanswered)
    }
    found = [one for one in suspects(messages, NOTHING_SAID, current) if results or not one.now or one.kind in _MEDIA]
    named = tuple(replace(one, named=True) for one in found if (one.key, one.kind) in likely)
    before = begins[current - 1] if 0 < current <= len(messages) else -1
    rest = [one for one in found if (one.key, one.kind) not in likely] if before in unanswered else []
    return (*named, *rest)


def _is_notice(message: Message) -> bool:
    """Of a turn that ended with the gateway's words, as we keep it or as a client brings it along."""
    text = text_of(message.get("content"))
    return any(text.startswith(mark) or f"\n\n{mark}" in text for mark in (NOTICE_PREFIX, f"{GATEWAY_PREFIX} "))


def _beginnings(messages: Sequence[Message]) -> list[int]:
    """For each message, where its turn begins: at what the person said."""
    begins: list[int] = []
    for position, message in enumerate(messages):
        begins.append(position if message.get("role") == "user" or not begins else begins[-1])
    return begins


def _asked(begins: Sequence[int], current: int) -> int:
    """Where the person's words stand that are answered: results that a client's tools bring come behind them."""
    return begins[current] if current < len(begins) else len(begins)


def _all_of(complaint: Complaint, found: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """A kind that the model does not take at all, if there is anything of it."""
    if complaint.concern not in ALL_OF_KIND:
        return ()
    kind = _KIND_OF_CONCERN[complaint.concern]
    now = [one.now for one in found if one.kind is kind]
    return (Suspect("", kind, named=True, now=any(now)),) if now else ()


def _parts(message: Message) -> list[tuple[LeftOutKind, str]]:
    """What a message consists of, each with its digest; the message as a whole comes last."""
    content, _ = _own(message.get("content"))
    role = message.get("role")
    if role in ("system", "developer"):
        return []
    if isinstance(content, str) and content.startswith(
        (_PLACEHOLDER, NOTICE_PREFIX) if role == "assistant" else _PLACEHOLDER
    ):
        return []
    parts: list[tuple[LeftOutKind, str]] = []
    if isinstance(content, list):
        parts += [(kind, digest(part)) for part in content if (kind := _kind(part)) is not None]
    if any(key not in _PLAIN_KEYS for key in message):
        parts.append((LeftOutKind.THOUGHTS, message_digest(message)))
    if message.get("tool_calls") or (
        any(_kind(part) is None for part in content) if isinstance(content, list) else content
    ):
        parts.append((LeftOutKind.MESSAGE, message_digest(message)))
    return parts


def attached(messages: Sequence[Message]) -> set[tuple[LeftOutKind, str]]:
    """The pictures, sounds and files in `messages`."""
    return {(kind, digest(part)) for message in messages for kind, part in _attached(message)}


def _attached(message: Message) -> Iterator[tuple[LeftOutKind, Json]]:
    content = message.get("content")
    if isinstance(content, list) and message.get("role") not in ("system", "developer"):
        for part in content:
            if (kind := _kind(part)) is not None:
                yield kind, part


def _kind(part: Json) -> LeftOutKind | None:
    return _PART_KINDS.get(str(part.get("type"))) if isinstance(part, dict) else None


def _own(content: Json) -> tuple[Json, str]:
    """A message's own content, and the advice of the gateway that stands behind it for one call."""
    if isinstance(content, str):
        if content.startswith(f"{GATEWAY_PREFIX} "):
            return "", content
        own, mark, advice = content.partition(f"\n\n{GATEWAY_PREFIX} ")
        return own, f"{GATEWAY_PREFIX} {advice}" if mark else ""
    if not isinstance(content, list):
        return content, ""
    advice = [
        part for part in content if isinstance(part, dict) and str(part.get("text")).startswith(f"{GATEWAY_PREFIX} ")
    ]
    return [part for part in content if part not in advice], "\n\n".join(text_of([part]) for part in advice)


def digest(value: Json) -> str:
    """By which a part of a conversation is known again."""
    try:
        raw = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # half a surrogate pair
        raw = repr(value).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(raw, digest_size=9).hexdigest()


def message_digest(message: Message) -> str:
    """A message's; who sends it and what it says count, not what it is called."""
    return digest({"role": message.get("role"), "content": _own(message.get("content"))[0], "calls": _called(message)})


def _called(message: Message) -> Json:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return None
    return [call.get("function") for call in calls if isinstance(call, dict)]


# ---------------------------------------------------------------------- what is named


def _named(messages: Sequence[Message], complaint: Complaint) -> set[tuple[int, str]]:
    """The parts (position and digest) that a provider names."""
    kind = _KIND_OF_CONCERN.get(complaint.concern)
    named: set[tuple[int, str]] = set()
    for place in complaint.places:
        for position in _positions(messages, place):
            parts = _parts(messages[position])
            if place.part >= 0 and kind not in (LeftOutKind.MESSAGE, LeftOutKind.THOUGHTS):
                at = _part_at(messages[position], place.part)
                parts = [one for one in parts if one[1] == at] or parts
            fitting = [one for one in parts if one[0] is kind] if kind is not None else parts[-1:]
            named |= {(position, key) for _, key in fitting}
    if not named and complaint.concern in (Concern.PICTURE, Concern.THOUGHTS):
        named = {(p, key) for p, message in enumerate(messages) for k, key in _parts(message) if k is kind}
    return named


def _part_at(message: Message, number: int) -> str:
    content = message.get("content")
    return digest(content[number]) if isinstance(content, list) and number < len(content) else ""


def _positions(messages: Sequence[Message], place: Place) -> list[int]:
    """Where a place is in our count. Who joins neighbours of one role and knows no system messages counts otherwise."""
    if not place.native:
        return [place.message] if place.message < len(messages) else []
    joined: list[list[int]] = []
    last = ""
    for position, message in enumerate(messages):
        role = str(message.get("role"))
        if role in ("system", "developer"):
            continue
        side = "assistant" if role == "assistant" else "user"
        if side != last:
            joined.append([])
        joined[-1].append(position)
        last = side
    return joined[place.message] if place.message < len(joined) else []


# ---------------------------------------------------------------------- what to leave out next


def tries(found: Sequence[Suspect]) -> list[tuple[Suspect, ...]]:
    """What is left out together, try by try: pictures and the like of the message that is answered, then all of them; then messages, the first
    alone, the next two, the next four …; and at last everything."""
    media = tuple(one for one in found if one.kind in _MEDIA)
    rest = [one for one in found if one.kind not in _MEDIA]
    made: list[tuple[Suspect, ...]] = [tuple(one for one in media if one.now), media]
    start, size = 0, 1
    while start < len(rest):
        made.append(tuple(rest[start : start + size]))
        start, size = start + size, size * 2
    telling = [one for one in dict.fromkeys(made) if one]
    return list(dict.fromkeys([*telling[: MOST_TRIES - 1], tuple(found)])) if found else []


_MEDIA = frozenset({LeftOutKind.PICTURE, LeftOutKind.SOUND, LeftOutKind.FILE})


@dataclass(frozen=True, slots=True)
class Leaving:
    """How far the search has come, in one step of a turn and for one model."""

    parts: tuple[Suspect, ...] = ()
    """What is left out now."""
    first: tuple[Suspect, ...] = ()
    """The suspects of the first refusal."""
    tried: int = 0
    """How many groups of them have been tried."""

    def next(self, latest: Sequence[Suspect]) -> Leaving | None:
        """What is left out of the next call, after a refusal whose suspects are `latest`; None: there is nothing left to try."""
        first = self.first or tuple(latest)
        known = {(one.key, one.kind) for one in self.parts}
        sure = tuple(one for one in self.parts if one.named)
        named = tuple(one for one in latest if one.named and (one.key, one.kind) not in known)
        if named:
            wide = tuple(one for one in named if not one.key)
            return Leaving((*sure, *(wide or named)), first, self.tried)
        groups = tries([one for one in first if not one.named])
        if self.tried >= len(groups):
            return None
        return Leaving((*sure, *groups[self.tried]), first, self.tried + 1)

    def next_doubted(self, latest: Sequence[Suspect]) -> Leaving | None:
        """The same after a failure that is no refusal: what is doubted most, then everything."""
        first = self.first or tuple(latest)
        groups = list(dict.fromkeys([tuple(one for one in first if one.named), first]))
        groups = [group for group in groups if group]
        if self.tried >= len(groups):
            return None
        sure = tuple(one for one in self.parts if one.named and one not in first)
        return Leaving((*sure, *groups[self.tried]), first, self.tried + 1)


# ---------------------------------------------------------------------- leaving out


def without(messages: Sequence[Message], left: Iterable[Suspect], current: int) -> list[Message]:
    """The conversation with a sentence in the place of each part that is left out. `current` is where what is answered now begins."""
    keys = {(one.key, one.kind) for one in left}
    if not keys:
        return list(messages)
    asked = _asked(_beginnings(messages), current)
    return [_without(message, keys, now=position >= asked) for position, message in enumerate(messages)]


def _without(message: Message, keys: Collection[tuple[str, LeftOutKind]], *, now: bool) -> Message:
    role = message.get("role")
    if role in ("system", "developer"):
        return message
    whole = message_digest(message) if any(key for key, _ in keys) else ""
    if (whole, LeftOutKind.MESSAGE) in keys and not (now and role == "user"):
        return _placeholder(message)
    out = message
    if any(key not in _PLAIN_KEYS for key in message) and {
        (whole, LeftOutKind.THOUGHTS),
        ("", LeftOutKind.THOUGHTS),
    } & {*keys}:
        out = {key: value for key, value in message.items() if key in _PLAIN_KEYS}
    content = out.get("content")
    if isinstance(content, list):
        parts = [_part_without(part, keys) for part in content]
        if parts != content:
            out = {**out, "content": as_text(parts)}
    return out


def _part_without(part: Json, keys: Collection[tuple[str, LeftOutKind]]) -> Json:
    kind = _kind(part)
    if kind is None or not ((("", kind) in keys) or ((digest(part), kind) in keys)):
        return part
    return {"type": "text", "text": f"[{_WORDS[kind]}]"}


def _placeholder(message: Message) -> Message:
    out: Message = {key: value for key, value in message.items() if key in _PLAIN_KEYS}
    calls = message.get("tool_calls")
    if isinstance(calls, list) and calls:
        out["tool_calls"] = [_bare_call(call) for call in calls]
        out["content"] = None
    else:
        advice = _own(message.get("content"))[1]
        out["content"] = _PLACEHOLDER + (f"\n\n{advice}" if advice else "")
    return out


def _bare_call(call: Json) -> Json:
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    name = function.get("name") if isinstance(function, dict) else ""
    return {"id": call.get("id"), "type": "function", "function": {"name": name, "arguments": "{}"}}


def fitting(known: Iterable[LeftOut], endpoint: str, model: str) -> tuple[Suspect, ...]:
    """What is left out for a model from the start."""
    return tuple(part for one in known if (one.endpoint, one.model) == (endpoint, model) for part in one.parts)


def looked_at(known: Iterable[LeftOut], messages: Sequence[Message]) -> tuple[LeftOut, ...]:
    """`known` for a turn that answers `messages`: with a mark at what is about something in them."""
    lefts = tuple(known)
    if not lefts:
        return ()
    there = {(key, kind) for message in messages for kind, key in _parts(message)}
    kinds = {kind for _, kind in there}

    def marked(one: Suspect) -> Suspect:
        return replace(one, now=(one.key, one.kind) in there or (not one.key and one.kind in kinds))

    return tuple(replace(left, parts=tuple(marked(one) for one in left.parts)) for left in lefts)


# ---------------------------------------------------------------------- how it is told


_REFUSALS = frozenset({BreakCause.BAD_REQUEST, BreakCause.REFUSED, BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})
"""Failures that say that it is what was sent."""
_NONE_TAKEN = {
    LeftOutKind.PICTURE: (
        sentence("The model {model} at {endpoint} can't take pictures; I left yours out."),
        sentence("The model {model} at {endpoint} can't take pictures; I left the earlier ones out."),
    ),
    LeftOutKind.SOUND: (
        sentence("The model {model} at {endpoint} can't take recordings; I left yours out."),
        sentence("The model {model} at {endpoint} can't take recordings; I left the earlier ones out."),
    ),
    LeftOutKind.FILE: (
        sentence("The model {model} at {endpoint} can't take files; I left yours out."),
        sentence("The model {model} at {endpoint} can't take files; I left the earlier ones out."),
    ),
}
"""The person's own, those of earlier on."""


def left_out_words(left: Sequence[Suspect], model: str, endpoint: str, cause: BreakCause | None) -> str:
    """What was left out of what a model is sent, so that the conversation can go on."""
    said: list[str] = []
    doubted = cause is not None and cause not in _REFUSALS
    for kind, (yours, earlier) in _NONE_TAKEN.items():
        mine = [one for one in left if one.kind is kind]
        now = any(one.now for one in mine)
        if any(not one.key for one in mine):
            said.append(speak(yours if now else earlier, model=model, endpoint=endpoint))
        elif mine:
            what = _of_media(kind, len(mine), now=now)
            said.append(
                speak_many(
                    "{model} replied only without {what}; I left it out.",
                    "{model} replied only without {what}; I left them out.",
                    len(mine),
                    model=model,
                    what=what,
                )
                if doubted
                else speak_many(
                    "{model} did not accept {what}; I left it out.",
                    "{model} did not accept {what}; I left them out.",
                    len(mine),
                    model=model,
                    what=what,
                )
            )
    messages = [one for one in left if one.kind is LeftOutKind.MESSAGE]
    if messages and doubted:
        said.append(
            speak_many(
                "{model} replied only without an earlier message; I left it out so that this can go on.",
                "{model} replied only without {count} earlier messages; I left them out so that this can go on.",
                len(messages),
                model=model,
            )
        )
    elif messages:
        why = (
            speak("is too long for {model}", model=model)
            if cause in _TOO_MUCH
            else speak("was refused by the content filter of {model}", model=model)
            if cause is BreakCause.REFUSED
            else speak("was not accepted by {model}", model=model)
        )
        said.append(_left_messages(messages, why))
    return " ".join(said)


def _of_media(kind: LeftOutKind, count: int, *, now: bool) -> str:
    match kind, now:
        case LeftOutKind.PICTURE, True:
            return speak_many("a picture of yours", "{count} pictures of yours", count)
        case LeftOutKind.PICTURE, False:
            return speak_many("a picture from earlier on", "{count} pictures from earlier on", count)
        case LeftOutKind.SOUND, True:
            return speak_many("a recording of yours", "{count} recordings of yours", count)
        case LeftOutKind.SOUND, False:
            return speak_many("a recording from earlier on", "{count} recordings from earlier on", count)
        case _, True:
            return speak_many("a file of yours", "{count} files of yours", count)
        case _:
            return speak_many("a file from earlier on", "{count} files from earlier on", count)


_TOO_MUCH = frozenset({BreakCause.TOO_LARGE, BreakCause.CONTEXT_OVERFLOW})


def _left_messages(messages: Sequence[Suspect], why: str) -> str:
    """`why`: a clause that follows what was left out."""
    count = len(messages)
    if count > 1:
        if all(one.now for one in messages):
            return speak(
                "Something in {count} messages of this turn {why}; I left them out so that this can go on.",
                count=count,
                why=why,
            )
        return speak(
            "Something in {count} earlier messages {why}; I left them out so that this can go on.", count=count, why=why
        )
    if messages[0].now and messages[0].role == "assistant":
        return speak("What this reply had said so far {why}; I asked again without it.", why=why)
    if messages[0].role == "tool":
        return speak("A tool's result {why}; I left it out so that this can go on.", why=why)
    return speak("An earlier message {why}; I left it out so that this can go on.", why=why)
