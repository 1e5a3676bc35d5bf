"""Reads the corpora of call sequences (`calls_*.txt`).

A record is `=== loop CODE | what it is` or `=== honest | what it is`. Then come groups: `5 x` repeats what follows, up to the next such line,
five times. A call is `tool {arguments}`, the result stands below it, two spaces in. Before a tool's name, `!` says that the
call fails, `+` that it is no pure reading.

Between « and » stands what differs from one round to the next; `_EXPAND` has them all. What is drawn is drawn from the record's name,
so that a sequence is the same in every run. `\\x1b` is the escape character.
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent_core.failures.exits import ExitCode

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: str
    result: str
    ok: bool
    read_only: bool


@dataclass(frozen=True, slots=True)
class Sequence:
    """A recorded-style sequence of calls, and what is right to say of it."""

    name: str
    code: ExitCode | None
    """The rule that has to stop it; None for honest work."""
    calls: tuple[Call, ...]


def sequences(half: str) -> list[Sequence]:
    """The records of one half, `development` or `held_out`."""
    text = (HERE / f"calls_{half}.txt").read_text("utf-8")
    return [_sequence(record) for record in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]]


def _sequence(record: str) -> Sequence:
    header, *lines = record.rstrip("\n").split("\n")
    label, _, name = header.partition(" | ")
    rng = random.Random(name)
    calls: list[Call] = []
    for times, templates in _groups(lines):
        for turn in range(times):
            for head, result in templates:
                moment = _Moment(rng, turn, len(calls))
                tool, _, arguments = moment.expand(head.lstrip("!+")).partition(" ")
                marks = head[: len(head) - len(head.lstrip("!+"))]
                calls.append(Call(tool, arguments, moment.expand(result), "!" not in marks, "+" not in marks))
    code = None if label == "honest" else ExitCode(label.removeprefix("loop "))
    return Sequence(name, code, tuple(calls))


def _groups(lines: list[str]) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    times, group = 1, list[tuple[str, str]]()
    for line in lines:
        repeat = re.fullmatch(r"(\d+) x", line)
        if repeat:
            yield times, group
            times, group = int(repeat[1]), []
        elif line.startswith("  "):
            head, result = group[-1]
            group[-1] = head, f"{result}\n{line[2:]}" if result else line[2:]
        elif line:
            group.append((line, ""))
    yield times, group


class _Moment:
    """One call of one round: what the places between « and » become."""

    def __init__(self, rng: random.Random, turn: int, position: int) -> None:
        self.rng, self.turn = rng, turn
        self.time = datetime(2026, 3, 9, 8, 15, tzinfo=UTC) + timedelta(seconds=position * 37 + rng.random() * 20)

    def expand(self, text: str) -> str:
        text = text.replace("\\x1b", "\x1b")
        while "«" in text:  # the innermost first
            text = re.sub(r"«([^«»]*)»", lambda found: self._one(found[1]), text)
        return text

    def _one(self, place: str) -> str:
        name, _, rest = place.partition(" ")
        if name in _EXPAND:
            return _EXPAND[name](self, rest)
        counted = re.fullmatch(r"n(?:\*(\d+))?(?:\+(\d+))?", place)
        assert counted is not None, f"nobody knows what «{place}» is"
        return str((self.turn + 1) * int(counted[1] or 1) + int(counted[2] or 0))

    def chars(self, alphabet: str, length: int) -> str:
        return "".join(self.rng.choices(alphabet, k=length))

    def hex(self, length: int) -> str:
        """Hexadecimal digits, at least one of them a letter and one a figure."""
        return self.rng.choice("abcdef") + self.rng.choice("123456789") + self.chars("0123456789abcdef", length - 2)

    def shuffled(self, parts: str) -> list[str]:
        found = parts.split("|")
        self.rng.shuffle(found)
        return found


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SPACES = (" ", "  ", "\t", "\n", "\r\n", "   ")
_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jasper", "kelp", "linden")

_EXPAND: dict[str, Callable[[_Moment, str], str]] = {
    # counted by the round
    "left": lambda m, rest: str(int(rest) - m.turn - 1),
    "pad": lambda m, _: f"{m.turn % 24:02d}",
    "step": lambda m, rest: rest.split("|")[min(m.turn, rest.count("|"))],
    "cycle": lambda m, rest: rest.split("|")[m.turn % (rest.count("|") + 1)],
    # drawn
    "num": lambda m, rest: str(m.rng.randint(*map(int, rest.split()))),
    "word": lambda m, _: m.rng.choice(_WORDS),
    "space": lambda m, _: m.rng.choice(_SPACES),
    "lines": lambda m, rest: "\n".join(m.shuffled(rest)),
    "words": lambda m, rest: " ".join(m.shuffled(rest)),
    "keys": lambda m, rest: ", ".join(m.shuffled(rest)),
    # times
    "time": lambda m, _: m.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    "time2": lambda m, _: m.time.strftime("%Y-%m-%d %H:%M:%S,%f")[:-3],
    "clock": lambda m, _: m.time.strftime("%H:%M:%S"),
    "clock12": lambda m, _: m.time.strftime("%-I:%M %p"),
    "syslog": lambda m, _: m.time.strftime("%b %e %H:%M:%S"),
    "syslogshort": lambda m, _: m.time.strftime("%b %e %H:%M"),
    "rfc": lambda m, _: m.time.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "timefile": lambda m, _: m.time.strftime("%Y-%m-%dT%H_%M_%S_%f")[:-3] + "Z",
    "compact": lambda m, _: m.time.strftime("%Y%m%dT%H%M%SZ"),
    "dotted": lambda m, _: m.time.strftime("%d.%m.%Y %H:%M"),
    "slashed": lambda m, _: m.time.strftime("%d/%b/%Y:%H:%M:%S +0000"),
    "epoch": lambda m, _: str(int(m.time.timestamp())),
    "epochms": lambda m, _: str(int(m.time.timestamp() * 1000)),
    # ids, addresses, paths
    "uuid": lambda m, _: str(uuid.UUID(int=m.rng.getrandbits(128), version=4)),
    "addr": lambda m, _: f"0x7f{m.hex(10)}",
    "sha": lambda m, _: m.hex(40),
    "sha7": lambda m, _: m.hex(7),
    "hex8": lambda m, _: m.hex(8),
    "hex10": lambda m, _: m.hex(10),
    "hex12": lambda m, _: m.hex(12),
    "hex16": lambda m, _: m.hex(16),
    "hex32": lambda m, _: m.hex(32).upper(),
    "pod": lambda m, _: m.chars("bcdfghjklmnpqrstvwxz2456789", 5),
    "tenchars": lambda m, _: m.chars(_LETTERS + _LETTERS.upper() + "0123456789", 10),
    "ulid": lambda m, _: "01" + m.chars("0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24),
    "token": lambda m, _: "q7R" + m.chars(_LETTERS + _LETTERS.upper() + "0123456789", 21),
    "pid": lambda m, _: str(m.rng.randint(300, 65000)),
    "tmp": lambda m, _: (
        f"/tmp/{m.rng.choice(('tmp', 'build-', 'x.', 'go-build', ''))}{m.chars(_LETTERS + '0123456789_', 8)}"
    ),
}
