"""Which models there are and which way to one a turn takes first: the configured chain, and what is set aside just now."""

from __future__ import annotations

from collections.abc import Mapping

import structlog

from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Endpoint, chain, preferred
from agent_core.ports import Clock
from agent_core.settings import Route

log = structlog.get_logger("gateway")


class ModelChain:
    """The configured endpoints, with the names of models that were learned from them."""

    def __init__(self, client: ModelClient, endpoints: tuple[Endpoint, ...], clock: Clock) -> None:
        self._client = client
        self._endpoints = endpoints
        self._clock = clock
        self._set_aside: dict[str, int] = {}
        self._names: Mapping[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for."""
        configured = [model for endpoint in self._endpoints for model in endpoint.models]
        return tuple(dict.fromkeys(["outspoken", *configured, *self._names.values()]))

    @property
    def configured(self) -> tuple[str, ...]:
        """The same, if the configuration says all of it; empty if what there is depends on who is asked."""
        return self.names if all(endpoint.models for endpoint in self._endpoints) else ()

    @property
    def default(self) -> str:
        """The model that answers if nobody chose another."""
        configured = next((m for e in self._endpoints for m in e.models), "")
        return configured or next(iter(self._names.values()), "the default")

    def asked(self, endpoint: str, model: str) -> bool:
        """Whether there is a way to this model: it may have been another configuration's."""
        return any(
            one.label == endpoint
            and (model in one.models or (not one.models and self._names.get(endpoint, model) == model))
            for one in self._endpoints
        )

    async def learn_names(self) -> None:
        """Ask the endpoints without a configured model what they have."""
        self._names = await self._client.model_names()

    async def routes(self, model: str) -> tuple[Route, ...]:
        """The ways to a model, in the order in which a turn takes them."""
        if any(not endpoint.models for endpoint in self._endpoints):
            await self.learn_names()
        wished = "" if model in ("", "outspoken") else model
        return preferred(chain(self._endpoints, self._names), self._set_aside, self._steady(), wished)

    def set_aside(self, credential: str, seconds: float, why: str) -> None:
        """This credential is no good for a while."""
        until = self._steady() + round(seconds * 1000)
        self._set_aside[credential] = max(until, self._set_aside.get(credential, until))
        log.warning("credential.set_aside", which=credential, seconds=round(seconds), why=why)

    def _steady(self) -> int:
        """Milliseconds that never go back, whatever becomes of the wall clock."""
        return round(self._clock.monotonic() * 1000)
