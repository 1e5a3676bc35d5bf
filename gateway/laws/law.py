"""The laws of what is stored: each with its words and what to do when it is broken. Pure.

Why apart from the laws of the machine (`agent_core.turn.invariants`): those are asked where the decision is made, by whoever made it, and of one
turn. These are asked afterwards, of rows alone, and by nobody who has a picture of how they came to be.

A law takes rows and the time, and gives breaches. It never asks for more rows: `agent_core.store.evidence` has read all that it may look at.
"""

from __future__ import annotations

from enum import StrEnum

from agent_core.records import dataclass
from agent_core.store.sessions.rows import NodeRow

LATE_MS = 300_000
"""How long something may wait before it counts as forgotten, where the configuration says nothing else."""
UNCLAIMED_MS = 60_000
"""An open turn of a process that is gone is taken up within this time."""
KEPT_MS = 6 * 24 * 3600 * 1000
"""Messages and parts are kept for seven days at least: whatever is younger than this must be there."""


AHEAD_MS = 24 * 3600 * 1000
"""By so much a clock may have been ahead that was put right since, and a platform's may differ from ours."""


class Law(StrEnum):
    """The laws, by what is wrong where one is broken."""

    STRANDED = "stranded"
    """A message is accepted, and no turn takes it."""
    OVERTAKEN = "overtaken"
    """A later message of the same conversation was taken first."""
    LOST = "lost"
    """A message is recorded as taken or heard, and no turn knows of it; or a message, or what a webhook was told, is not there any more."""
    UNTOLD = "untold"
    """A message was given up, and nobody was told."""
    UNCLAIMED = "unclaimed"
    """A turn is open, and no process that lives works on it."""
    OVERDUE = "overdue"
    """A turn is open beyond its own deadline."""
    UNENDED = "unended"
    """A turn is closed, and its journal does not end in exactly one exit; or it is open, and has one."""
    OTHER_EXIT = "other_exit"
    """A turn's row says another exit than its journal."""
    HOLE = "hole"
    """A journal, or the turns of a conversation, have a gap."""
    EPOCH = "epoch"
    """Something was written, or is held, under an ownership that was over, or is not known."""
    UNREADABLE = "unreadable"
    """What is stored of a turn cannot be read, or does not fit together."""
    UNSEEN = "unseen"
    """A turn ended, and what it ended with is not in its chat."""
    UNDELIVERED = "undelivered"
    """A part, or a message to a webhook, waits to be delivered for too long."""
    NO_RECEIPT = "no_receipt"
    """A part is recorded as delivered, and no receipt of the platform is, or another message's; or a message to a webhook, and it was never sent."""
    GIVEN_UP = "given_up"
    """A part is recorded as failed or left out, or a message to a webhook as given up, and no cause is."""
    CHANGED = "changed"
    """A part is not what it was when it was sent, or a large text or file when it was stored, or it is needed more or less often than it counts."""
    OTHER_WORDS = "other_words"
    """A part that was delivered, or what a webhook was told, says something else than the turn; or a message something else than what its turn was asked."""
    GAP = "gap"
    """Of an answer in several parts, one is not there."""
    TWICE = "twice"
    """Two parts have one receipt, something was shown that no turn wanted, or a message has two turns."""
    MISPLACED = "misplaced"
    """Parts, turns or messages are in another order than they were wanted in, or their numbers or times do not agree."""
    AHEAD = "ahead"
    """A platform counts as read up to a time that is still to come: what is said until then is not looked for."""
    SPENT = "spent"
    """Budgets do not agree with the calls that were paid from them, or a turn with what its journal says that it used."""
    HELD = "held"
    """Something is held in a budget for a call that nobody makes."""
    NO_FILE = "no_file"
    """A file that is to be sent is not there."""
    NOT_FIRED = "not_fired"
    """What was to happen at a time did not."""
    OTHER_CHAT = "other_chat"
    """A part is recorded in another chat than the one that it was made for."""

    @property
    def advice(self) -> str:
        """What an operator does about it."""
        return _ADVICE[self]


