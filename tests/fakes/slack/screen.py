"""What a person sees in a channel or in a thread. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.fakes.common import JsonObject
from tests.fakes.slack import blocks as kit
from tests.fakes.slack.blocks import Button
from tests.fakes.slack.objects import Channel, Message, Prompt, SessionStatus, StreamState, Task, User
from tests.fakes.slack.shapes import unescaped
from tests.fakes.slack.world import GRAVESTONE, World


@dataclass(frozen=True, slots=True)
class Shown:
    """A message on the screen, as it was when it was looked at."""

    ts: str
    by_bot: bool
    """Whether the app wrote it."""
    sender: str
    text: str
    """What a person reads: of blocks if there are any, of a stream what has come so far, else of the text."""
    fallback: str
    """The text of the message, which is not seen where there are blocks, but in notifications."""
    blocks: tuple[JsonObject, ...]
    buttons: tuple[Button, ...]
    edits: int
    """How often what a person reads was changed."""
    earlier: tuple[str, ...]
    """What it was before."""
    files: tuple[str, ...]
    """Their names."""
    thread_ts: str | None
    """Of an answer: the first message of its thread."""
    replies: int
    reactions: tuple[tuple[str, int], ...]
    """Emojis and how many people each."""
    ephemeral: bool
    """Whether only this person sees it."""
    stream: StreamState | None
    """None: it was never streamed."""
    plan: str
    """The title above the tasks."""
    tasks: tuple[Task, ...]
    deleted: bool
    """Only a mark is left, because the thread goes on."""
    metadata: JsonObject | None

    @property
    def captions(self) -> list[str]:
        """What stands on the buttons."""
        return [button.caption for button in self.buttons]


@dataclass(frozen=True, slots=True)
class Screen:
    """A channel or a thread, as one person sees it at one moment."""

    messages: Sequence[Shown]
    """In order; deleted ones are not there, but for the mark in the place of a thread's first message."""
    status: SessionStatus | None
    """Of the agent's session in the thread."""
    stoppable: bool
    """Whether there is a button Stop."""
    title: str
    """Of the thread."""
    thinking: str
    """What `assistant.threads.setStatus` shows, such as "is thinking…"."""
    prompts: tuple[Prompt, ...]

    @property
    def texts(self) -> list[str]:
        """The texts of all messages."""
        return [message.text for message in self.messages]

    @property
    def answers(self) -> list[Shown]:
        """What the app has written, and what is still there of it."""
        return [message for message in self.messages if message.by_bot and not message.deleted]


def _shown(world: World, message: Message) -> Shown:
    world.streaming(message)
    stream = message.stream
    blocks = stream.final_blocks if stream is not None else message.blocks
    gone = message.deleted
    return Shown(
        ts=message.ts,
        by_bot=message.sender is world.bot,
        sender=message.sender.real_name,
        text=GRAVESTONE if gone else world.visible(message),
        fallback="" if gone else unescaped(message.text),
        blocks=() if gone else tuple(blocks),
        buttons=() if gone else tuple(kit.buttons(blocks)),
        edits=len(message.earlier),
        earlier=tuple(message.earlier),
        files=() if gone else tuple(file.name for file in message.files),
        thread_ts=message.thread_ts,
        replies=len(message.channel.replies(message.ts)),
        reactions=tuple((name, len(users)) for name, users in message.reactions.items()),
        ephemeral=message.visible_to is not None,
        stream=stream.state if stream is not None else None,
        plan=stream.plan if stream is not None else "",
        tasks=tuple(stream.tasks.values()) if stream is not None else (),
        deleted=gone,
        metadata=message.metadata,
    )


def screen(world: World, channel: Channel, thread_ts: str | None, viewer: User | None) -> Screen:
    """What is seen in a channel, or in one thread of it: its first message and the answers.

    In direct messages the viewer is the person there, unless told otherwise.
    """
    viewer = viewer or channel.user
    mine = [one for one in channel.ephemeral if viewer is not None and one.visible_to == viewer.id]
    every = sorted([*channel.messages.values(), *mine], key=lambda one: one.ts)
    there = [one for one in every if not one.deleted or channel.replies(one.ts)]
    if thread_ts is None:
        seen = [one for one in there if one.thread_ts is None or one.broadcast]
    else:
        seen = [one for one in there if thread_ts in {one.ts, one.thread_ts}]
    session = channel.sessions.get(thread_ts or "")
    thinking = channel.thinking.get(thread_ts or "")
    working = session is not None and session.status is SessionStatus.PROCESSING
    now = world.clock.monotonic()
    return Screen(
        messages=[_shown(world, message) for message in seen],
        status=session.status if session is not None else None,
        stoppable=working and "agent_session_stopped" in world.settings.subscribed,
        title=(session.title if session is not None else "") or channel.titles.get(thread_ts or "", ""),
        thinking=thinking.text if thinking is not None and thinking.until > now else "",
        prompts=tuple(channel.prompts.get(thread_ts or "", ())),
    )
