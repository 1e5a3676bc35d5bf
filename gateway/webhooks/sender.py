"""Sends what stands in the outbox: one task a receiver, and one a message that is under way. What is sent when is decided in `deciding`.

Law: a row is settled only after its receiver has answered, and until then it is sent again, also by the next process: at least once, always
under the same id. Of several gateways the one that has the house sends, whoever stored it; the others keep up with which receivers are off. What cannot be stored of an attempt is held until it can be, so that a database that is away does not make anybody
hear the same over and over.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from random import Random

import structlog

from agent_core.bell import Bell
from agent_core.beside import beside
from agent_core.jsonvalue import Json
from agent_core.ports import Clock
from agent_core.records import dataclass
from agent_core.retry import STORING
from agent_core.store.slices.rows import HOUSE
from agent_core.store.store import StorageUnavailable, Store
from agent_core.store.webhooks.rows import HookCount, HookRow, HookState, ReceiverRow
from gateway.limits.alerts import Message
from gateway.sharing.inhand import InHand
from gateway.sharing.portion import Portion
from gateway.webhooks import signing
from gateway.webhooks.deciding import DAY_MS, Attempt, again, given_up, next_up, settled, too_old
from gateway.webhooks.events import HookEvent, HookFact, Receiver, message, moment
from gateway.webhooks.posting import HookPost, Poster
from gateway.webhooks.telling import HookTelling

log = structlog.get_logger("webhook")

LOOK_SECONDS = 10.0
"""It is looked again at the latest after so long: somebody else may have stored something."""
PAGE = 50
"""So many rows are read at once."""
HOOKS, RECEIVERS = "hooks", "receivers"
"""Words between gateways: there may be something to send; a person has changed how a receiver is treated."""
NOT_CONFIGURED = "no such receiver is configured any more"
AGAIN_MOST = 1_000
"""So many messages are sent again by one command."""


@dataclass(slots=True)
class HookFigures:
    """What is counted of a receiver since the start."""

    sent: int = 0
    failed: int = 0
    """Attempts."""
    given_up: int = 0


class _Lane:
    """One receiver."""

    def __init__(self, of: HookSender, receiver: Receiver, row: ReceiverRow) -> None:
        self._of = of
        self.receiver = receiver
        self.row = row
        self.bell = Bell()
        self.figures = HookFigures()
        self.lost = 0
        """As many as were given up since the start, and not sent again."""
        self._in_hand = InHand[str, HookRow]()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    seconds = await self._pass(group)
                except StorageUnavailable as error:
                    log.warning("webhook.storage_unavailable", receiver=self.receiver.name, error=str(error))
                    seconds = LOOK_SECONDS
                except Exception:
                    log.exception("webhook.failed", receiver=self.receiver.name)
                    seconds = LOOK_SECONDS
                await self.bell.wait(seconds)

    async def _pass(self, group: asyncio.TaskGroup) -> float:
        """Begin what may be sent now; the seconds until it has to be looked again."""
        of, name, now = self._of, self.receiver.name, self._of.clock.now_ms()
        if self.row.off or not of.store.ownership.lease_ok():
            return LOOK_SECONDS
        with self._in_hand.reading() as ours:
            found = await of.store.hooks.due(name, now, PAGE + len(ours))
        waiting = [one for one in found if one.row.message not in ours]
        if old := too_old(waiting, self.row, now):
            await of.store.hooks.settle(old)
            self._gave_up(old, old[0].cause)
            return 0.01
        todo = next_up(waiting, [*self._in_hand], self.row, now, self.receiver.at_once)
        for one in todo.send:
            self._in_hand.take(one.row.message, one.row)
            group.create_task(self._send(one.row), name=f"webhook {name}")
        look_at = todo.look_at if todo.look_at is not None else await of.store.hooks.next_at(name)
        if look_at is None or look_at <= now:  # what is under way rings when it is over
            return LOOK_SECONDS
        return min(LOOK_SECONDS, max(0.01, (look_at - now) / 1000))

    async def _send(self, row: HookRow) -> None:
        of, receiver = self._of, self.receiver
        try:
            heads = signing.headers(receiver.keys, row.message, of.clock.now_ms(), row.body)
            attempt = await of.poster.post(HookPost(receiver.url, heads, row.body, receiver.seconds, receiver.private))
            before, now = self.row, of.clock.now_ms()
            done, self.row = settled(row, before, attempt, now, of.chance.random())
            self._say(done, attempt, before)
            await self._store(done, before)
        except Exception:  # a mistake of ours with one message must not end the lane
            log.exception("webhook.failed", receiver=receiver.name)
            await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._in_hand.leave(row.message)
            self.bell.ring()

    async def _store(self, done: HookRow, before: ReceiverRow) -> None:
        """With patience: until it is stored, it is under way."""
        off = self.row.off if not before.off else ""
        for attempt in itertools.count(1):
            try:
                rest = await self._rest(off) if off else []
                changed = [self.row] if self.row != replace(before, at=self.row.at) else []
                await self._of.store.hooks.settle([done, *rest], changed)
            except StorageUnavailable as error:
                log.warning("webhook.storage_unavailable", receiver=self.receiver.name, error=str(error))
                await asyncio.sleep(STORING.seconds(attempt))
            else:
                self._gave_up(rest, off)
                return

    async def _rest(self, why: str) -> list[HookRow]:
        """Everything that waits for a receiver that is off now is given up, and nothing more is told it."""
        self._of.telling.off.add(self.receiver.name)
        found: list[HookRow] = []
        after, now = 0, self._of.clock.now_ms()
        with self._in_hand.reading() as ours:
            while page := await self._of.store.hooks.waiting(self.receiver.name, PAGE, after):
                after = page[-1].number
                found += [given_up(one.row, why, now) for one in page if one.row.message not in ours]
        return found

    def _say(self, row: HookRow, attempt: Attempt, before: ReceiverRow) -> None:
        name = self.receiver.name
        if row.state is HookState.SENT:
            self.figures.sent += 1
            log.debug("webhook.sent", receiver=name, hook=row.message, hook_event=row.event, attempt=row.attempt)
            if before.failures:
                log.info("webhook.works_again", receiver=name, times=before.failures)
            return
        self.figures.failed += 1
        log.warning(
            "webhook.not_taken", receiver=name, hook=row.message, hook_event=row.event, attempt=row.attempt,
            status=attempt.status, why=attempt.why,
        )  # fmt: skip
        if row.state is HookState.GIVEN_UP:
            self._gave_up([row], row.cause)
        if self.row.off and not before.off:
            log.error("webhook.off", receiver=name, why=self.row.off)

    def _gave_up(self, rows: Sequence[HookRow], why: str) -> None:
        if rows:
            self.figures.given_up += len(rows)
            self.lost += len(rows)
            log.error(
                "webhook.given_up", receiver=self.receiver.name, messages=len(rows), hook=rows[0].message, why=why
            )

    def turn_on(self, row: ReceiverRow) -> None:
        """From now on it is told again."""
        self.row = row
        self._of.telling.off.discard(self.receiver.name)
        self.bell.ring()


class HookSender:
    """Use it as `running`. Make it inside the event loop."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        telling: HookTelling,
        store: Store,
        poster: Poster,
        clock: Clock,
        seed: int,
        portion: Portion,
    ) -> None:
        self.telling = telling
        self.store = store
        self.poster = poster
        self.clock = clock
        self.chance = Random(seed)  # noqa: S311 - jitter
        self._lanes = {one.name: _Lane(self, one, ReceiverRow(one.name, one.url)) for one in receivers}
        self.counts: Mapping[tuple[str, HookState], HookCount] = {}
        """As of the last look."""
        self._portion = portion
        self._changed = False
        """Another gateway has changed how a receiver is treated."""
        portion.words |= {HOOKS: self.ring, RECEIVERS: self._hear_of_receivers}

    def ring(self) -> None:
        """Something may be there to be sent."""
        for lane in self._lanes.values():
            lane.bell.ring()

    def _hear_of_receivers(self) -> None:
        self._changed = True
        self.telling.bell.ring()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """It sends, for the block."""
        try:
            async with (
                beside(partial(self._portion.while_had, HOUSE, self._serve), "webhooks sent"),
                beside(self._listening, "webhooks heard"),
            ):
                yield
        finally:
            for bell in (self.telling.bell, *(lane.bell for lane in self._lanes.values())):
                bell.close()

    async def _serve(self) -> None:
        """Send, until cancelled."""
        await self._begun()
        async with asyncio.TaskGroup() as group:
            for name, lane in self._lanes.items():
                group.create_task(lane.run(), name=f"webhooks to {name}")

    async def _begun(self) -> None:
        """What earlier processes knew of the receivers, and messages for those that are not configured any more."""
        for attempt in itertools.count(1):
            try:
                known = {row.receiver: row for row in await self.store.hooks.receivers()}
                for name, lane in self._lanes.items():
                    row = known.get(name)
                    if row is not None and row.url == lane.receiver.url:
                        lane.row = row
                        if row.off:
                            self.telling.off.add(name)
                            log.warning("webhook.still_off", receiver=name, why=row.off)
                await self._sweep()
                await self.count()
            except StorageUnavailable as error:
                log.warning("webhook.storage_unavailable", receiver="", error=str(error))
                await asyncio.sleep(STORING.seconds(attempt))
            else:
                return

    async def _sweep(self) -> None:
        for count in await self.store.hooks.counts():
            if count.state is not HookState.WAITING or count.receiver in self._lanes:
                continue
            now = self.clock.now_ms()
            while page := await self.store.hooks.waiting(count.receiver, PAGE):
                await self.store.hooks.settle([given_up(one.row, NOT_CONFIGURED, now) for one in page])
            log.error("webhook.given_up", receiver=count.receiver, messages=count.count, hook="", why=NOT_CONFIGURED)

    async def _listening(self) -> None:
        """Ring on, to whoever sends, and look now and then what others have stored of receivers."""
        looked = self.clock.monotonic()
        while True:
            rung = await self.telling.bell.wait(LOOK_SECONDS)
            if self._portion.has(HOUSE):
                self.ring()
            elif rung and not self._changed:
                self._portion.tell(HOOKS)
            if self.clock.monotonic() - looked < LOOK_SECONDS and not self._changed:
                continue
            looked, self._changed = self.clock.monotonic(), False
            try:
                await (self.count() if self._portion.whole else self._learn())
            except StorageUnavailable:
                continue  # the lanes say so

    async def _learn(self) -> None:
        """What other gateways have stored of the receivers. Who sends knows more than is stored, but for what people have wanted meanwhile."""
        await self.count()
        known = {row.receiver: row for row in await self.store.hooks.receivers()}
        sends = self._portion.has(HOUSE)
        for name, lane in self._lanes.items():
            row = known.get(name)
            if row is None or row.url != lane.receiver.url:
                continue
            if not sends:
                lane.row = row
                (self.telling.off.add if row.off else self.telling.off.discard)(name)
            elif row.at > lane.row.at and not row.off:
                lane.turn_on(row)
            lane.lost = min(lane.lost, self._count(name, HookState.GIVEN_UP))

    async def count(self) -> None:
        """Have `counts` as they are now."""
        self.counts = {(one.receiver, one.state): one for one in await self.store.hooks.counts()}

    # ------------------------------------------------------------------ for people

    def waiting(self) -> dict[str, int]:
        """How many messages wait, by receiver."""
        return {name: self._count(name, HookState.WAITING) for name in self._lanes}

    def figures(self) -> Mapping[str, HookFigures]:
        """What was counted, by receiver."""
        return {name: lane.figures for name, lane in self._lanes.items()}

    def troubles(self) -> list[tuple[str, str, str]]:
        """Receivers that are off, or have taken nothing for long, and messages that were given up: (key, what is wrong, what is said when it is not)."""
        found: list[tuple[str, str, str]] = []
        now = self.clock.now_ms()
        for name, lane in self._lanes.items():
            row, lost = lane.row, lane.lost
            if row.off:
                words = f"The webhook {name} is off, because {row.off}. Nothing is sent to it: outspoken webhooks on {name}."
                found.append((f"webhook:{name}", words, f"The webhook {name} is on again."))
            elif row.failing_since and now - row.failing_since > DAY_MS // 24:
                words = f"The webhook {name} has taken nothing for {(now - row.failing_since) / 3_600_000:.0f} h: outspoken webhooks list."
                found.append((f"webhook:{name}", words, f"The webhook {name} takes messages again."))
            if lost:
                words = f"{lost} messages to the webhook {name} were given up. To send them again: outspoken webhooks resend {name}."
                found.append(
                    (f"webhook:{name}:lost", words, f"The messages to the webhook {name} are on their way again.")
                )
        return found

    async def status(self) -> list[Json]:
        """Of every receiver, with its latest messages that were not taken."""
        await self.count()
        found: list[Json] = []
        for name, lane in self._lanes.items():
            row, rule = lane.row, lane.receiver.rule
            lost = await self.store.hooks.given_up(name, 5)
            oldest = self.counts.get((name, HookState.WAITING))
            found.append(
                {
                    "receiver": name,
                    "url": lane.receiver.url,
                    "events": [*sorted(one.value for one in rule.events)],
                    "off": row.off or None,
                    "failures": row.failures,
                    "failing_since": moment(row.failing_since) if row.failing_since else None,
                    "not_before": moment(row.not_before) if row.not_before > self.clock.now_ms() else None,
                    "waiting": self._count(name, HookState.WAITING),
                    "oldest_waiting": moment(oldest.oldest_at) if oldest is not None else None,
                    "sent": lane.figures.sent,
                    "given_up": self._count(name, HookState.GIVEN_UP),
                    "last_given_up": [
                        {"id": one.row.message, "event": one.row.event, "at": moment(one.row.at), "why": one.row.cause}
                        for one in lost
                    ],
                }
            )
        return found

    def _count(self, name: str, state: HookState) -> int:
        found = self.counts.get((name, state))
        return found.count if found is not None else 0

    async def alerted(self, said: Message) -> None:
        """Have told what the operators are told."""
        await self.store.hooks.put(self.telling.alerts(said))

    def knows(self, name: str) -> bool:
        """Whether a receiver is configured."""
        return name in self._lanes

    async def test(self, name: str, subject: str) -> str:
        """Have a message sent that says nothing but that it is one; its id."""
        lane, now = self._lanes[name], self.clock.now_ms()
        what = HookFact(event=HookEvent.TEST, subject=subject, at=now, facts={"text": "This is a test."})
        row = message(lane.receiver.rule, what)
        await self.store.hooks.put([row])
        lane.bell.ring()
        self._portion.tell(HOOKS)
        return row.message

    async def resend(self, name: str, one: str = "") -> int:
        """Have a message sent again under its id, or everything that was given up; how many there are."""
        lane, now = self._lanes[name], self.clock.now_ms()
        if one:
            found = await self.store.hooks.one(one)
            rows = [found] if found is not None and found.receiver == name else []
        else:
            rows = [one.row for one in await self.store.hooks.given_up(name, AGAIN_MOST)]
        if rows:
            await self.count()
            await self.store.hooks.settle([again(row, now) for row in rows])
            left = self._count(name, HookState.GIVEN_UP) - sum(row.state is HookState.GIVEN_UP for row in rows)
            lane.lost = min(lane.lost, max(0, left))
            lane.bell.ring()
            self._portion.tell(HOOKS)
            self._portion.tell(RECEIVERS)
        return len(rows)

    async def turn_on(self, name: str) -> bool:
        """Have a receiver told again; whether it was not."""
        lane = self._lanes[name]
        if not self._portion.whole:
            await self._learn()
        if not lane.row.off and not lane.row.failures:
            return False
        fresh = ReceiverRow(name, lane.receiver.url, at=self.clock.now_ms())
        await self.store.hooks.settle([], [fresh])
        lane.turn_on(fresh)
        self._portion.tell(RECEIVERS)
        return True
