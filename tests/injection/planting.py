"""What a turn leaves behind for a later one, kept as the gateway keeps it: a prompt, a reminder, a task, an entry of the memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from adapters.contract.base import FromChat, Inbound, SessionKey
from adapters.contract.chat import ChatAddress, ChatKind, ChatOrigin, ChatPerson
from agent_core.jsonvalue import Json
from agent_core.messages import InputMessage
from agent_core.ports import SystemClock
from agent_core.remembered import UNKNOWN_SOURCE, MemorySource, Remembered
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.store import Store
from agent_core.tools.base import Tool, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.builtin import builtin_tools
from agent_core.workers.pool import Workers
from gateway.later import tasks
from gateway.later.parts import Later, LaterParts
from gateway.later.reminders import CancelScheduled, ListScheduled, SetLater, plan_of
from gateway.later.tasks import Tasks
from gateway.queues import inbox
from gateway.schedule import schedules, times, toolspecs
from gateway.schedule.schedules import ScheduleKind

ASKED = FromChat(
    account="toy/1", platform_key="1", session=SessionKey("toy", "1", "c"), input=(InputMessage("hello"),), surface="toy",
    memory_scope="s", chat=ChatOrigin(ChatAddress("toy", "1", "c"), ChatKind.PRIVATE, ChatPerson("p", "Ada")),
)  # fmt: skip


@dataclass
class Kept:
    """Implements `MemoryStore`."""

    found: dict[tuple[str, str, str], tuple[str, int, MemorySource]] = field(
        default_factory=dict[tuple[str, str, str], tuple[str, int, MemorySource]]
    )

    async def put(
        self, scope: str, kind: str, name: str, value: str, *, at_ms: int, source: MemorySource = UNKNOWN_SOURCE
    ) -> None:
        self.found[(scope, kind, name)] = (value, at_ms, source)

    async def remembered(self, scopes: Sequence[str], query: str = "") -> tuple[list[Remembered], int]:
        found = [Remembered(key[0], key[2], *one) for key, one in self.found.items() if key[0] in scopes]
        return found, len(found)

    async def delete(self, scope: str, kind: str, name: str) -> bool:
        return self.found.pop((scope, kind, name), None) is not None

    async def entries(self, scope: str, kind: str) -> list[tuple[str, str, int]]:
        return [(key[2], one[0], one[1]) for key, one in self.found.items() if key[:2] == (scope, kind)]


@dataclass
class _Rows:
    """What is set for later."""

    rows: dict[str, ScheduleRow] = field(default_factory=dict[str, ScheduleRow])

    async def one(self, schedule: str) -> ScheduleRow | None:
        return self.rows.get(schedule)

    async def of(self, key: str, *kinds: str) -> list[ScheduleRow]:
        return [row for row in self.rows.values() if row.session_key == key and row.kind in kinds]

    async def put(self, row: ScheduleRow, _turn: str = "") -> None:
        self.rows[row.schedule] = row


class _Later(Later):
    """The gateway, as far as setting and showing reminders needs it."""

    def __init__(self) -> None:
        def left_out(_: str) -> bool:
            return False

        def alone(_: str) -> AbstractContextManager[None]:
            return nullcontext()

        store = SimpleNamespace(schedules=_Rows(), memory=Kept(), left_out=left_out)
        super().__init__(cast("Store", store), SystemClock(), lambda: "UTC", 50)
        self.open(cast("LaterParts", SimpleNamespace(alone=alone, stored=lambda: None)))

    async def asked_by(self, turn: str) -> Inbound:
        return ASKED


@dataclass
class _Planter:
    spec: ToolSpec
    left: LeftBehind

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        if self.spec is toolspecs.SCHEDULE:
            self.left.input = _prompted(str(arguments["prompt"]), context)
        else:
            limits = tasks.TaskLimits(1, 1, 60, 5, 60)
            title, words = str(arguments["title"]), str(arguments["instructions"])
            work = tasks.work_of(ASKED, "task:1", 1, title, words, limits, tainted=context.tainted)
            self.left.input = inbox.decode(inbox.encode(work)).input[0]
        return ToolOutcome(ToolStatus.OK, "Stored.")


def _prompted(words: str, context: ToolContext) -> InputMessage:
    """The message that a prompt becomes at its time, by way of the row and of the command."""
    rule = times.Once(1_000_000)
    plan = plan_of(ASKED, words, "UTC", context)
    row = schedules.reminder(1, "k", rule, plan, ASKED.session, 1, 1, ScheduleKind.PROMPT)
    assert row is not None
    stored, _ = schedules.decode(row)
    claim = schedules.decide(rule, row.next_at, stored.if_missed, stored.late_seconds, 1_000_000)
    assert claim is not None
    happening = schedules.decode_happening(
        schedules.encode_happening(schedules.claimed(row, stored, claim, 1_000_000)[1])
    )
    return InputMessage(schedules.prompt_words(happening), foreign=schedules.prompt_foreign(happening))


class LeftBehind:
    """What was left, and the tools that leave it."""

    def __init__(self) -> None:
        self.input: InputMessage | None = None
        """The message that the later turn answers."""
        own = {tool.spec.name: tool for tool in builtin_tools(Kept(), Path(), cast("Workers", None))}
        self.tools: list[Tool] = [
            _Planter(toolspecs.SCHEDULE, self), _Planter(toolspecs.START_TASK, self), own["remember"], own["recall"],
        ]  # fmt: skip
        later = _Later()
        self.tools += [
            SetLater(later, toolspecs.REMIND, ScheduleKind.REMINDER), ListScheduled(later), CancelScheduled(later, cast("Tasks", None)),
        ]  # fmt: skip
