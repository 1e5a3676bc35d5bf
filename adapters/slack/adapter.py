"""The Slack app: events over Socket Mode or signed HTTP, each stored before it is acknowledged.

Bolt acknowledges events before their handler has run; here everything is taken by a middleware that stores first and answers
then, so that an event whose storing failed is delivered again. What one text brings twice (`message` and `app_mention`, a
redelivery) has one key: channel and ts.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web

from adapters.base import NotAccepted
from adapters.chat import AdapterSight, CallFailed, Cause, ChatDesk, ChatMessage
from adapters.slack.inbound import PLATFORM, read_command, read_message, read_press, table, user_of
from adapters.slack.missed import Missed
from adapters.slack.port import SlackPort
from adapters.supervision import AdapterDown
from agent_core.ports import Clock

if TYPE_CHECKING:
    from slack_bolt import BoltResponse

log = structlog.get_logger("slack")

LOOK_SECONDS = 1.0
CLOSING_SECONDS = 0.1
PING_SECONDS = 5.0
DEAF_SECONDS = 40.0


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """What the configuration says about the app."""

    bot_token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    """For Socket Mode; without it, Slack calls us."""
    signing_secret: str = field(default="", repr=False)
    api_url: str = ""
    proxy: str = ""

    @property
    def account(self) -> str:
        """The workspace and the app, whose numbers a bot's token holds."""
        found = re.match(r"xox[a-z]-(\d+)-(\d+)-", self.bot_token)
        return f"{found[1]}-{found[2]}" if found else "workspace"


