"""Sessions of the gateway: what they want to hear, what they were told, and what can be told again. No I/O.

https://docs.discord.com/developers/events/gateway
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import orjson

from tests.fakes.common import JsonObject
from tests.fakes.discord.ids import shard_of
from tests.fakes.discord.world import Event


class Op(IntEnum):
    """What a frame means."""

    DISPATCH = 0
    HEARTBEAT = 1
    IDENTIFY = 2
    PRESENCE = 3
    VOICE_STATE = 4
    RESUME = 6
    RECONNECT = 7
    REQUEST_MEMBERS = 8
    INVALID_SESSION = 9
    HELLO = 10
    HEARTBEAT_ACK = 11


class CloseCode(IntEnum):
    """Why the gateway closes a connection."""

    NORMAL = 1000
    UNKNOWN_ERROR = 4000
    UNKNOWN_OPCODE = 4001
    DECODE_ERROR = 4002
    NOT_AUTHENTICATED = 4003
    AUTHENTICATION_FAILED = 4004
    ALREADY_AUTHENTICATED = 4005
    INVALID_SEQ = 4007
    RATE_LIMITED = 4008
    SESSION_TIMED_OUT = 4009
    INVALID_SHARD = 4010
    SHARDING_REQUIRED = 4011
    INVALID_VERSION = 4012
    INVALID_INTENTS = 4013
    DISALLOWED_INTENTS = 4014


ENDING = frozenset({4004, 4007, 4009, 4010, 4011, 4012, 4013, 4014})
"""Close codes after which the session is gone."""


class Intent(IntFlag):
    """What a bot can want to hear."""

    GUILDS = 1 << 0
    MEMBERS = 1 << 1
    MODERATION = 1 << 2
    EXPRESSIONS = 1 << 3
    INTEGRATIONS = 1 << 4
    WEBHOOKS = 1 << 5
    INVITES = 1 << 6
    VOICE_STATES = 1 << 7
    PRESENCES = 1 << 8
    MESSAGES = 1 << 9
    REACTIONS = 1 << 10
    TYPING = 1 << 11
    DMS = 1 << 12
    DM_REACTIONS = 1 << 13
    DM_TYPING = 1 << 14
    CONTENT = 1 << 15
    SCHEDULED_EVENTS = 1 << 16
    AUTOMOD_CONFIGURATION = 1 << 20
    AUTOMOD_EXECUTION = 1 << 21
    POLLS = 1 << 24
    DM_POLLS = 1 << 25


PRIVILEGED = Intent.MEMBERS | Intent.PRESENCES | Intent.CONTENT
"""Intents that the application must have been given in the portal."""
_KNOWN = sum(Intent)


def unknown_intents(number: int) -> bool:
    """Whether there are bits that mean nothing."""
    return number < 0 or bool(number & ~_KNOWN)


def intent_of(name: str, *, in_guild: bool) -> Intent | None:
    """The intent that an event needs; None: every bot is told."""
    if name.startswith("MESSAGE_REACTION"):
        return Intent.REACTIONS if in_guild else Intent.DM_REACTIONS
    if name.startswith("MESSAGE_"):
        return Intent.MESSAGES if in_guild else Intent.DMS
    if name == "TYPING_START":
        return Intent.TYPING if in_guild else Intent.DM_TYPING
    if name.startswith("GUILD_MEMBER_"):
        return Intent.MEMBERS
    if name.startswith(("GUILD_", "CHANNEL_", "THREAD_")):
        return Intent.GUILDS
    return None


@dataclass(frozen=True, slots=True)
class Dispatch:
    """An event as one session was told it."""

    seq: int
    name: str
    body: JsonObject

    def frame(self) -> str:
        """What is sent."""
        return frame(Op.DISPATCH, self.body, self.name, self.seq)


@dataclass(slots=True, eq=False)
class Session:
    """What an IDENTIFY begins. It outlives its connections."""

    id: str
    intents: Intent
    shard: int
    shards: int
    sent: list[Dispatch] = field(default_factory=list[Dispatch])
    """Everything that the session was told, or would have been told if somebody had listened."""
    left_at: float | None = None
    """Monotonic seconds at which its connection ended; None while there is one."""
    resumes: int = 0

    def wants(self, event: Event) -> bool:
        """Whether an event is for this session."""
        # What has no guild is told to the first shard.
        own = 0 if event.guild_id is None else shard_of(event.guild_id, self.shards)
        if own != self.shard:
            return False
        needed = intent_of(event.name, in_guild=event.guild_id is not None)
        return needed is None or needed in self.intents

    def put(self, name: str, body: JsonObject) -> Dispatch:
        """One more event."""
        dispatch = Dispatch(len(self.sent) + 1, name, body)
        self.sent.append(dispatch)
        return dispatch

    def put_event(self, event: Event) -> Dispatch:
        """One more event, without what the session may not read."""
        hidden = event.withheld is not None and Intent.CONTENT not in self.intents
        return self.put(event.name, event.withheld if hidden and event.withheld is not None else event.body)

    def after(self, seq: int) -> list[Dispatch]:
        """What was told after this one."""
        return self.sent[seq:]


def frame(op: Op, data: object, name: str | None = None, seq: int | None = None) -> str:
    """The text of a frame."""
    return orjson.dumps({"op": op.value, "d": data, "s": seq, "t": name}).decode()
