"""What is written of budgets: what is held for a model call, what it used, and what a message counts for by the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import orjson

from agent_core.limits.budgets import Amount, BudgetRefused, Granted, Level, Pot, Reached, Settled, refusal, warning
from agent_core.records import dataclass
from agent_core.store.batch.facts import Facts, Needs, Op
from agent_core.store.budgets.rows import BroughtFile, Charge, PotRow, ReservationRow, ReservationState
from agent_core.store.database.mapping import Fact
from agent_core.store.errors import Conflict, Fenced, NoRoomToday

COUNTED_ONCE_MS = 7 * 24 * 3600 * 1000
"""So long a file that is brought again does not count. Not for ever: what was removed meanwhile takes room again."""


@dataclass(frozen=True, slots=True)
class Reserve(Op[Granted | BudgetRefused]):
    """Hold in all `pots` what a model call may use, or in none."""

    session: str
    epoch: int
    call: str
    """The call's id: a second reservation under the same is the same."""
    amount: Amount
    pots: tuple[Pot, ...]
    at: int

    def need(self, wanted: Needs) -> None:
        _need(wanted, self.session, self.call, self.pots)

    def decide(self, facts: Facts, previous: object) -> Granted | BudgetRefused:
        facts.owned(self.session, self.epoch)
        known = facts.reservations.get(self.call)
        if known is not None:
            if (known.row.session, known.row.held, known.row.keys) != (self.session, self.amount, _keys(self.pots)):
                raise Fenced(f"Something else is held for call {self.call} already. Reserve under a new id.")
            return Granted()
        if isinstance(previous, BudgetRefused):
            return previous
        refused = refusal([(pot, _level(facts, pot)) for pot in self.pots])
        if refused is not None:
            return refused
        for pot in self.pots:
            _fill(facts, pot, _level(facts, pot).reserved(self.amount), self.at)
        pots = orjson.dumps(_keys(self.pots)).decode()
        held = (self.amount.tokens, self.amount.nanos)
        row = ReservationRow(
            self.call, self.session, facts.node, ReservationState.OPEN, pots, *held, 0, 0, estimated=False, at=self.at
        )
        facts.reservations[self.call] = Fact(row)
        return Granted()


@dataclass(frozen=True, slots=True)
class Settle(Op[Settled]):
    """A model call is over: let go what was held for it, and note what it used."""

    session: str
    epoch: int
    call: str
    used: Amount
    estimated: bool
    pots: tuple[Pot, ...]
    at: int

    def need(self, wanted: Needs) -> None:
        _need(wanted, self.session, self.call, self.pots)

    def decide(self, facts: Facts, previous: object) -> Settled:
        facts.owned(self.session, self.epoch)
        known = facts.reservations.get(self.call)
        if known is None or known.row.keys != _keys(self.pots):
            raise Conflict(f"Nothing is held for call {self.call} in these budgets.")
        if known.row.state is ReservationState.SETTLED:
            if (known.row.used, known.row.estimated) != (self.used, self.estimated):
                raise Fenced(f"Call {self.call} is settled already, with another amount.")
            return previous if isinstance(previous, Settled) else Settled()
        warnings: list[Reached] = []
        for pot in self.pots:
            level = _level(facts, pot).settled(known.row.held, self.used, estimated=self.estimated)
            reached = warning(pot, level)
            if reached is not None:
                warnings.append(reached)
                level = replace(level, warned=True)
            _fill(facts, pot, level, self.at)
        settle(known, self.used, estimated=self.estimated, at=self.at)
        return Settled(tuple(warnings))


def settle(reservation: Fact[ReservationRow], used: Amount, *, estimated: bool, at: int) -> None:
    """The call is over, and used so much."""
    figures = {"used_tokens": used.tokens, "used_nanos": used.nanos}
    reservation.change(state=ReservationState.SETTLED, **figures, estimated=estimated, at=at)


def charge(facts: Facts, charges: Sequence[Charge], at: int) -> None:
    """Count what is new in a message for its day. Raises `NoRoomToday`, and has counted nothing then.

    What adds nothing always has room. A file is new if it did not count for this person before, or not for long.
    """
    owed = [(one, one.amount + sum(file.size for file in _new_files(facts, one, at))) for one in charges]
    for one, amount in owed:
        used = one.already + _level(facts, one).spent.tokens
        if one.limit and amount and used + amount > one.limit:
            raise NoRoomToday(one.scope, used, one.limit, amount)
    for one, amount in owed:
        if amount and one.counts:
            level = _level(facts, one)
            _fill(facts, one, replace(level, spent=level.spent + Amount(amount), calls=level.calls + 1), at)
            for file in _new_files(facts, one, at):
                known = facts.pots.get(file.key)
                if known is None:
                    facts.pots[file.key] = Fact(PotRow(*file.key, 0).filled(Level(Amount(file.size)), at))
                else:
                    known.change(at=at)


def _need(wanted: Needs, session: str, call: str, pots: Sequence[Pot]) -> None:
    wanted.sessions.add(session)
    wanted.reservations.add(call)
    wanted.pots.update(_keys(pots))


def _new_files(facts: Facts, one: Charge, at: int) -> list[BroughtFile]:
    known = {file.key: facts.pots.get(file.key) for file in one.files}
    return [f for f in one.files if (fact := known[f.key]) is None or at - fact.row.at > COUNTED_ONCE_MS]


def _keys(pots: Sequence[Pot]) -> tuple[tuple[str, int], ...]:
    return tuple(pot.key for pot in pots)


def _level(facts: Facts, pot: Pot | Charge) -> Level:
    known = facts.pots.get(pot.key)
    return known.row.level if known is not None else Level()


def _fill(facts: Facts, pot: Pot | Charge, level: Level, at: int) -> None:
    known = facts.pots.setdefault(pot.key, Fact(PotRow(pot.scope, pot.window, pot.until)))
    known.row = known.row.filled(level, at)
