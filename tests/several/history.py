"""What people and programs saw of several gateways, and what is wrong with it. Knows nothing of the gateway: no name of its code stands here.

A message is known by its number: it is asked for with `#number`, and its answer ends with that. Laws, of each chat: whatever was said is answered, or told
about (a notice); nothing is said twice, but with a mark where the platform cannot tell that it has a message already; answers stand in the order of what
was said. Of each stream: what was told, piece by piece, is the answer as it is told to whoever asks again. And nothing is left open.
"""

from __future__ import annotations

from dataclasses import dataclass, field

NOTICE, MARK = "⚠️", "you may see this twice"


@dataclass
class Chat:
    """One chat, as its person sees it."""

    name: str
    keyed: bool
    """The platform knows by a key that it has a message already."""
    said: list[str] = field(default_factory=list[str])
    """Numbers, in order."""
    shown: list[str] = field(default_factory=list[str])
    """What is shown of the gateway, in order."""


@dataclass
class Watched:
    """One stream."""

    name: str
    pieces: list[str]
    again: str
    """What whoever asks again is told."""


@dataclass
class History:
    """Everything that was seen from outside."""

    chats: list[Chat] = field(default_factory=list[Chat])
    streams: list[Watched] = field(default_factory=list[Watched])
    open_turns: int = 0


def number_of(text: str) -> str:
    """Of which message it is the answer; empty if of none."""
    return text.rsplit("#", 1)[1].split()[0] if "#" in text and text.rsplit("#", 1)[1].split() else ""


def judged(history: History) -> list[str]:
    """What is not as it should be."""
    wrong = [words for chat in history.chats for words in _chat(chat)]
    for stream in history.streams:
        told = "".join(stream.pieces)
        if told != stream.again:
            wrong.append(f"stream {stream.name}: told {told!r}, and again {stream.again!r}")
    if history.open_turns:
        wrong.append(f"{history.open_turns} turns are still open")
    return wrong


def _chat(chat: Chat) -> list[str]:
    wrong: list[str] = []
    answers = [(number_of(text), MARK in text) for text in chat.shown if number_of(text)]
    numbers = [number for number, _ in answers]
    missing = [number for number in chat.said if number not in numbers]
    notices = sum(NOTICE in text for text in chat.shown)
    if len(missing) > notices:
        wrong.append(f"{chat.name}: lost {missing}, {notices} notices")
    if strange := [number for number in numbers if number not in chat.said]:
        wrong.append(f"{chat.name}: answered {strange}, which nobody said there")
    for number in dict.fromkeys(numbers):
        counted = [marked for one, marked in answers if one == number and (chat.keyed or not marked)]
        if len(counted) > 1:
            wrong.append(f"{chat.name}: {number} is said {len(counted)} times")
    order = list(dict.fromkeys(numbers))
    if order != [number for number in chat.said if number in order]:
        wrong.append(f"{chat.name}: order {order} of {chat.said}")
    return wrong
