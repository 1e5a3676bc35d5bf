"""What a chat message means: a command, words for the agent, or nothing that concerns us. Pure.

Private chats always concern us. In groups it does if the bot is mentioned, a message of its own is replied to, a command is
addressed to it, or the topic is one that it takes part in. Topics are sessions of their own.

Laws (tests/gateway/test_chat_decisions.py): a command for another bot never concerns us; the same chat and topic give the same
session; different ones never do.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, TypeAlias

from adapters.contract.chat import ChatKind, ChatMessage, ChatOrigin
from adapters.contract.platforms import RespondWhen
from agent_core.records import dataclass

if TYPE_CHECKING:
    from adapters.contract.base import SessionKey


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What the configuration says about a group."""

    respond: RespondWhen = RespondWhen.MENTION
    by_person: bool = False
    """Each person has a conversation of their own with the bot."""


@dataclass(frozen=True, slots=True)
class Ignore:
    """It does not concern us, and nothing of it is kept."""

    why: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command of ours."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class WordsForAgent:
    text: str


Meaning: TypeAlias = Ignore | Command | WordsForAgent


def meaning(message: ChatMessage, rules: GroupRules, commands: Collection[str], *, takes_part: bool) -> Meaning:
    """What a message means. `takes_part` says that its thread is one in which the bot has been talking."""
    if message.for_others:
        return Ignore("it is a command for another bot")
    if message.command in commands:
        addressed = message.for_us or message.origin.kind is ChatKind.PRIVATE or rules.respond is not RespondWhen.NEVER
        return Command(message.command, message.text) if addressed else Ignore("the bot is silent in this group")
    text = written(message)
    if message.origin.kind is ChatKind.PRIVATE:
        return WordsForAgent(text)
    if rules.respond is RespondWhen.NEVER:
        return Ignore("the bot is silent in this group")
    in_thread = takes_part and bool(message.origin.address.thread)
    if rules.respond is RespondWhen.ALWAYS or message.for_us or message.reply_to_us or in_thread:
        return WordsForAgent(text)
    return Ignore("it was not meant for the bot")


def written(message: ChatMessage) -> str:
    """All that its person wrote, a command's name as well."""
    return (message.typed or f"/{message.command} {message.text}".strip()) if message.command else message.text


def session_of(origin: ChatOrigin, rules: GroupRules) -> SessionKey:
    """The session that a message belongs to."""
    from adapters.contract.base import SessionKey  # the configuration needs this module, and is read by every command

    address = origin.address
    person = origin.person.id if rules.by_person and origin.kind is ChatKind.GROUP else ""
    return SessionKey(address.platform, address.account, address.chat, address.thread, person)


CALLED = "(called you by your name, without words)"


def spoken(origin: ChatOrigin, text: str, rules: GroupRules) -> str:
    """The words as the model gets them: in a group that shares one conversation, it must know who speaks."""
    shared = origin.kind is ChatKind.GROUP and not rules.by_person
    text = text if text or origin.attachments else CALLED
    return f"{origin.person.name}: {text}" if shared and text else text
