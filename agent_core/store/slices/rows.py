"""What several nodes of one database divide among themselves: chats in slices, each account's connection, and what is done once for all."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from dataclasses import field
from functools import lru_cache
from hashlib import md5

from agent_core.records import dataclass
from agent_core.store.sessions.rows import ONCE

CHAT_SLICES = 64
HOUSE = "house"
"""What must be done once: schedules, upkeep, alerts."""
ACCOUNT = "account/"


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One of them."""

    slice: str
    owner: int | None = None
    """The node that works on it; None if nobody does."""
    epoch: int = 0
    """Grows with each change of hands."""


@dataclass(frozen=True, slots=True)
class PeerNode:
    """A node that lives."""

    node: int
    address: str
    """Where it serves; empty if it takes no part (any more): it ends, or is a command."""
    version: str = ""
    started_at: int = 0
    serves: frozenset[str] | None = None
    """The accounts (``platform/bot``) that it serves; None: it is of an older version, which does not say."""


@dataclass(frozen=True, slots=True)
class NodeSight:
    """A node that lives, for whoever asks how all are doing."""

    node: int
    address: str
    version: str
    started_at: int
    told: str = ""
    """As `NodeRow.told`."""
    silent_seconds: float = 0.0
    """How long ago its pulse was heard."""
    running: int | None = 0
    """How many turns are open in its conversations; None: it was not asked for, and what is said of the node was true when it last was."""


@dataclass(frozen=True, slots=True)
class Division:
    """Who is there, and who works on what."""

    peers: tuple[PeerNode, ...]
    owners: Mapping[str, int | None]
    epochs: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often each has changed hands."""

    @property
    def living(self) -> frozenset[int]:
        return frozenset(one.node for one in self.peers)

    @property
    def taking_part(self) -> tuple[PeerNode, ...]:
        """Those that slices can be given to."""
        return tuple(one for one in self.peers if one.address)

    def held_by(self, node: int) -> frozenset[str]:
        """What a node works on."""
        return frozenset(name for name, owner in self.owners.items() if owner == node)


@lru_cache(4096)
def slice_of(key: str) -> str:
    """The slice of a conversation, by its key, or of a chat: all conversations of a chat are in one, so that what is said in it keeps its order."""
    chat = "/".join(key.split("/", 3)[:3])
    number = md5(chat.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()[0] % CHAT_SLICES
    return f"chats/{number:02}"


def account_slice(account: str, number: int = 0) -> str:
    """A connection of an account (``platform/bot``): the only one, or the one of this number."""
    return f"{ACCOUNT}{account}#{number}" if number else f"{ACCOUNT}{account}"


def account_slices(account: str, count: int = 1) -> tuple[str, ...]:
    """All connections of an account."""
    return tuple(account_slice(account, number) for number in range(count))


def account_in(key: str) -> str:
    """The account (``platform/bot``) of a conversation in a chat, by its key."""
    return "/".join(key.split("/", 2)[:2])


def account_of(name: str) -> str:
    """What all connections of an account have in common; of anything else, its name."""
    return name.partition("#")[0]


class Tenure:
    """Under which slices something is done, each with its epoch, as long as we have them; none of them when it is over.

    Whoever goes on after that has nothing to say any more, even if the same node has the same slice again.
    """

    __slots__ = ("_held",)

    def __init__(self, epochs: Mapping[str, int]) -> None:
        self._held = dict(epochs)

    @property
    def held(self) -> tuple[str, ...]:
        """As `under` tells them to the database."""
        return tuple(under(name, epoch) for name, epoch in self._held.items())

    def keep(self, epochs: Mapping[str, int], names: Collection[str]) -> None:
        """Of these slices, we have those that have an epoch."""
        self._held = {name: epochs[name] for name in names if name in epochs}

    def end(self) -> None:
        self._held = {}


def under(name: str, epoch: int) -> str:
    """A slice with its epoch, in one word."""
    return f"{name}@{epoch}"


TENURE: ContextVar[Tenure | None] = ContextVar("tenure", default=None)
"""Of what is done now; None: of nothing that has changed hands, or could."""


def tenure_now() -> tuple[str, ...] | None:
    """What a position is written under that is written now."""
    found = TENURE.get()
    return None if found is None else found.held


def chat_slices() -> tuple[str, ...]:
    """All that chats are in."""
    return tuple(f"chats/{number:02}" for number in range(CHAT_SLICES))


def single(key: str) -> bool:
    """The conversation of a single request: in no chat, so that whoever accepted it runs it while it lives."""
    return key.startswith(ONCE)


@dataclass(frozen=True, slots=True)
class Right:
    """Who may take a conversation, by its slice."""

    ours: bool = False
    """We may, whoever has had it."""
    other: int | None = None
    """This node, which lives, and nobody else."""


ANYBODY = Right()
"""Who has it has it while it lives; then whoever comes first."""