class SlackAdapter:
    """One workspace. `run` it under supervision."""

    def __init__(self, settings: SlackSettings, desk: ChatDesk, clock: Clock) -> None:
        from slack_sdk.web.async_client import AsyncWebClient

        self._settings = settings
        self._desk = desk
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{self.account}"
        more: dict[str, Any] = {"base_url": settings.api_url} if settings.api_url else {}
        # The outbox is the one owner of retries.
        self._web: Any = AsyncWebClient(
            token=settings.bot_token, proxy=settings.proxy or None, timeout=20, retry_handlers=[], **more
        )
        self.port = SlackPort(self._web, settings.bot_token)
        self._app: Any = None
        self._socket: Any = None
        self._me = ""
        self._names: dict[str, str] = {}
        self._taking = asyncio.Lock()
        self._missed = Missed(self.name, desk, self._web, self.port.asked, clock, self._late)
        self._last_life = clock.monotonic()
        self._last_inbound: float | None = None

    # ------------------------------------------------------------------ life

    def opened(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    @property
    def silent_seconds(self) -> float:
        """The library pings its socket; an answer is life."""
        pong = self._socket.last_ping_pong_time if self._socket is not None else None
        since_pong = time.time() - pong if pong else self._clock.monotonic() - self._last_life
        return 0.0 if not self._settings.app_token else min(since_pong, self._clock.monotonic() - self._last_life)

    @property
    def deaf_after_seconds(self) -> float:
        return DEAF_SECONDS

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        inbound = None if self._last_inbound is None else self._clock.monotonic() - self._last_inbound
        return AdapterSight(self.name, state, words, inbound, outbound)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled. Raises `AdapterDown`."""
        from slack_bolt.app.async_app import AsyncApp

        self._last_life = self._clock.monotonic()
        try:
            me = await self.port.asked(self._web.auth_test())
        except CallFailed as error:
            raise _down(error) from error
        self._me = str(me["user_id"])
        app: Any = AsyncApp(
            client=self._web, signing_secret=self._settings.signing_secret or "unused", process_before_response=True
        )
        app.middleware(self._take_in)
        self._app = app
        await self._missed.start()
        reading = asyncio.create_task(self._missed.run(), name="slack history")
        try:
            if not self._settings.app_token:
                up()
                await asyncio.Event().wait()
            await self._listen(up)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _listen(self, up: Callable[[], None]) -> None:
        from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler

        assert self._app is not None
        handler: Any = AsyncSocketModeHandler(
            self._app, self._settings.app_token, proxy=self._settings.proxy or None, ping_interval=PING_SECONDS
        )
        self._socket = handler.client
        try:
            await self.port.asked(handler.connect_async())
            self._last_life = self._clock.monotonic()
            up()
            session = id(handler.client.current_session)
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                if id(handler.client.current_session) == session:
                    self._missed.standing()
                else:  # the library has connected anew: there may be a gap
                    session = id(handler.client.current_session)
                    self._last_life = self._clock.monotonic()
                    self._missed.gap()
        except CallFailed as error:
            raise _down(error) from error
        finally:
            self._socket = None
            await handler.close_async()
            await asyncio.sleep(CLOSING_SECONDS)  # the library does not wait for its own tasks

    # ------------------------------------------------------------------ in

    async def _take_in(self, body: dict[str, Any], next: Any) -> BoltResponse:  # noqa: A002, ARG002 - bolt's names
        """Everything that Slack tells: stored, and then acknowledged."""
        from slack_bolt import BoltResponse

        self._last_life = self._clock.monotonic()
        try:
            await self._missed.before(table(body.get("event")))
            async with self._taking:
                await self._take(body)
        except NotAccepted as refused:
            log.warning("slack.not_stored", words=str(refused))
            return BoltResponse(status=503)  # not acknowledged: it comes again
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            log.warning("slack.odd_event", error=f"{type(error).__name__}: {error}")
        return BoltResponse(status=200)

    async def _take(self, body: dict[str, Any]) -> None:
        if "command" in body:
            self._last_inbound = self._clock.monotonic()
            await self._desk.receive(read_command(body, self.account), None)
        elif body.get("type") == "block_actions":
            if (pressed := read_press(body, self.account)) is not None:
                self._last_inbound = self._clock.monotonic()
                await self._desk.receive(pressed, None)
        elif event := table(body.get("event")):
            await self._event(event)

    async def _late(self, event: dict[str, Any], late: str) -> None:
        await self._event(event, late)

    async def _event(self, event: dict[str, Any], late: str | None = None) -> None:
        """Take an event in. `late` is put before the words of one that was read from the history; None: it came by itself."""
        if event.get("type") not in ("message", "app_mention"):
            return
        if event.get("subtype") == "message_deleted":
            await self._desk.removed(self.name, f"{event['channel']}:{event.get('deleted_ts')}")
            return
        name = await self._name(user_of(event))
        read = read_message(event, self._me, self.account, name, late=late or "")
        if read is not None:
            self._last_inbound = self._clock.monotonic()
            await self._receive(read, event, late=late is not None)

    async def _receive(self, read: ChatMessage, event: dict[str, Any], *, late: bool) -> None:
        cursor = None if read.edited else await self._missed.cursor(event, for_us=read.for_us, late=late)
        await self._desk.receive(read, cursor)
        if cursor is not None:
            self._missed.stored(event, late=late)

    async def _name(self, user: str) -> str:
        """A person's name, asked for once."""
        if not user:
            return "somebody"
        if user not in self._names:
            try:
                answer: Any = await self.port.asked(self._web.users_info(user=user))
            except CallFailed as error:
                log.info("slack.name_not_known", words=error.words)
                return user
            profile = answer["user"]
            self._names[user] = str(profile.get("real_name") or profile.get("name") or user)
        return self._names[user]

    # ------------------------------------------------------------------ HTTP

    def routes(self) -> list[web.RouteDef]:
        return [] if self._settings.app_token else [web.post("/slack/events", self._hook)]

    async def _hook(self, request: web.Request) -> web.Response:
        """Signed by Slack; Bolt checks the signature and the time."""
        from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request

        if self._app is None:
            return web.Response(status=503)
        response = await self._app.async_dispatch(await to_bolt_request(request))
        return await to_aiohttp_response(response)


def _down(error: CallFailed) -> AdapterDown:
    if error.cause is Cause.NOT_LET_IN:
        words = "Slack does not know the token. Copy it again (api.slack.com/apps, OAuth & Permissions) and set SLACK_BOT_TOKEN."
        return AdapterDown(words, fatal=True)
    return AdapterDown(f"Slack cannot be reached: {error.words}", wait_seconds=error.retry_after)
