"""From Slack's payloads to our words. Pure, but for people's names, which are handed in."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any, cast

from adapters.chat import Attachment, AttachmentKind, ChatAddress, ChatKind, ChatMessage, ChatOrigin, ChatPerson

PLATFORM = "slack"
NEARLY_FULL = 3_900
_PICTURES = ("image/png", "image/jpeg", "image/webp", "image/gif")
_PLAIN = {None, "file_share", "thread_broadcast"}
_COMMAND = re.compile(r"!([a-z]{2,32})(?:\s+(.*))?", re.DOTALL)

Table = dict[str, Any]


class Direct(StrEnum):
    """How direct messages are answered."""

    ONE = "one"
    """Each in a thread of its own, as Slack's agents do it; all of them are one conversation."""
    THREADS = "threads"
    """Each in a thread of its own, which is a conversation of its own."""
    FLAT = "flat"
    """Beside each other, without threads: then there are no streams and no stop button."""


def table(value: object) -> Table:
    """An object of a payload; an empty one if there is none."""
    return cast("Table", value) if isinstance(value, dict) else {}


def unescaped(text: str) -> str:
    """A text as the person wrote it: links without their brackets, entities resolved."""
    text = re.sub(r"<((?:https?|mailto):[^|>]+)(?:\|[^>]*)?>", r"\1", text)
    text = re.sub(r"<#\w+\|([^>]*)>", r"#\1", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def user_of(event: Table) -> str:
    """Whose event it is; empty if it is nobody's whom we could answer."""
    inner = table(event.get("message")) if event.get("subtype") == "message_changed" else event
    return "" if inner.get("bot_id") else str(inner.get("user", ""))


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
    text = unescaped(re.sub(rf"\s*<@{me}>[ ,:]*", " ", raw).strip())
    attachments = tuple(_attachment(file) for file in inner.get("files") or ())
    if not text and not attachments:
        return None
    address, kind, root = place_of(inner, account, direct)
    found = _COMMAND.fullmatch(text)
    origin = ChatOrigin(
        address,
        kind,
        ChatPerson(str(inner["user"]), name),
        str(inner["ts"]),
        attachments,
        unfinished=len(raw) >= NEARLY_FULL,
        root=root,
    )
    return ChatMessage(
        origin=origin,
        key=f"{address.chat}:{inner['ts']}",
        text=late + ((found[2] or "").strip() if found else text),
        command=found[1] if found else "",
        for_us=for_us,
        edited=edited,
    )


def _attachment(file: Table) -> Attachment:
    mime = str(file.get("mimetype") or "")
    if file.get("mode") == "external" or file.get("is_external"):
        return Attachment(AttachmentKind.OTHER, "", "file that lies on another site")
    if mime.startswith(("audio/", "video/")):
        return Attachment(AttachmentKind.OTHER, "", mime.partition("/")[0] + " file")
    kind = AttachmentKind.IMAGE if mime in _PICTURES else AttachmentKind.FILE
    return Attachment(
        kind, str(file.get("url_private") or ""), str(file.get("name") or "file"), mime, int(file.get("size") or 0)
    )


def read_command(body: Table, account: str) -> ChatMessage:
    """The slash command: ``/outspoken stop all``."""
    channel = str(body["channel_id"])
    kind = ChatKind.PRIVATE if channel.startswith("D") else ChatKind.GROUP
    name, _, words = unescaped(str(body.get("text") or "")).strip().partition(" ")
    origin = ChatOrigin(
        ChatAddress(PLATFORM, account, channel), kind, ChatPerson(str(body["user_id"]), str(body.get("user_name")))
    )
    return ChatMessage(
        origin=origin,
        key=f"command:{body['trigger_id']}",
        text=words.strip(),
        command=(name or "help").lower(),
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


def prompts_of(words: tuple[str, ...]) -> list[dict[str, str]]:
    """Suggestions as Slack takes them: at most four."""
    return [{"title": one if len(one) <= 60 else one[:59] + "…", "message": one} for one in words[:4]]
