"""Three questions about the gateway, which are easily taken for one, and their answers.

- **Alive** (``/healthz``): the event loop of this process turns. Whoever would start the process again asks this, and nothing else:
  a new process is no help against a database or a platform that is away.
- **Ready** (``/readyz``): this process can take messages and keep them. Whoever would send people elsewhere asks this. Platforms do
  not count: each has its own way in, and one that is away takes nothing from the web page, the API or the others.
- **Well** (``/wellz``): ready, every platform connected, the model answers, and there is nothing that operators would be told.
  Whoever tells a person asks this; nothing is stopped or started for it.

Who is well is ready, and who answers at all is alive. `judge` decides ready and well in one place, so that they cannot contradict
each other, and everybody else (``/status``, the metrics, ``outspoken health``) asks there.

The first two need no key, so they tell which part is in trouble and not why. ``/wellz`` is asked with the operators' key, as ``/status``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum

from aiohttp import web

from adapters.contract.chat import AdapterSight
from adapters.http.routes import HttpRoute
from agent_core.records import dataclass
from agent_core.signals import CANCELLED, ModelCalled, Signal
from gateway.chats.supervisor import AdapterState
from gateway.limits.alerts import AlertKind, Condition
from gateway.storage.storewatch import EVERYBODYS, StoreWatch

Served = Callable[[web.Request], Awaitable[web.Response]]


class LifePhase(StrEnum):
    """Where the gateway is in its life."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    """It was told to stop; running turns may end, new messages are not taken."""


PHASE_WORDS = {
    LifePhase.STARTING: "The gateway is starting.",
    LifePhase.DRAINING: "The gateway is shutting down and takes no new messages.",
}
STORE_WORDS = "The database takes no writes, so no message can be taken. The log says why."
LOST_WORDS = "This gateway has lost its lock in the database, and begins anew as soon as it can have it."
MODEL_WORDS = "The model has not answered for several turns in a row: outspoken triage says why."
SILENT_TURNS = 2
"""So many turns in a row get nothing from any model before it is the model's, and not the turns', doing."""


@dataclass(frozen=True, slots=True)
class Vitals:
    """All that the answers depend on."""

    phase: LifePhase
    store_works: bool
    owns: bool
    store_damaged: bool = False
    """What all need is damaged."""
    adapters: Sequence[AdapterSight] = ()
    model_answers: bool | None = None
    """None: it is not known yet."""
    unclaimed: str = ""
    """What an earlier process left and nobody could take up yet, in words; empty if there is nothing."""
    damage: str = ""
    """What of the database is damaged, in words."""
    folder: str = ""
    """What is wrong with the folder of the workspaces, in words."""
    alerts: Sequence[Condition] = ()
    incidents: int = 0


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """Why the answers are no, in plain words."""

    not_ready: tuple[str, ...] = ()
    not_well: tuple[str, ...] = ()
    """Besides. It names parts only, so that anybody may read it."""
    told: tuple[str, ...] = ()
    """What operators would be told besides; with causes, and so not for everybody."""

    @property
    def ready(self) -> bool:
        return not self.not_ready

    @property
    def well(self) -> bool:
        return not (self.not_ready or self.not_well or self.told)

    @property
    def unwell(self) -> tuple[str, ...]:
        """All of it."""
        return (*self.not_ready, *self.not_well, *self.told)


def judge(vitals: Vitals) -> HealthVerdict:
    """Is it ready, is it well, and why not. Pure."""
    not_ready = [PHASE_WORDS[vitals.phase]] if vitals.phase in PHASE_WORDS else []
    if not vitals.store_works:
        not_ready.append(EVERYBODYS if vitals.store_damaged else STORE_WORDS)
    if not vitals.owns:
        not_ready.append(LOST_WORDS)
    not_well = [words for sight in vitals.adapters if (words := _adapter_words(sight))]
    not_well += [MODEL_WORDS] if vitals.model_answers is False else []
    not_well += [vitals.unclaimed] if vitals.unclaimed else []
    not_well += [vitals.damage] if vitals.damage else []
    not_well += [vitals.folder] if vitals.folder else []
    told = [alert.words for alert in vitals.alerts if not _said(alert, vitals)]
    if vitals.incidents:
        told.append(
            f"{vitals.incidents} incident{'s are' if vitals.incidents > 1 else ' is'} open: outspoken triage says what to do."
        )
    return HealthVerdict(tuple(not_ready), tuple(not_well), tuple(told))


def _said(alert: Condition, vitals: Vitals) -> bool:
    """An alert says what was found here already, or has just ended: it is kept open for a while."""
    match alert.kind:
        case AlertKind.STORAGE | AlertKind.UNCLAIMED | AlertKind.INCIDENT | AlertKind.DAMAGE:
            return True
        case AlertKind.ADAPTER:
            return alert.key in {f"adapter:{sight.name}" for sight in vitals.adapters}
        case (
            AlertKind.INTAKE
            | AlertKind.DISK
            | AlertKind.DELIVERY
            | AlertKind.QUEUE
            | AlertKind.SPEND
            | AlertKind.WEBHOOK
            | AlertKind.LAW
        ):
            return False


def _adapter_words(sight: AdapterSight) -> str:
    platform = sight.name.partition("/")[0]
    match AdapterState(sight.state):
        case AdapterState.UP | AdapterState.ELSEWHERE:
            return ""
        case AdapterState.STARTING:
            return f"{platform} is not connected yet."
        case AdapterState.DOWN:
            return f"{platform} is not connected; it is tried again. The log says why."
        case AdapterState.NEEDS_A_PERSON:
            return (
                f"{platform} needs somebody to do something (a refused token, for example): outspoken doctor says what."
            )
        case AdapterState.STOPPED:
            return f"{platform} was stopped."


class ModelWatch:
    """Whether the models answer, by what the last turns met. A single turn may break off by its own doing."""

    def __init__(self) -> None:
        self._heard = False
        self._silent: set[str] = set()

    def on(self, signal: Signal) -> None:
        """Note how a call went."""
        if isinstance(signal, ModelCalled) and signal.error != CANCELLED:
            if not signal.error or signal.content_at:
                self._heard = True
                self._silent.clear()
            elif len(self._silent) < SILENT_TURNS:
                self._silent.add(signal.turn)

    @property
    def answers(self) -> bool | None:
        """None: it is not known yet."""
        return False if len(self._silent) >= SILENT_TURNS else self._heard or None


class Health:
    """Serves them. `look` gives the vitals as they are; whoever starts and stops the gateway sets `phase`."""

    def __init__(self, store: StoreWatch, look: Callable[[LifePhase], Vitals], laws_broken: Callable[[], int]) -> None:
        self.phase = LifePhase.STARTING
        self._store = store
        self._look = look
        self._laws_broken = laws_broken

    def routes(self, operators: Callable[[Served], Served]) -> list[web.RouteDef]:
        """`operators` makes a handler one that only whoever runs the gateway reaches."""
        return [
            HttpRoute.ALIVE.served(self._healthz),
            HttpRoute.READY.served(self._readyz),
            HttpRoute.WELL.served(operators(self._wellz)),
        ]

    @contextmanager
    def serving(self) -> Generator[None]:
        """Messages are taken for the block; from its end on the gateway drains."""
        self.phase = LifePhase.SERVING
        try:
            yield
        finally:
            self.phase = LifePhase.DRAINING

    async def store_words(self) -> str:
        """Why the store takes no writes, for whoever runs the gateway; empty if it does."""
        await self._store.works()
        return self._store.words

    @property
    def free_bytes(self) -> int | None:
        """What room is left, by the same look as the words."""
        return self._store.free_bytes

    def verdict(self) -> HealthVerdict:
        """By what is known of the store."""
        return judge(self._look(self.phase))

    @property
    def model_answers(self) -> bool | None:
        """By what the last turns met here; None: it is not known yet."""
        return self._look(self.phase).model_answers

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.json_response({"program": "outspoken", "status": "ok"})

    async def _readyz(self, _: web.Request) -> web.Response:
        await self._store.works()
        found = self.verdict()
        body = {
            "status": "ready" if found.ready else "not ready",
            "phase": self.phase.value,
            "problems": found.not_ready,
            "laws_broken": self._laws_broken(),
        }
        if found.not_well:  # messages are taken all the same
            body["warnings"] = found.not_well
        return web.json_response(body, status=200 if found.ready else 503)

    async def _wellz(self, _: web.Request) -> web.Response:
        await self._store.works()
        found = self.verdict()
        body = {
            "status": "well" if found.well else "not well",
            "ready": found.ready,
            "phase": self.phase.value,
            "problems": found.unwell,
        }
        return web.json_response(body, status=200 if found.well else 503)
