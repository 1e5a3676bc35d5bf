"""What the gateway learns from failures: what a turn is told at its beginning, and the incidents, kept up to date.

It reads and stores; what follows from what is decided in `agent_core.learning.stalls` and `agent_core.learning.incidents`.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from adapters.contract.base import Inbound
from agent_core.bell import Bell
from agent_core.driver.closing import Herald, NoHerald
from agent_core.failures.exits import ExitCode
from agent_core.failures.known import Known
from agent_core.learning.incidents import HICCUPS, IncidentRules, changes, incident_words, known_incidents
from agent_core.learning.refused import RefusedContents
from agent_core.learning.stalls import REMEMBER_MS, stalls_of
from agent_core.ports import Clock, Ids
from agent_core.store.store import Damaged, StorageUnavailable, Store
from agent_core.store.troubles.rows import IncidentRow, IncidentState, TroubleRow
from gateway.limits.alerts import Announce
from gateway.limits.whose import conversation_of, nameless
from gateway.setaside.takeup import LeftKind
from gateway.sharing.portion import INCIDENTS, Portion

log = structlog.get_logger("incident")

LOOK_SECONDS = 30.0
UNTROUBLED_MOST = 10_000
OURSELVES = "the gateway itself"
"""What stands in an endpoint's place where no model is to blame."""