_RESTORE = "See outspoken explain for its story and outspoken db check for the disk; if rows were changed by hand, put a backup back."
_START = "See outspoken status: does a gateway run, and what does it say of the conversation? A restart takes up what is open."
_PLATFORM = "See outspoken status for the platform, and outspoken webhooks list; the console sends a part again, or takes it out."
_BUG = "This is a mistake of the program, or somebody wrote into the database: keep outspoken bundle of the turn, and report it."
_ADVICE = {
    Law.STRANDED: _START,
    Law.OVERTAKEN: f"Its person waits for an answer: write to them. {_BUG}",
    Law.LOST: f"Its person waits for an answer: write to them. {_BUG}",
    Law.UNTOLD: f"Its person was not told: write to them. {_BUG}",
    Law.UNCLAIMED: _START,
    Law.OVERDUE: _START,
    Law.UNENDED: _BUG,
    Law.OTHER_EXIT: _BUG,
    Law.HOLE: _RESTORE,
    Law.EPOCH: "Two processes may have written at once: see outspoken doctor, and who else uses this database.",
    Law.UNREADABLE: _RESTORE,
    Law.UNSEEN: f"Its person saw no end: write to them. {_BUG}",
    Law.UNDELIVERED: _PLATFORM,
    Law.NO_RECEIPT: f"Look into the chat whether it is there. {_BUG}",
    Law.GIVEN_UP: _PLATFORM,
    Law.CHANGED: _RESTORE,
    Law.OTHER_WORDS: f"Compare the chat with outspoken explain --show-text. {_BUG}",
    Law.GAP: f"The chat may lack a piece of the answer: send it again from the console. {_BUG}",
    Law.TWICE: f"Look into the chat whether something stands there twice. {_BUG}",
    Law.MISPLACED: _BUG,
    Law.AHEAD: f"Is the clock of this machine right? What is said after a gap in that channel may be missed. {_BUG}",
    Law.SPENT: "Amounts may be wrong by as much as is said here; the next window begins with nothing.",
    Law.HELD: "A restart lets it go, and counts it as spent.",
    Law.NO_FILE: "The part cannot be sent any more: take it out in the console, and have the file made again.",
    Law.NOT_FIRED: _START,
    Law.OTHER_CHAT: f"Somebody may have read what was meant for others: look into both chats. {_BUG}",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Breach:
    """One law that is broken, at one place."""

    law: Law
    what: str
    """What is wrong, in a sentence, without a word of a person."""
    where: str
    """The turn, message or part, by the id that `outspoken explain` takes."""
    chat: str = ""
    """The conversation's key."""
    since: int = 0
    """ms; 0 if nobody can say."""

    @property
    def key(self) -> tuple[Law, str, str]:
        """By which the same breach is known again in one look."""
        return (self.law, self.where, self.what)

    @property
    def place(self) -> tuple[Law, str]:
        """By which it is known again in later looks: what it says may have grown since, such as for how long something waits."""
        return (self.law, self.where or self.what)


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """When, and beside whom, the rows are looked at."""

    now: int
    nodes: tuple[NodeRow, ...] = ()
    """The newest first."""
    late: int = LATE_MS
    version: str = ""
    """Of this program: what earlier ones said in their own words is not compared with ours."""
    runs: bool | None = None
    """Whether a gateway has the database open; None if that is not known."""

    latest: int = 0
    """When the last of the newest messages came, ms: our clock may have been put back since."""
    living: frozenset[int] | None = None
    """Of several gateways each that lives; None where the database does not tell: then there is one at most, the newest."""

    @property
    def newest(self) -> NodeRow | None:
        return self.nodes[0] if self.nodes else None

    @property
    def up_since(self) -> int:
        """Since when there is a gateway that does what is due, ms; 0 if none runs."""
        newest = self.newest
        runs = newest is not None and newest.ended_at is None and self.runs is not False
        return newest.started_at if newest is not None and runs else 0

    @property
    def ahead(self) -> int:
        """What says that it is later than this, ms, is still to come by all that is known of the time."""
        return max(self.now, self.latest, *(max(one.started_at, one.ended_at or 0) for one in self.nodes), 0) + AHEAD_MS

    @property
    def ours_since(self) -> int:
        """Since when only this version has written, ms."""
        others = [number for number, node in enumerate(self.nodes) if node.version != self.version]
        ours = self.nodes[: others[0]] if others else self.nodes
        return min((node.started_at for node in ours), default=self.now)

    @property
    def idle(self) -> str:
        """What is said behind something that waits, if nobody is there to do it."""
        return " No gateway runs." if self.runs is False else ""

    def alive(self, node: int | None) -> bool:
        """Whether this process may still be working."""
        if self.living is not None:
            return node in self.living
        newest = self.newest
        return newest is not None and node == newest.node and newest.ended_at is None and self.runs is not False

    def dead_since(self, node: int | None) -> int:
        """When it ended; or, at the latest, when the newest began."""
        newest = self.newest
        if newest is None or node is None:
            return 0
        if self.living is not None:
            ended = next((one.ended_at for one in self.nodes if one.node == node), None)
            return ended or newest.started_at
        return newest.started_at if node != newest.node else (newest.ended_at or newest.started_at)


MENDS = frozenset({
    Law.STRANDED, Law.UNCLAIMED, Law.OVERDUE, Law.UNDELIVERED, Law.NO_FILE, Law.NOT_FIRED, Law.SPENT, Law.HELD, Law.OVERTAKEN, Law.AHEAD,
})  # fmt: skip
"""What is over when a later look does not find it: it is of what is open, and that is looked at each time."""
