"""``/tasks``: the background tasks of a conversation, how far they are and what they have used, and how one is stopped."""

from __future__ import annotations

from collections.abc import Sequence

from agent_core.ports import Clock
from agent_core.store.schedules.rows import ScheduleRow
from agent_core.store.store import Store
from agent_core.text.shown import plain
from agent_core.text.tongue import number, sentence, speak
from gateway.commands.carrying import CommandReply, Request
from gateway.later.tasks import TaskEnd, TaskPlan, TaskProgress, Tasks
from gateway.people.linking import age_words
from gateway.schedule.schedules import TASK
from gateway.schedule.times import span

HOW = sentence(
    "{/tasks stop NUMBER} ends one, {/tasks stop all} ends all of them. What they use counts as yours: {/usage} shows it."
)


class TaskCommands:
    """Its handler."""

    def __init__(self, tasks: Tasks, store: Store, clock: Clock) -> None:
        self._tasks = tasks
        self._store = store
        self._clock = clock

    async def tasks(self, request: Request) -> CommandReply:
        rows = await self._store.schedules.of(request.key, TASK)
        verb, _, which = request.words.strip().lower().partition(" ")
        match verb:
            case "" | "list":
                now = self._clock.now_ms()
                over = await self._tasks.over(request.key)
                return CommandReply(tasks_words([self._tasks.progress(row) for row in rows], now, over))
            case "stop" | "cancel":
                return CommandReply(await self._stop(rows, which.strip()))
            case _:
                return CommandReply(speak(HOW))

    async def _stop(self, rows: Sequence[ScheduleRow], which: str) -> str:
        gone = [row for row in rows if which in ("all", str(row.number))]
        if not gone:
            return speak("No such task runs here. {/tasks} shows those that do.")
        for row in gone:
            await self._tasks.cancel(row)
        numbers = ", ".join(str(row.number) for row in gone)
        return speak("Being stopped: {numbers}. The end of each is told here.", numbers=numbers)


def tasks_words(found: Sequence[TaskProgress], now: int, over: Sequence[tuple[int, TaskPlan, int]] = ()) -> str:
    """The tasks that run, and those that have ended lately, for people. Pure."""
    lines = [f"{one.number}. {plain(one.title)}: {_how_far(one, now)}" for one in found]
    lines += [speak(HOW)] if found else [speak("No background task runs here.")]
    lines += [speak("Over lately:")] if over else []
    for one, plan, at in over:
        lines.append(f"{one}. {plain(plan.title)}: {_how_it_ended(plan.ended)} ({age_words(now - at)})")
    return "\n".join(lines)


def _how_it_ended(end: TaskEnd | None) -> str:
    if end is None:
        return "?"
    time, tokens = span(end.seconds), number(end.tokens)
    if end.done:
        return speak("done, after {time}, with {tokens} tokens", time=time, tokens=tokens)
    return speak("ended without its result, after {time}, with {tokens} tokens", time=time, tokens=tokens)


def _how_far(one: TaskProgress, now: int) -> str:
    if not one.begun:
        return speak("not begun yet")
    said = speak(
        "{time} so far, {steps} of {most} steps, {tokens} tokens",
        time=span(max(0, now - one.started_at) // 1000), steps=one.steps, most=one.most_steps, tokens=number(one.tokens),
    )  # fmt: skip
    if one.asks:
        doing = speak("waits for an approval")
    else:
        doing = speak("running {what}", what=plain(one.doing)) if one.doing else ""
    return f"{said}; {doing}" if doing else said
