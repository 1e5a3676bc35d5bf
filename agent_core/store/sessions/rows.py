"""Sessions, as they are read back, and what commands change in them."""

from __future__ import annotations

from typing import cast

import orjson

from agent_core.jsonvalue import Json
from agent_core.records import dataclass, later

ONCE = "api/once/"
"""How the key of a session begins that is for a single request. Nobody else can name it, so it need not be found by its key."""


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A process that has opened the store."""

    node: int
    name: str
    started_at: int
    version: str
    boot_id: str
    ended_at: int | None = None
    """It ended in order; what it left open was left on purpose."""
    taken_by: int | None = None
    """The node that has taken it for dead, and with that what it had."""
    address: str = later("")
    """Where it serves, for the other gateways of its database; empty if it takes no part (any more)."""
    told: str = later("")
    """What it tells the others of itself, as JSON (`gateway.several.telling`); empty if it is none of several."""
    serves: str = later("")
    """The accounts of platforms that it serves, as JSON; empty: it is of a version that does not say."""


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A stored session."""

    session: str
    key: str
    owner: int | None
    epoch: int
    policy: str | None = None
    runnable_at: int | None = None
    quarantined: str | None = None
    """Why nothing of it is run for now; None if it is."""
    created_at: int = 0
    last_at: int = 0
    """When a turn of it last began or ended, to the minute."""
    since: int = later(0)
    """Turns up to this number are not put before the model any more."""
    tip: int = later(-1)
    """The number of the turn that the next one follows; -1: the last."""


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A session that holds something which a model would be shown."""

    key: str
    session: str
    at: int
    """When its last turn began or ended, ms."""
    kind: str
    body: bytes
    """Kind and body of the event that opened its first turn."""


@dataclass(frozen=True, slots=True)
class PlaceChange:
    """What goes on in a place from now on."""

    place: str
    continues: str | None


@dataclass(frozen=True, slots=True)
class BranchChange:
    """Another branch of a conversation is shown, and put before the model."""

    tip: int
    """The number of its last turn; 0: it has none."""
    told: tuple[str, ...]
    """The turns that are on it, and were not on the one before."""
    untold: tuple[str, ...]
    """Those that are not on it, and were."""


@dataclass(frozen=True, slots=True)
class SessionChange:
    """What a command changes in a session; None leaves a thing as it is."""

    forget: bool = False
    """The conversation begins anew: earlier turns are not put before the model any more."""
    undo: str | None = None
    """This turn is not put before the model any more."""
    branch: BranchChange | None = None
    policy: str | None = None
    """What is set otherwise of the session's settings, see `settings_with`."""
    place: PlaceChange | None = None
    """What goes on in the chat where the command was given."""


def settings_with(stored: str | None, change: str) -> str:
    """Settings (a JSON table) and what is set otherwise of them (another one); what is empty in that is unset, and what it does not name stays, whoever has
    set it meanwhile. Settings that cannot be read count as none. Pure."""
    try:
        before: object = orjson.loads(stored or "{}")
    except orjson.JSONDecodeError:
        before = {}
    known = cast("dict[str, Json]", before) if isinstance(before, dict) else {}
    table = {**known, **cast("dict[str, Json]", orjson.loads(change))}
    return orjson.dumps({name: value for name, value in table.items() if value}).decode()


@dataclass(frozen=True, slots=True)
class OwnersChange:
    """A change of a session that goes with something else, in one commit, under the epoch of who owns it."""

    session: str
    epoch: int
    change: SessionChange


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """What is known of a session by its turns."""

    turns: int
    """Those that are still told, or are open."""
    input_tokens: int
    """Of all turns that there ever were."""
    output_tokens: int
    open_turn: str
    """Empty if none is open."""
    first: str
    """The first turn that is still told; empty if there is none."""
    last: str
