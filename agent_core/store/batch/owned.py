"""What the last batches left of this node's sessions and of their open turns, so that the next one need not ask for it. For SQLite alone.

Theory. One process writes a SQLite file, by one connection. So what a commit left of a session that this node owns, and of an open turn, is
what the next batch would read. That other nodes write as well is the rule on PostgreSQL: there nothing is kept.

Of a single request, which is its session's only one, nothing is kept once it is answered: nobody can name it again.

Laws (tests/store/test_owned.py): with what is kept, every operation is answered as without, and the same is stored. Only what a commit has
left is kept: where one fails, or nobody knows whether it did, and where something is written beside the batches, all is forgotten. A write by
another connection (by hand, or by a process that took the file) is seen inside the transaction, before anything is decided: then all is
forgotten, too, so a node that is fenced off learns it from its next write, as ever.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection

from agent_core.store.batch.facts import Facts, Needs, SessionFact, TurnFact
from agent_core.store.database import direct
from agent_core.store.database.mapping import Fact
from agent_core.store.sessions.rows import ONCE
from agent_core.store.turns.rows import ToolCallRow, TurnState

MOST = 8_192
"""Sessions, and turns, of which something is kept: those that were written last. Each takes less than a kilobyte."""


class Owned:
    """`recall` and `note` inside a batch's transaction; then `keep` if it was committed, and `forget` if not."""

    def __init__(self) -> None:
        self._sessions: dict[str, SessionFact] = {}
        self._by_key: dict[str, str] = {}
        self._turns: dict[str, TurnFact] = {}
        self._calls: dict[str, dict[str, ToolCallRow]] = {}
        """All calls of a turn; of those turns alone that began while this was kept."""
        self._highest_message: int | None = None
        self._version: int | None = None
        """SQLite's, which another connection's write changes."""
        self._noted: Facts | None = None

    def recall(self, conn: Connection, wanted: Needs, facts: Facts) -> None:
        """Give `facts` what is kept of what is `wanted`, which then is wanted no more."""
        named = {self._by_key[key] for key in wanted.session_keys if key in self._by_key}
        sessions, turns = (named | wanted.sessions) & self._sessions.keys(), wanted.turns & self._turns.keys()
        if self._version is not None and not sessions and not turns and not wanted.messages:
            return
        version = _version(conn)
        if version != self._version:
            self.forget()
            self._version = version
            return
        facts.highest_message = self._highest_message
        for name in sessions:
            kept = self._sessions[name]
            fact = SessionFact(kept.row, kept.row, kept.last_number, kept.open_turn)
            facts.sessions[name] = facts.sessions_by_key[kept.row.key] = fact
            wanted.sessions.discard(name)
            wanted.session_keys.discard(kept.row.key)
        for turn in turns:
            known = self._turns[turn]
            facts.turns[turn] = TurnFact(known.row, known.row, known.last_seq)
            wanted.turns.discard(turn)
        for key in [key for key in wanted.calls if key[0] in turns and key[0] in self._calls]:
            wanted.calls.discard(key)
            if (call := self._calls[key[0]].get(key[1])) is not None:
                facts.calls[key] = Fact(call, call)

    def note(self, facts: Facts) -> None:
        """This is written, and not committed yet."""
        self._noted = facts

    def keep(self) -> None:
        """It is committed."""
        facts, self._noted = self._noted, None
        if facts is None:
            return
        for name, session in facts.sessions.items():
            self._sessions.pop(name, None)
            if session.row.owner == facts.node and not _answered(session):
                self._sessions[name] = session
                self._by_key[session.row.key] = name
            else:
                self._by_key.pop(session.row.key, None)
        for name, turn in facts.turns.items():
            self._turns.pop(name, None)
            calls = {} if turn.new else self._calls.pop(name, None)
            if turn.row.state is TurnState.OPEN:
                self._turns[name] = turn
                if calls is not None:
                    self._calls[name] = calls
        for (name, call), fact in facts.calls.items():
            if name in self._calls:
                self._calls[name][call] = fact.row
        if facts.new_message is not None:
            self._highest_message = facts.new_message
        while len(self._sessions) > MOST:
            old = self._sessions.pop(next(iter(self._sessions)))
            self._by_key.pop(old.row.key, None)
        while len(self._turns) > MOST:
            gone = next(iter(self._turns))
            del self._turns[gone]
            self._calls.pop(gone, None)

    def forget(self) -> None:
        """Something else was written, or may have been."""
        for kept in (self._sessions, self._by_key, self._turns, self._calls):
            kept.clear()
        self._version = self._noted = self._highest_message = None


def _answered(session: SessionFact) -> bool:
    """It was a single request's, and its turn is over."""
    return session.row.key.startswith(ONCE) and session.last_number > 0 and session.open_turn is None


def _version(conn: Connection) -> int:
    found: Any = direct.ask(conn, "PRAGMA data_version", [()])
    return int(found[0][0])
