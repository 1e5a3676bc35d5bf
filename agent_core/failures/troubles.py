"""What goes wrong in one turn, and whether the remedies helped: the turn's own record. Changed by `agent_core.machine.taking` alone.

Theory. Every failed call, empty reply, loop and limit is a `Trouble` with a fingerprint that says what it is and about whom,
without a word of a person's text. A remedy that was chosen for it is judged when its result is known. Calls that break off are
also counted by tool over the steps of the turn and, from `Known`, over the conversation's earlier turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum

from agent_core.causes import BreakCause
from agent_core.failures.exits import Cut, Exit, ExitCode
from agent_core.failures.known import Known
from agent_core.failures.notices import ExitClass
from agent_core.failures.remedies import Failure, Remedy
from agent_core.records import NONE, dataclass

_BUCKETS = ((1_000, "S"), (8_000, "M"), (40_000, "L"))
WHOLE_CHARS = 8_000
"""A call that is larger than this did not come in small pieces, whatever was advised."""


def size_bucket(chars: int) -> str:
    """Arguments or text of so many characters: S under 1,000, M under 8,000, L under 40,000, else XL; ``-`` for none."""
    if chars <= 0:
        return "-"
    return next((name for limit, name in _BUCKETS if chars < limit), "XL")


def least_chars(size: str) -> int:
    """The smallest number of characters of a size."""
    return {"S": 1, "M": 1_000, "L": 8_000, "XL": 40_000}.get(size, 0)


class RemedyOutcome(StrEnum):
    """What became of a remedy."""

    NOT_KNOWN = "not_known"
    HELPED = "helped"
    NOT_HELPED = "not_helped"


@dataclass(frozen=True, slots=True)
class Trouble:
    """One failure of a turn."""

    code: ExitCode
    """The exit that it leads to if nothing helps."""
    cause: BreakCause | None
    endpoint: str
    model: str
    tool: str = ""
    chars: int = 0
    """How much of a call's arguments had arrived."""
    remedy: Remedy | None = None
    """The remedy that was chosen; None: there was none (left)."""
    outcome: RemedyOutcome = RemedyOutcome.NOT_KNOWN
    ended: bool = False
    """It ended the turn."""
    foreseen: bool = False
    """It did not happen: the remedy was tried beforehand, because it had happened earlier."""

    @property
    def fingerprint(self) -> str:
        """What it is and about whom: exit, endpoint, model, tool and size."""
        return "|".join((self.code.value, self.endpoint, self.model, self.tool or "-", size_bucket(self.chars)))


def is_trouble(ending: Exit) -> bool:
    """Whether an end is a failure. A limit that a client set itself is none."""
    fine = ending.kind in (ExitClass.CLEAN, ExitClass.HANDED, ExitClass.STOPPED)
    return not fine and not (isinstance(ending, Cut) and ending.limit_was_asked)


class TurnTroubles:
    """The record of one turn."""

    __slots__ = ("_in_step", "_judging", "_rounds", "advised", "found", "known", "solved", "warned")

    def __init__(self, known: Known | None = None) -> None:
        self.known = known or Known()
        self.found: tuple[Trouble, ...] = ()
        self.solved: tuple[str, ...] = ()
        """Tools whose known stall is over: a call of that kind has come whole."""
        self.advised = False
        """The model was advised before the first call, and still is."""
        self.warned = False
        """It was, whatever became of it."""
        self._judging: tuple[Failure, Remedy] | None = None
        self._rounds: dict[tuple[str, str], int] = {}
        for stall in self.known.stalls:
            self._add((stall.tool, stall.size), stall.ended)
        self._in_step: frozenset[tuple[str, str]] = NONE

    def note(self, trouble: Trouble) -> None:
        self.found += (trouble,)

    def chose(self, failure: Failure, remedy: Remedy) -> None:
        self._see_latest(replace(self.found[-1], remedy=remedy))
        self._judging = (failure, remedy)

    def _see_latest(self, trouble: Trouble) -> None:
        """More is known of the latest one."""
        self.found = (*self.found[:-1], trouble)

    @property
    def judging(self) -> tuple[Failure, Remedy] | None:
        """The remedy that is at work, and for which failure."""
        return self._judging

    @property
    def nudged(self) -> bool:
        """The model was reminded of a promise, and this is what came of it."""
        return self._judging is not None and self._judging[0] is Failure.PROMISED

    def judge(self, *, helped: bool) -> None:
        """The result of the remedy at work is known."""
        self._judging = None
        if self.found:
            outcome = RemedyOutcome.HELPED if helped else RemedyOutcome.NOT_HELPED
            self._see_latest(replace(self.found[-1], outcome=outcome))

    def ended_by(self, trouble: Trouble) -> None:
        """The turn ends by this trouble; one that is recorded already is not recorded twice."""
        last = self.found[-1] if self.found else None
        if last is not None and last.remedy is None and not last.ended:
            self._see_latest(replace(last, ended=True))
        else:
            self.found += (replace(trouble, ended=True),)

    # ------------------------------------------------------------------ calls that break off

    def step_over(self) -> None:
        """A reply came to a good end."""
        self._in_step = NONE

    def rounds_of(self, names: Iterable[str], chars: int) -> int:
        """In how many steps and earlier turns the call of one of these tools broke off at about this size, at most; the latest time is counted."""
        size = size_bucket(chars)
        rounds = self._rounds
        return max((rounds.get((name, size), 0) + rounds.get((name, ""), 0) for name in names), default=0)

    def _add(self, kind: tuple[str, str], times: int) -> None:
        self._rounds[kind] = self._rounds.get(kind, 0) + times

    def tried(self, tool: str, remedies: Iterable[tuple[Failure, Remedy]]) -> tuple[str, ...]:
        """The remedies of this turn and of earlier ones for the tool's calls, in words."""
        tried = [remedy for stall in self.known.stalls if stall.tool == tool for remedy in stall.tried]
        tried += [Remedy.ADVISE_SMALLER] if self.warned else []
        tried += [remedy for _, remedy in remedies]
        return tuple(dict.fromkeys(remedy.recipe.tried or remedy.value.replace("_", " ") for remedy in tried))

    def broke_off(self, names: Sequence[str], chars: int) -> None:
        """Calls of these tools broke off when so much had arrived. Several tries in one step count once."""
        for name in names:
            kind = (name, size_bucket(chars))
            if kind not in self._in_step:
                self._in_step |= {kind}
                self._add(kind, 1)

    def came_whole(self, calls: Iterable[tuple[str, int]]) -> tuple[str, ...]:
        """Calls (tool, characters of arguments) arrived. The tools of those that are of the kind that had broken off, which clears what is
        known of it.

        Pieces do not: that they arrive is what the advice is for, and says nothing about large calls.
        """
        solved: list[str] = []
        for tool, chars in calls:
            known = max((stall.chars for stall in self.known.stalls if stall.tool == tool), default=None)
            if known is None or tool in self.solved or tool in solved:
                continue
            least = max(WHOLE_CHARS, known) if self.advised else known
            if chars >= least or (not self.advised and size_bucket(chars) == size_bucket(known)):
                solved.append(tool)
        return tuple(solved)
