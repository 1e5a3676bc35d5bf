"""What supervisors and load balancers ask: ``/healthz`` (the process lives) and ``/readyz`` (it can take messages and answer them).

Both need no key, so they tell no more than that: which part is in trouble, not why. ``/status`` tells the rest, to whoever has the key.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import StrEnum

from aiohttp import web

from adapters.chat import AdapterSight
from gateway.storewatch import StoreWatch
from gateway.supervisor import State


class Phase(StrEnum):
    """Where the gateway is in its life."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    """It was told to stop; running turns may end, new messages are not taken."""


PHASE_WORDS = {
    Phase.STARTING: "The gateway is starting.",
    Phase.DRAINING: "The gateway is shutting down and takes no new messages.",
}
STORE_WORDS = "The database takes no writes, so no message can be taken. The log says why."
LOST_WORDS = "This process has lost its lock in the database and is about to end."


def problems(phase: Phase, adapters: Sequence[AdapterSight], *, store_works: bool, owns: bool) -> list[str]:
    """Why the gateway is not ready, in plain words; empty if it is. Pure."""
    found = [PHASE_WORDS[phase]] if phase in PHASE_WORDS else []
    if not store_works:
        found.append(STORE_WORDS)
    if not owns:
        found.append(LOST_WORDS)
    return found + [words for sight in adapters if (words := _adapter_words(sight))]


def _adapter_words(sight: AdapterSight) -> str:
    platform = sight.name.partition("/")[0]
    match State(sight.state):
        case State.UP:
            return ""
        case State.STARTING:
            return f"{platform} is not connected yet."
        case State.DOWN:
            return f"{platform} is not connected; it is tried again. The log says why."
        case State.NEEDS_A_PERSON:
            return (
                f"{platform} needs somebody to do something (a refused token, for example): outspoken status says what."
            )
        case State.STOPPED:
            return f"{platform} was stopped."


class Health:
    """Serves them. Whoever starts and stops the gateway sets `phase`."""

    def __init__(
        self,
        store: StoreWatch,
        adapters: Callable[[], Sequence[AdapterSight]],
        owns: Callable[[], bool],
        laws_broken: Callable[[], int],
        unclaimed: Callable[[], str] = str,
    ) -> None:
        """`unclaimed` says what an earlier process left and nobody could take up yet; empty if there is nothing."""
        self.phase = Phase.STARTING
        self._store = store
        self._adapters = adapters
        self._owns = owns
        self._laws_broken = laws_broken
        self._unclaimed = unclaimed

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]

    @contextmanager
    def serving(self) -> Generator[None]:
        """Messages are taken for the block; from its end on the gateway drains."""
        self.phase = Phase.SERVING
        try:
            yield
        finally:
            self.phase = Phase.DRAINING

    async def store_words(self) -> str:
        """Why the store takes no writes, for whoever runs the gateway; empty if it does."""
        await self._store.works()
        return self._store.words

    def problems(self) -> list[str]:
        """Why it is not ready, by what is known of the store."""
        return problems(self.phase, self._adapters(), store_works=not self._store.words, owns=self._owns())

    async def _healthz(self, _: web.Request) -> web.Response:
        return web.json_response({"program": "outspoken", "status": "ok"})

    async def _readyz(self, _: web.Request) -> web.Response:
        await self._store.works()
        found, unclaimed = self.problems(), self._unclaimed()
        body = {
            "status": "not ready" if found else "ready",
            "phase": self.phase.value,
            "problems": found,
            "laws_broken": self._laws_broken(),
        }
        if unclaimed:  # new messages are taken and answered all the same
            body["warnings"] = [unclaimed]
        return web.json_response(body, status=503 if found else 200)
