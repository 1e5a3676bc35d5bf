"""From Slack's payloads to our words. Pure, but for people's names, which are handed in."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias, cast
from unicodedata import normalize
from urllib.parse import parse_qsl

from adapters.contract.chat import (
    ChatAddress,
    ChatKind,
    ChatMessage,
    ChatOrigin,
    ChatPerson,
)
from adapters.contract.intake import Whence, digest_of
from adapters.slack.beside import beside
from adapters.slack.section import Direct
from adapters.slack.written import mentioned, unescaped, with_names
from agent_core.records import dataclass
from agent_core.text.typed import as_command

PLATFORM = "slack"
NEARLY_FULL = 3_900
_PLAIN = {None, "file_share", "thread_broadcast", "me_message"}
MOST_NAMES = 5
"""Of how many people whom a message mentions Slack is asked for the names before the message is taken in."""
IN_THREAD, SLASH_COMMAND = "!", "/outspoken "
"""How commands begin: Slack has no slash commands in threads."""
_COMMAND = re.compile(r"[!/]([A-Za-z]{2,32})(?:\s+(.*))?", re.DOTALL)
"""Slack takes each ``/`` for one of its own commands; one of another width, or behind a space, comes to us."""

Table = dict[str, Any]


def table(value: object) -> Table:
    """An object of a payload; an empty one if there is none."""
    return cast("Table", value) if isinstance(value, dict) else {}


def user_of(event: Table) -> str:
    """Whose event it is; empty if it is nobody's whom we could answer."""
    inner = table(event.get("message")) if event.get("subtype") == "message_changed" else event
    return "" if inner.get("bot_id") else str(inner.get("user", ""))


def parties(body: Table) -> frozenset[str]:
    """The channel and the person of what Slack tells, whatever else is in it: what comes of either is taken in its order."""
    event = table(body.get("event"))
    inner = table(event.get("message"))
    channels = (event.get("channel"), body.get("channel_id"), table(body.get("channel")).get("id"))
    people = (event.get("user"), inner.get("user"), body.get("user_id"), table(body.get("user")).get("id"))
    return frozenset(one for one in (*channels, *people) if isinstance(one, str) and one)


def by_a_bot(event: Table, me: str) -> bool:
    """Whether a message, what became of it, or its end, is a program's, ours among them: it means nothing for us (`read_body`)."""
    if event.get("type") not in ("message", "app_mention"):
        return False
    match event.get("subtype"):
        case "message_deleted":
            inner = table(event.get("previous_message"))
        case "message_changed":
            inner = table(event.get("message"))
            if inner.get("subtype") == "tombstone":
                inner = table(event.get("previous_message"))
        case _:
            inner = event
    return bool(inner.get("bot_id")) or inner.get("user") == me


def deleted_ts(event: Table) -> str | None:
    """The message that a person took back. One with answers in its thread leaves a mark behind."""
    if event.get("subtype") == "message_deleted":
        return str(event.get("deleted_ts"))
    left = table(event.get("message"))
    if event.get("subtype") == "message_changed" and left.get("subtype") == "tombstone":
        return str(left.get("ts"))
    return None


def place_of(event: Table, account: str, direct: Direct) -> tuple[ChatAddress, ChatKind, str]:
    """Where an event belongs: address, kind, and the message to whose thread answers go, if the address does not say it.

    In channels each message that concerns us opens a thread, which is a conversation of its own.
    """
    channel, thread = str(event["channel"]), str(event.get("thread_ts") or "")
    private = event.get("channel_type") == "im" or channel.startswith("D")
    root = thread or str(event.get("ts") or "")
    if not private:
        return ChatAddress(PLATFORM, account, channel, root), ChatKind.GROUP, ""
    match direct:
        case Direct.ONE:
            return ChatAddress(PLATFORM, account, channel), ChatKind.PRIVATE, root
        case Direct.THREADS:
            return ChatAddress(PLATFORM, account, channel, root), ChatKind.PRIVATE, ""
        case Direct.FLAT:
            return ChatAddress(PLATFORM, account, channel, thread), ChatKind.PRIVATE, ""


