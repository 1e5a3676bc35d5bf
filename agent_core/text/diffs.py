"""What becomes of a text, line by line: a unified diff without its head, for whoever decides about a change. Pure.

Everything in it is bounded, because a model chooses what is compared: how much is read, how many lines are matched with each other, and how much is
kept. Where more than that differs, all of the old stands before all of the new, which is as true and longer. A line is shown in characters that are
seen, tabs aside.

Laws (tests/agent_core/test_diffs.py): put upon what was there, a diff that is whole gives what will be there; equal texts have none; no line holds
what is not seen; it keeps within its bounds whatever is compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent_core.records import dataclass
from agent_core.text.shown import middle, plain

CONTEXT = 3
"""Lines around what changes."""
COMPARED_BYTES = 200_000
MATCHED_LINES = 150
"""Of either text, between what both begin and end with: matching takes a time that grows faster than they do."""
KEPT_LINES, KEPT_CHARS, LINE_CHARS = 400, 20_000, 240
OPEN_END = "\\ No newline at end of file"


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a call makes of a file."""

    diff: str
    """Its lines."""
    added: int
    removed: int
    more: int = 0
    """So many lines of the diff are left out at its end."""

    def shown(self, most: int) -> tuple[str, int]:
        """As much of it as fits into so many characters, by whole lines; and how many lines that leaves out."""
        lines = self.diff.split("\n")
        kept, room = 0, most
        while kept < len(lines) and len(lines[kept]) + 1 <= room:
            room -= len(lines[kept]) + 1
            kept += 1
        return "\n".join(lines[:kept]), len(lines) - kept + self.more


def change_of(before: bytes | None, after: bytes | None) -> FileChange | None:
    """What becomes of a file with this content; None stands for no file. None where nothing changes, or where it cannot be shown as text."""
    old, new = before or b"", after or b""
    if old == new or max(len(old), len(new)) > COMPARED_BYTES or b"\0" in old or b"\0" in new:
        return None
    said = _lines(old), _lines(new)
    groups = list(_groups(*said))
    rows = [line for group in groups for line in _rows(group, *said)]
    kept, room = 0, KEPT_CHARS
    while kept < min(len(rows), KEPT_LINES) and (room := room - len(rows[kept]) - 1) >= 0:
        kept += 1
    changed = [op for group in groups for op in group if op[0] != "equal"]
    added, removed = sum(op[4] - op[3] for op in changed), sum(op[2] - op[1] for op in changed)
    return FileChange("\n".join(rows[:kept]), added, removed, len(rows) - kept)


_Op = tuple[str, int, int, int, int]
"""What is done, from and to which line of the old text, from and to which of the new."""


def _lines(data: bytes) -> list[str]:
    """With the line feed of each, so that a missing last one is a difference."""
    parts = data.decode("utf-8", "replace").split("\n")
    last = parts.pop()
    return [f"{part}\n" for part in parts] + ([last] if last else [])


def _groups(old: Sequence[str], new: Sequence[str]) -> Iterator[Sequence[_Op]]:
    """What changes, with the lines around it."""
    short = min(len(old), len(new))
    head = next((n for n in range(short) if old[n] != new[n]), short)
    tail = next((n for n in range(short - head) if old[-1 - n] != new[-1 - n]), short - head)
    start = max(0, head - CONTEXT)
    ends = len(old) - max(0, tail - CONTEXT), len(new) - max(0, tail - CONTEXT)
    if max(len(old), len(new)) - head - tail <= MATCHED_LINES:
        from difflib import SequenceMatcher  # a gateway that changes no files needs it not

        matcher = SequenceMatcher(None, old[start : ends[0]], new[start : ends[1]], autojunk=False)
        for group in matcher.get_grouped_opcodes(CONTEXT):
            yield [(kind, i + start, j + start, k + start, m + start) for kind, i, j, k, m in group]
        return
    inside = len(old) - tail, len(new) - tail
    yield [
        ("equal", start, head, start, head),
        ("replace", head, inside[0], head, inside[1]),
        ("equal", inside[0], ends[0], inside[1], ends[1]),
    ]


def _rows(group: Sequence[_Op], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    yield f"@@ -{_span(first[1], last[2])} +{_span(first[3], last[4])} @@"
    for kind, i, j, k, m in group:
        if kind == "equal":
            yield from _marked(" ", old[i:j])
            continue
        yield from _marked("-", old[i:j])
        yield from _marked("+", new[k:m])


def _span(start: int, end: int) -> str:
    return f"{start + (start < end)},{end - start}"


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        said = "\t".join(map(plain, line.removesuffix("\n").split("\t")))
        yield f"{mark}{middle(said, LINE_CHARS)}"
        if not line.endswith("\n"):
            yield OPEN_END
