"""A whole gateway for tests: the real store, hub, driver and model client, against a model server of ours on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from adapters.contract.base import Ended, FromApi, SessionKey, Showing, Ticket
from agent_core.driver.spending import Spender
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import BudgetRules
from agent_core.messages import InputMessage
from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Credential, Endpoint
from agent_core.ports import SystemClock, SystemIds
from agent_core.settings import RULES, ToolFacts, TurnSettings
from agent_core.signals import Tell, nobody
from agent_core.store.store import Store, open_store
from agent_core.text.redaction import Redactor
from agent_core.tools.base import EffectClass, Tool, ToolContext, ToolOutcome, ToolSpec, ToolStatus
from agent_core.tools.registry import ToolRegistry
from gateway.config.types import SessionPolicy
from gateway.limits.budgets import BudgetBook, Warn
from gateway.recovery.keeper import recovered
from gateway.sessions.hub import Hub
from gateway.sessions.opening import HubSettings

Reply = Callable[[list[dict[str, Any]], web.StreamResponse, web.Request], Awaitable[None]]


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    return (
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"
    )


def call_chunk(name: str, arguments: str, finish: str | None = "tool_calls", call: str = "call_a") -> bytes:
    function = {"name": name, "arguments": arguments}
    return chunk({"tool_calls": [{"index": 0, "id": call, "type": "function", "function": function}]}, finish)


@dataclass
class Model:
    """A model server; `reply` writes the answer to a conversation."""

    reply: Reply
    requests: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    url: str = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.requests.append(body)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self.reply(body["messages"], response, request)
        return response


@dataclass
class CountingTool:
    """Writes down that it ran, and takes its time."""

    name: str
    effect: EffectClass
    record: Path
    seconds: float = 0.0

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, "a tool for tests", {"type": "object"}, self.effect)

    async def run(self, arguments: Mapping[str, Json], context: ToolContext) -> ToolOutcome:
        with self.record.open("a") as file:
            file.write(context.key + "\n")
        await asyncio.sleep(self.seconds)
        return ToolOutcome(ToolStatus.OK, f"{self.name} has run")

    def runs(self) -> list[str]:
        return self.record.read_text().split() if self.record.exists() else []


QUICK = TurnSettings(
    routes=(),
    first_content_seconds=1,
    stall_seconds=0.5,
    retry_min_seconds=0.02,
    retry_max_seconds=0.1,
    can_approve=True,
    rules=RULES,
)


@dataclass
class Rig:
    hub: Hub
    store: Store
    model: Model
    recovered: int
    ids: SystemIds

    def inbound(self, words: str, *, session: str = "s", key: str = "", **more: Any) -> FromApi:
        base = FromApi(
            account="test",
            platform_key=key or self.ids.new("k"),
            session=SessionKey("test", "a", session),
            input=(InputMessage(words),),
            surface="test",
            memory_scope="test",
            can_approve=True,
        )
        return replace(base, **more)

    async def say(self, words: str, *, session: str = "s", key: str = "", **more: Any) -> Ended:
        return await self.end(await self.hub.accept(self.inbound(words, session=session, key=key, **more)))

    async def end(self, ticket: Ticket) -> Ended:
        async with asyncio.timeout(60), self.hub.follow(ticket) as follower:
            while True:
                sight = await follower.next(20)
                if isinstance(sight, Ended):
                    return sight

    async def until_text(self, ticket: Ticket, words: str) -> None:
        """Wait until `words` are to be seen."""
        async with asyncio.timeout(60), self.hub.follow(ticket) as follower:
            while True:
                sight = await follower.next(20)
                if isinstance(sight, Showing) and words in sight.view.text:
                    return
                assert not isinstance(sight, Ended), sight


@asynccontextmanager
async def gateway(
    folder: Path,
    reply: Reply,
    *,
    tools: Sequence[Tool] = (),
    settings: TurnSettings = QUICK,
    models: Sequence[str] = ("m1",),
    budgets: BudgetRules | None = None,
    warn: Warn | None = None,
    tell: Tell = nobody,
    **more: Any,
) -> AsyncGenerator[Rig]:
    """A gateway whose database is in `folder`; what a former one left there is recovered."""
    clock = SystemClock()
    ids = SystemIds(clock)
    model = Model(reply)
    async with AsyncExitStack() as stack:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", model.handle)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        model.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        endpoints = tuple(
            Endpoint(f"model {name}".removesuffix(" m1"), model.url, (Credential("key", "sk-test-secret"),), (name,))
            for name in models
        )
        store = await stack.enter_async_context(open_store(folder / "db", clock=clock, ids=ids, version="test"))
        client = ModelClient(endpoints, clock, Redactor.of(["sk-test-secret"]))
        stack.push_async_callback(client.aclose)
        registry = ToolRegistry(tools)
        facts = tuple(ToolFacts(s.name, s.effect, s.housekeeping, s.name == "danger") for s in registry.specs())
        defaults: dict[str, Any] = {"queue_limit": 20, "policy": SessionPolicy.QUEUE, "history_turns": 50}
        hub_settings = HubSettings(
            turn=replace(settings, tools=facts),
            system_prompt="You are kind.",
            connect_seconds=5,
            workspaces=folder / "workspaces",
            rehearsal=False,
            version="test",
            **(defaults | more),
        )
        paid = None
        if budgets is not None:
            paid = BudgetBook(await stack.enter_async_context(Spender(store, budgets, clock)), store, clock, warn)
        hub = Hub(hub_settings, store, client, endpoints, registry, clock, ids, tell, budgets=paid)
        await stack.enter_async_context(hub)
        yield Rig(hub, store, model, await recovered(hub, store, clock, ids), ids)