def read_message(
    event: Table, me: str, account: str, name: str, *, late: str = "", direct: Direct = Direct.ONE
) -> ChatMessage | None:
    """What a message event means for us; None if nothing. `name` is its person's."""
    edited = event.get("subtype") == "message_changed"
    inner: Table = (
        {**event["message"], "channel": event["channel"], "channel_type": event.get("channel_type")}
        if edited
        else event
    )
    if inner.get("subtype") not in _PLAIN or inner.get("bot_id") or inner.get("user") in (None, me, "USLACKBOT"):
        return None
    if edited and table(event.get("previous_message")).get("text") == inner.get("text"):
        return None  # only a preview of a link came
    raw = str(inner.get("text") or "")
    for_us = f"<@{me}>" in raw
    text = unescaped(re.sub(rf"(?<!\s)\s*<@{me}>[ ,:]*", " ", raw).strip())
    brought = beside(inner)
    if not (for_us or text or brought.words or brought.files):
        return None
    address, kind, root = place_of(inner, account, direct)
    found, words = _COMMAND.fullmatch(as_command(text, "!/")), late + "\n".join(filter(None, (brought.words, text)))
    origin = ChatOrigin(
        address,
        kind,
        ChatPerson(str(inner["user"]), name),
        str(inner["ts"]),
        brought.files,
        unfinished=len(raw) >= NEARLY_FULL,
        root=root,
        foreign=brought.foreign,
    )
    return ChatMessage(
        origin=origin,
        key=f"{address.chat}:{inner['ts']}",
        text=(found[2] or "").strip()
        if found
        else words,  # nothing else is put to a command, which would mean another thing
        command=found[1].lower() if found else "",
        typed=words if found else "",
        for_us=for_us,
        edited=edited,
        said_at=round(float(inner["ts"]) * 1000),
    )


def read_command(body: Table, account: str) -> ChatMessage:
    """The slash command: ``/outspoken stop all``. As it is written elsewhere (``/stop``, ``!stop``) is meant as well."""
    channel = str(body["channel_id"])
    kind = ChatKind.PRIVATE if channel.startswith("D") else ChatKind.GROUP
    typed = unescaped(str(body.get("text") or "")).strip()
    name, *rest = typed.split(maxsplit=1) or [""]
    name = normalize("NFKC", name)
    origin = ChatOrigin(
        ChatAddress(PLATFORM, account, channel), kind, ChatPerson(str(body["user_id"]), str(body.get("user_name")))
    )
    return ChatMessage(
        origin=origin,
        key=f"command:{body['trigger_id']}",
        text="".join(rest),
        command=(name[name.startswith(("/", IN_THREAD)) :] or "help").lower(),
        typed=typed,
        for_us=True,
    )


def read_press(body: Table, account: str, direct: Direct = Direct.ONE) -> ChatMessage | None:
    """A pressed button."""
    action = table((body.get("actions") or [None])[0])
    value = str(action.get("value") or "")
    container = table(body.get("container"))
    if not value or "channel" not in body:
        return None
    event = {
        "channel": body["channel"]["id"],
        "ts": container.get("message_ts"),
        "thread_ts": container.get("thread_ts") or table(body.get("message")).get("thread_ts"),
    }
    address, kind, root = place_of(event, account, direct)
    person = ChatPerson(str(body["user"]["id"]), str(body["user"].get("name") or body["user"].get("username")))
    origin = ChatOrigin(address, kind, person, str(container.get("message_ts") or ""), root=root)
    return ChatMessage(origin=origin, key=f"press:{body['trigger_id']}", text=value, command="press", for_us=True)


def read_stop(event: Table, account: str, name: str, direct: Direct = Direct.ONE) -> ChatMessage:
    """The press on Slack's own stop button (https://docs.slack.dev/reference/events/agent_session_stopped): the command."""
    thread = str(event["thread_ts"])
    address, kind, root = place_of({**event, "ts": thread}, account, direct)
    return ChatMessage(
        origin=ChatOrigin(address, kind, ChatPerson(str(event["user"]), name), thread, root=root),
        key=f"stopped:{address.chat}:{thread}:{event['event_ts']}",
        text="here",
        command="stop",
        for_us=True,
    )


