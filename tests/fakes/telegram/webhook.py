"""Delivery of updates to a webhook: in order within a chat, again and again until the answer is a 2xx."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp
import orjson

from tests.fakes.common import Bell, JsonObject
from tests.fakes.telegram.errors import bad
from tests.fakes.telegram.params import Params
from tests.fakes.telegram.updates import Update
from tests.fakes.telegram.world import World

SECRET_HEADER = "X-Telegram-Bot-Api-Secret-Token"
ANSWER_SECONDS = 10.0
"""How long the fake waits for the webhook's answer."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """What setWebhook asked for."""

    url: str
    secret: str
    max_connections: int


def read_webhook(params: Params, *, https_only: bool) -> Webhook | None:
    """The webhook of a setWebhook request; None if it takes the webhook away.

    Raises:
        ApiError: the address or the secret is no good.
    """
    url = params.text("url")
    secret = params.text("secret_token")
    connections = params.integer("max_connections", 40)
    if not url:
        return None
    address = urlsplit(url)
    # The real server takes HTTP only if it is one's own (`--local`).
    if address.scheme != "https" and (https_only or address.scheme != "http"):
        raise bad("bad webhook: An HTTPS URL must be provided for webhook")
    if secret and not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", secret):
        raise bad("secret token contains unallowed characters")
    return Webhook(url, secret, max(1, min(connections, 100)))


class Deliverer:
    """Sends updates to the webhook while there is one."""

    def __init__(self, world: World, bell: Bell, retry_seconds: float) -> None:
        self._world = world
        self._bell = bell
        self._retry_seconds = retry_seconds
        self._task: asyncio.Task[None] | None = None
        self.webhook: Webhook | None = None
        self.last_error = ""
        self.last_error_at = 0
        self.attempts: list[tuple[int, int]] = []
        """Update id and the status of the answer (0 if there was none), for every attempt."""

    def info(self) -> JsonObject:
        """The WebhookInfo object."""
        body: JsonObject = {
            "url": self.webhook.url if self.webhook else "",
            "has_custom_certificate": False,
            "pending_update_count": len(self._world.updates.pending),
        }
        if self.webhook:
            body["max_connections"] = self.webhook.max_connections
        if self.last_error:
            body["last_error_date"] = self.last_error_at
            body["last_error_message"] = self.last_error
        if self._world.updates.allowed:
            body["allowed_updates"] = [*sorted(self._world.updates.allowed)]
        return body

    async def use(self, webhook: Webhook | None) -> None:
        """Deliver there from now on; None: nowhere."""
        await self.stop()
        self.webhook, self.last_error = webhook, ""
        if webhook is not None:
            self._task = asyncio.create_task(self._run(webhook), name="telegram fake: webhook")

    async def stop(self) -> None:
        """Stop delivering."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _run(self, webhook: Webhook) -> None:
        under_way: dict[int, asyncio.Task[None]] = {}
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, asyncio.TaskGroup() as group:
            while True:
                under_way = {lane: task for lane, task in under_way.items() if not task.done()}
                for update in self._world.updates.pending:
                    if update.lane not in under_way and len(under_way) < webhook.max_connections:
                        under_way[update.lane] = group.create_task(self._deliver(session, webhook, update))
                await self._bell.wait(60.0)

    async def _deliver(self, session: aiohttp.ClientSession, webhook: Webhook, update: Update) -> None:
        headers = {"Content-Type": "application/json"}
        if webhook.secret:
            headers[SECRET_HEADER] = webhook.secret
        body = orjson.dumps(update.to_json())
        status = 0
        try:
            async with session.post(webhook.url, data=body, headers=headers, allow_redirects=False) as answer:
                status = answer.status
                words = f"Wrong response from the webhook: {answer.status} {answer.reason}"
        except (aiohttp.ClientError, TimeoutError, OSError) as problem:
            words = f"Connection failed: {type(problem).__name__}"
        self.attempts.append((update.id, status))
        if 200 <= status < 300:
            self._world.updates.confirm([update.id])
        else:
            self.last_error, self.last_error_at = words, self._world.unix()
            await asyncio.sleep(self._retry_seconds)
        # The lane is free once this task is done, which is after the bell has been heard: ring from the loop.
        asyncio.get_running_loop().call_soon(self._bell.ring)
