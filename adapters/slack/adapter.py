"""The Slack app: events over Socket Mode or signed HTTP, each stored before it is acknowledged.

Bolt acknowledges events before their handler has run; here everything is taken by a middleware that stores first and answers
then, so that an event whose storing failed is delivered again. What one text brings twice (`message` and `app_mention`, a
redelivery) has one key: channel and ts. Sockets are kept by `sockets`, because the library's client loses what comes by a socket
that is being replaced.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web

from adapters.base import NotAccepted
from adapters.carried import FileSource
from adapters.chat import AdapterSight, CallFailed, Cause, ChatAddress, ChatDesk, Doing
from adapters.filehosts import FileHosts
from adapters.inorder import InOrder
from adapters.slack.inbound import (
    PLATFORM,
    Direct,
    Table,
    deleted_ts,
    prompts_of,
    read_command,
    read_message,
    read_press,
    read_stop,
    table,
    user_of,
)
from adapters.slack.missed import Missed, number_of
from adapters.slack.port import SlackPort
from adapters.slack.sockets import Sockets
from adapters.supervision import AdapterDown
from agent_core.ports import Clock

if TYPE_CHECKING:
    from slack_bolt import BoltResponse

log = structlog.get_logger("slack")

DEAF_SECONDS = 40.0
SETTLE_SECONDS = 0.03
"""Slack tells by several sockets at once: for so long an event waits for one that was said before it."""
STANDING_SECONDS = 15.0
"""How often it is noted that the connection stands: longer than a dead socket goes unnoticed."""


FILE_DOMAINS = ("slack.com", "slack-files.com", "slack-gov.com")
"""Where `url_private` of a hosted file points (https://docs.slack.dev/reference/objects/file-object)."""


@dataclass(frozen=True, slots=True)
class SlackSettings:
    """What the configuration says about the app."""

    bot_token: str = field(repr=False)
    app_token: str = field(default="", repr=False)
    """For Socket Mode; without it, Slack calls us."""
    signing_secret: str = field(default="", repr=False)
    api_base: str = ""
    proxy: str = ""
    sockets: int = 2
    direct: Direct = Direct.ONE
    streams: bool = True
    feedback: bool = True
    prompts: tuple[str, ...] = ()

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
        # The library puts a method's name right behind the address.
        more: dict[str, Any] = {"base_url": f"{settings.api_base.rstrip('/')}/"} if settings.api_base else {}
        # The outbox is the one owner of retries.
        self._web: Any = AsyncWebClient(
            token=settings.bot_token, proxy=settings.proxy or None, timeout=20, retry_handlers=[], **more
        )
        files = FileSource(
            FileHosts(FILE_DOMAINS, settings.api_base),
            {"Authorization": f"Bearer {settings.bot_token}"},
            settings.proxy,
        )
        self.port = SlackPort(self._web, files, streams=settings.streams, feedback=settings.feedback)
        self._app: Any = None
        self._sockets: Sockets | None = None
        self._beside: set[asyncio.Task[None]] = set()
        """What is done beside taking in, while `run` runs."""
        self._me = ""
        self._names: dict[str, str] = {}
        self._taking = InOrder(SETTLE_SECONDS)
        self._missed = Missed(self.name, desk, self._web, self.port.asked, clock, self._late)
        self._last_life = clock.monotonic()
        self._last_inbound: float | None = None

    # ------------------------------------------------------------------ life

    def opened(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def _made_app(self) -> Any:
        from slack_bolt.app.async_app import AsyncApp

        logging.getLogger("slack_bolt.AsyncApp").addFilter(_is_news)
        secret = self._settings.signing_secret or "unused"
        return AsyncApp(client=self._web, signing_secret=secret, process_before_response=True)

    @property
    def silent_seconds(self) -> float:
        """A socket that does not answer pings closes itself; so one that is open is life."""
        if not self._settings.app_token or (self._sockets is not None and self._sockets.alive):
            return 0.0
        return self._clock.monotonic() - self._last_life

    @property
    def deaf_after_seconds(self) -> float:
        return DEAF_SECONDS

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        inbound = None if self._last_inbound is None else self._clock.monotonic() - self._last_inbound
        return AdapterSight(self.name, state, words, inbound, outbound)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled. Raises `AdapterDown`."""
        self._last_life = self._clock.monotonic()
        try:
            me = await self.port.asked(self._web.auth_test())
        except CallFailed as error:
            raise _down(error) from error
        self._me = self._missed.me = str(me["user_id"])
        self.port.team = str(me.get("team_id") or "")
        self._app = self._made_app()
        self._app.middleware(self._take_in)
        await self._missed.start()
        self._aside(self._missed.run())
        self._aside(self._stand())
        try:
            await self._listen(up)
        finally:
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)

    async def _listen(self, up: Callable[[], None]) -> None:
        if not self._settings.app_token:
            up()
            await asyncio.Event().wait()
        self._sockets = Sockets(
            self._settings.sockets,
            self._socket_url,
            self._envelope,
            proxy=self._settings.proxy,
            on_life=self._lives,
            on_gap=self._missed.gap,
        )
        try:
            await self._sockets.run(up)
        except CallFailed as error:
            raise _down(error) from error
        finally:
            self._sockets = None
            self._last_life = self._clock.monotonic()

    async def _socket_url(self) -> str:
        answer: Any = await self.port.asked(self._web.apps_connections_open(app_token=self._settings.app_token))
        return str(answer["url"])

    def _lives(self) -> None:
        self._last_life = self._clock.monotonic()

    async def _stand(self) -> None:
        """What is stored while the connection stands was stored without a gap."""
        while True:
            await asyncio.sleep(STANDING_SECONDS)
            if self._sockets is not None and self._sockets.whole:
                self._missed.standing()

    def _aside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    async def _envelope(self, payload: Table) -> bool:
        """What came by a socket, through Bolt as what comes by HTTP does; whether it is stored."""
        from slack_bolt.request.async_request import AsyncBoltRequest

        response = await self._app.async_dispatch(AsyncBoltRequest(body=payload, mode="socket_mode"))
        return int(response.status) == 200

    # ------------------------------------------------------------------ in

    async def _take_in(self, body: dict[str, Any], next: Any) -> BoltResponse:  # noqa: A002, ARG002 - bolt's names
        """Everything that Slack tells: stored, and then acknowledged."""
        from slack_bolt import BoltResponse

        self._last_life = self._clock.monotonic()
        try:
            event = table(body.get("event"))
            if not await self._missed.before(event):
                return BoltResponse(status=503)
            async with self._taking.turn(self._age(event)):
                await self._take(body)
        except NotAccepted as refused:
            log.warning("slack.not_stored", words=str(refused))
            return BoltResponse(status=503)  # not acknowledged: it comes again
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            log.warning("slack.odd_event", error=f"{type(error).__name__}: {error}")
        return BoltResponse(status=200)

    def _age(self, event: Table) -> int:
        """When something was said: microseconds."""
        ts = str(event.get("ts") or event.get("event_ts") or "")
        return number_of(ts) if ts else self._clock.now_ms() * 1000

    async def _take(self, body: dict[str, Any]) -> None:
        if "command" in body:
            self._last_inbound = self._clock.monotonic()
            await self._desk.receive(read_command(body, self.account), None)
        elif body.get("type") == "block_actions":
            if (pressed := read_press(body, self.account, self._settings.direct)) is not None:
                self._last_inbound = self._clock.monotonic()
                await self._desk.receive(pressed, None)
        elif event := table(body.get("event")):
            await self._event(event)

    async def _late(self, event: Table, late: str) -> None:
        """A message of the history."""
        await self._message(event, late)

    async def _event(self, event: Table) -> None:
        match event.get("type"):
            case "message" | "app_mention":
                await self._message(event)
            case "agent_session_stopped":
                await self._stopped(event)
            case "app_home_opened" if event.get("tab") == "messages" and self._settings.prompts:
                self._aside(self._suggest(str(event["channel"])))
            case _:
                pass

    async def _message(self, event: Table, late: str | None = None) -> None:
        """`late` is put before the words of one that was read from the history; None: it came by itself."""
        if (deleted := deleted_ts(event)) is not None:
            await self._desk.removed(self.name, f"{event['channel']}:{deleted}")
            return
        name = await self._name(user_of(event))
        read = read_message(event, self._me, self.account, name, late=late or "", direct=self._settings.direct)
        if read is None:
            return
        self._last_inbound = self._clock.monotonic()
        was_read = late is not None
        cursor = None if read.edited else await self._missed.cursor(event, for_us=read.for_us, late=was_read)
        await self._desk.receive(read, cursor)
        if cursor is not None:
            self._missed.stored(event, late=was_read)

    async def _stopped(self, event: Table) -> None:
        """Slack's own stop button. The streams that it has ended already say so at their next call."""
        self._last_inbound = self._clock.monotonic()
        name = await self._name(str(event["user"]))
        await self._desk.receive(read_stop(event, self.account, name, self._settings.direct), None)
        self._aside(self._ready(str(event["channel"]), str(event["thread_ts"])))

    async def _ready(self, channel: str, thread: str) -> None:
        """Slack leaves it to the app to say that it does not work any more, also if nothing was running."""
        try:
            await self.port.doing(ChatAddress(PLATFORM, self.account, channel), thread, Doing.READY, "")
        except CallFailed as error:
            log.info("slack.status_not_shown", words=error.words)

    async def _suggest(self, channel: str) -> None:
        """Suggestions for somebody who opens the app's messages."""
        prompts = prompts_of(self._settings.prompts)
        try:
            await self.port.asked(self._web.assistant_threads_setSuggestedPrompts(channel_id=channel, prompts=prompts))
        except CallFailed as error:
            log.info("slack.prompts_not_shown", words=error.words)

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
        words = (
            "Slack does not know the token. Copy it again (api.slack.com/apps, your app): the bot token from OAuth & Permissions "
            "into SLACK_BOT_TOKEN, the app-level token from Basic Information into SLACK_APP_TOKEN."
        )
        return AdapterDown(words, fatal=True)
    return AdapterDown(f"Slack cannot be reached: {error.words}", wait_seconds=error.retry_after)


def _is_news(record: logging.LogRecord) -> bool:
    """Not that the client's token is taken and not the environment's, of which bolt warns at each start: they are the same."""
    from slack_bolt.logger.messages import warning_client_prioritized_and_token_skipped

    return record.getMessage() != warning_client_prioritized_and_token_skipped()