@dataclass(frozen=True, slots=True)
class PersonDid:
    """A person did something that is stored; of a message in a channel, `event` is what Slack told."""

    message: ChatMessage
    event: Table | None = None
    named: bool = True
    """The person's name is known; else only the id."""

    @property
    def mentioned(self) -> tuple[str, ...]:
        """Whom it mentions by their ids; a command means nobody."""
        return () if self.message.command else mentioned(self.message.text)[:MOST_NAMES]

    def by(self, name: str, zone: str, language: str, names: Mapping[str, str]) -> ChatMessage:
        """The message with what Slack says of its person, and of those whom it mentions."""
        origin = self.message.origin
        person = replace(origin.person, name=name, zone=zone, language=language)
        text = with_names(self.message.text, names) if names else self.message.text
        return replace(self.message, origin=replace(origin, person=person), text=text)


@dataclass(frozen=True, slots=True)
class MessageDeleted:
    """A message was deleted, by this key."""

    key: str


@dataclass(frozen=True, slots=True)
class Opened:
    """Somebody has opened the app's messages."""

    channel: str


Read: TypeAlias = PersonDid | MessageDeleted | Opened | None


def read_body(body: object, me: str, account: str, direct: Direct = Direct.ONE, *, late: str = "") -> Read:
    """What Slack tells by a socket or a call means for us; None if nothing. Raises whatever it wants if it is odd."""
    if not isinstance(body, dict):
        raise TypeError("Slack's calls are objects")
    told = cast("Table", body)
    if "command" in told:
        return PersonDid(read_command(told, account))
    if told.get("type") == "block_actions":
        pressed = read_press(told, account, direct)
        return None if pressed is None else PersonDid(pressed)
    event = table(told.get("event"))
    match event.get("type"):
        case "message" | "app_mention":
            if (deleted := deleted_ts(event)) is not None:
                return MessageDeleted(f"{event['channel']}:{deleted}")
            read = read_message(event, me, account, user_of(event), late=late, direct=direct)
            return None if read is None else PersonDid(read, event, named=False)
        case "agent_session_stopped":
            return PersonDid(read_stop(event, account, str(event["user"]), direct), event, named=False)
        case "app_home_opened" if event.get("tab") == "messages":
            return Opened(str(event["channel"]))
        case _:
            return None


def key_of_body(body: object) -> str:
    """The number of what Slack tells, the same if it is told again; empty if there is none."""
    told = table(body)
    event = table(told.get("event"))
    if event.get("type") in ("message", "app_mention") and "subtype" not in event:
        return f"message:{event.get('channel')}:{event.get('ts')}:{digest_of(event.get('text'))}"
    return str(told.get("event_id") or told.get("trigger_id") or "")


def whence(body: object, me: str, account: str, direct: Direct) -> Whence:
    """Whose something is that cannot be read, as far as it says so. Raises whatever it wants."""
    told = table(body)
    event = table(told.get("event"))
    if not event:
        channel = told.get("channel_id") or told["channel"]["id"]
        person = told.get("user_id") or told["user"]["id"]
        return Whence(ChatAddress(PLATFORM, account, str(channel)), str(person), for_us=True)
    inner = table(event.get("message")) or event
    address, kind, _ = place_of({**inner, "channel": event["channel"]}, account, direct)
    private = kind is ChatKind.PRIVATE or event.get("channel_type") == "im"
    user = inner["user"]
    if not isinstance(user, str) or inner.get("bot_id") or user == me:
        return Whence()
    return Whence(replace(address, thread=""), user, private or f"<@{me}>" in str(inner.get("text")))


def body_of(content: bytes, kind: str) -> object:
    """What Slack calls us with: JSON, a form that holds JSON, or a command's form. Raises ValueError if it is nothing of that."""
    text = content.decode()
    if kind != "application/x-www-form-urlencoded":
        return json.loads(text)
    form = dict(parse_qsl(text, keep_blank_values=True))
    return json.loads(form["payload"]) if "payload" in form else form


def prompts_of(words: tuple[str, ...]) -> list[dict[str, str]]:
    """Suggestions as Slack takes them: at most four."""
    return [{"title": one if len(one) <= 60 else one[:59] + "…", "message": one} for one in words[:4]]