class Learning:
    """Use it as an async context manager: it watches for incidents that are over."""

    def __init__(
        self,
        rules: IncidentRules,
        asked: Callable[[str, str], bool],
        announce: Announce | None,
        store: Store,
        clock: Clock,
        ids: Ids,
        herald: Herald | None = None,
        portion: Portion | None = None,
    ) -> None:
        """`asked` says whether a model at an endpoint is one that turns ask; None in place of `announce`: the log alone is told. `herald`
        tells other programs; by the `portion` other gateways hear of what is new here, and the other way round."""
        self.refused = RefusedContents()
        self._rules = rules
        self._asked = asked
        self._store = store
        self._clock = clock
        self._ids = ids
        self._herald = herald or NoHerald()
        self._incidents: tuple[IncidentRow, ...] = ()
        self._touched: set[str] = set()
        self._untroubled: OrderedDict[str, int] = OrderedDict()
        """Conversations that nothing is remembered of, with the epoch under which they are ours: so nobody else adds to them."""
        self._looked = False
        self._looking = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._announce = announce
        self._bell = Bell()
        self._portion = portion or Portion()
        self._portion.words[INCIDENTS] = self._bell.ring

    async def __aenter__(self) -> Learning:
        self._task = asyncio.create_task(self._watch(), name="incidents")
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        self._bell.close()

    async def _tell_of_late(self) -> None:
        """The operators are told also of what happened lately while they could not be."""
        for incident in await self._store.troubles.incidents(open_only=False, limit=20):
            if self._clock.now_ms() - incident.last_at < self._rules.window_ms + self._rules.quiet_ms:
                self._tell(incident)

    async def set_aside(self, kind: LeftKind, name: str) -> None:
        """Something has ended the whole process twice, and is not tried again: an incident of its own."""
        now = self._clock.now_ms()
        model = f"{name}, set aside"
        incident = IncidentRow(
            incident=self._ids.new("i"), fingerprint=f"{ExitCode.INTERNAL_ERROR.value}|gateway|{model}|-|{kind.value}",
            state=IncidentState.OPEN, code=ExitCode.INTERNAL_ERROR.value, endpoint=OURSELVES, model=model, tool="",
            opened_at=now, last_at=now, conversations=1, turns=1,
        )  # fmt: skip
        if await self._store.troubles.put_incident(incident, self._herald.incident(incident)):
            self._log(incident)
            self._tell(incident)
        self._incidents = tuple(await self._store.troubles.incidents())

    @property
    def open_incidents(self) -> tuple[IncidentRow, ...]:
        """As of the last look."""
        return self._incidents

    def troubled(self, session: str, rows: Sequence[TroubleRow]) -> None:
        """A turn of a session was closed, and these went wrong in it."""
        if rows:
            self._untroubled.pop(session, None)
        self._touched.update(row.fingerprint for row in rows)

    async def known(self, inbound: Inbound, session: str, epoch: int) -> Known:
        """What the turn that answers a message is told; the session is ours by `epoch`."""
        now = self._clock.now_ms()
        conversation = conversation_of(inbound)
        try:
            if self._touched or not self._looked:
                await self._look(only_touched=self._looked)
            rows = await self._remembered(inbound, conversation, session, epoch, now)
        except Damaged as error:  # of no use to the turn, and none of its conversation's doing
            log.warning("incident.not_looked", error=str(error))
            rows = []
        except StorageUnavailable:
            raise
        except Exception:  # what was learnt is a help; without it every turn begins all the same
            log.exception("incident.watch_failed")
            rows = []
        return Known(stalls_of(rows, now), known_incidents(self._incidents), conversation)

    async def _remembered(
        self, inbound: Inbound, conversation: str, session: str, epoch: int, now: int
    ) -> list[tuple[str, TroubleRow]]:
        """What went wrong in the conversation before."""
        if nameless(inbound) or (not conversation and self._untroubled.get(session) == epoch):
            return []  # nobody's has no past; and of ours we know
        rows = await self._store.troubles.of(conversation or session, now - REMEMBER_MS)
        if not rows and not conversation:
            self._untroubled[session] = epoch
            if len(self._untroubled) > UNTROUBLED_MOST:
                self._untroubled.popitem(last=False)
        return rows

    async def look(self, at: int | None = None) -> None:
        """Bring the incidents up to date, as of now or of a time (ms)."""
        await self._look(only_touched=False, at=at)

    async def _watch(self) -> None:
        told = self._announce is None
        while True:
            try:
                if not told:
                    await self._tell_of_late()
                    told = True
                await self.look()
            except StorageUnavailable as error:
                log.warning("incident.not_looked", error=str(error))
            except Exception:
                log.exception("incident.watch_failed")
            await self._bell.wait(LOOK_SECONDS)

    async def _look(self, *, only_touched: bool, at: int | None = None) -> None:
        """Compare the counts with the incidents, and store what has changed."""
        async with self._looking:
            touched, self._touched = self._touched, set()
            if only_touched and not touched:
                return
            try:
                await self._compare(tuple(sorted(touched)) if only_touched else (), at or self._clock.now_ms())
            except BaseException:
                self._touched |= touched
                raise
            self._looked = True

    async def _compare(self, fingerprints: tuple[str, ...], now: int) -> None:
        rules = self._rules
        since = now - rules.window_ms
        counts = await self._store.troubles.counts(since, fingerprints, HICCUPS)
        opened = await self._store.troubles.incidents()
        known = {incident.fingerprint for incident in opened}
        counts = [
            count
            if count.people < rules.people or count.fingerprint in known
            else replace(count, people=await self._store.troubles.people_of(count.fingerprint, since))
            for count in counts
        ]
        changed = changes(counts, opened, now, rules, lambda: self._ids.new("i"), self._concerns)
        for incident in changed:
            if await self._store.troubles.put_incident(incident, self._herald.incident(incident)):
                self._log(incident)
                self._tell(incident)
        self._incidents = tuple(await self._store.troubles.incidents() if changed else opened)

    def _concerns(self, endpoint: str, model: str) -> bool:
        return endpoint == OURSELVES or self._asked(endpoint, model)

    def _tell(self, incident: IncidentRow) -> None:
        if self._announce is not None:
            self._announce(f"incident:{incident.incident}:{incident.state.value}", incident_words(incident))

    def _log(self, incident: IncidentRow) -> None:
        self._portion.tell(INCIDENTS)
        over = incident.state is IncidentState.CLOSED
        (log.info if over else log.warning)(
            "incident.closed" if over else "incident.opened",
            incident=incident.incident,
            fingerprint=incident.fingerprint,
            conversations=incident.conversations,
            turns=incident.turns,
            remedy=incident.remedy or None,
        )
