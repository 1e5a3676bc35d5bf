"""The Slack app: events over Socket Mode or signed HTTP, each stored before it is acknowledged.

What comes, by a socket or through `door`, goes to `adapters.contract.intake`, and is acknowledged when that has come back. What one
text brings twice (`message` and `app_mention`, a redelivery) has one key: channel and ts. Sockets are kept by `sockets`, because the
library's client loses what comes by a socket that is being replaced.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import structlog
from aiohttp import web

from adapters.contract.chat import (
    AdapterSight,
    Attachment,
    CallFailed,
    Cause,
    ChatAddress,
    ChatIntake,
    ChatMessage,
    Doing,
)
from adapters.contract.files import UPLOAD_SECONDS, FileHosts, FileSource
from adapters.contract.intake import ACT_SECONDS, WayIn, in_words, key_of, raw_of
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.settings import revealed
from adapters.contract.supervision import (
    DOWN,
    NEEDS_A_PERSON,
    UP,
    AdapterDown,
    AllConnections,
    Connections,
    OtherGateway,
)
from adapters.slack.beside import LOOK_UP
from adapters.slack.errors import NOT_FOR_SOCKETS, OFF
from adapters.slack.inbound import (
    PLATFORM,
    MessageDeleted,
    Opened,
    PersonDid,
    Read,
    Table,
    by_a_bot,
    key_of_body,
    parties,
    prompts_of,
    read_body,
    table,
    whence,
)
from adapters.slack.missed import SlackGaps, number_of, place_of
from adapters.slack.owed import Owed
from adapters.slack.port import SlackPort
from adapters.slack.section import SlackSection
from adapters.slack.sockets import ALL, SWITCHED_OFF, InOrder, Sockets
from agent_core.ports import Clock

log = structlog.get_logger("slack")

DEAF_SECONDS = 40.0
SETTLE_SECONDS = 0.03
"""Slack tells by several sockets at once: for so long an event waits for one that was said before it."""
ANSWERED_SECONDS = 5.0
"""So late after a message of ours appeared, the call that made it has its answer."""
LEFT_SECONDS = 5.0
"""How often whoever has left its sockets says that it lives."""
STANDING_SECONDS = 15.0
"""How often it is noted that the connection stands: longer than a dead socket goes unnoticed."""


KEPT_SECONDS = 15.0
"""So long a connection is kept that nobody uses: much shorter than Slack keeps it, because what is sent by one that Slack has just ended may have come."""
FILE_DOMAINS = ("slack.com", "slack-files.com", "slack-gov.com")
"""Where `url_private` of a hosted file points (https://docs.slack.dev/reference/objects/file-object)."""


class _Behind(NotAccepted):
    """What was said before it comes first: it could not be stored, or is read just now, in this place."""

    def __init__(self, place: str = "") -> None:
        self.place = place
        super().__init__("what was said before it is stored first", NotAcceptedCode.STORAGE_AWAY)


class SlackAdapter:
    """One workspace. `run` it under supervision."""

    def __init__(self, settings: SlackSection, intake: ChatIntake, clock: Clock) -> None:
        from slack_sdk.web.async_client import AsyncWebClient

        self._settings = settings
        self._intake = intake
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{self.account}"
        self._spread = settings.spread and bool(settings.app_token)
        self.connections = settings.sockets if self._spread else 1
        self.held: Connections = AllConnections()
        # The library puts a method's name right behind the address.
        more: dict[str, Any] = {"base_url": f"{settings.api_base.rstrip('/')}/"} if settings.api_base else {}
        # The outbox is the one owner of retries.
        self._web: Any = AsyncWebClient(
            token=revealed(settings.bot_token),
            proxy=settings.proxy or None,
            timeout=round(UPLOAD_SECONDS),  # what is no file has a limit of its own
            retry_handlers=[],
            **more,
        )
        files = FileSource(
            FileHosts(FILE_DOMAINS, settings.api_base),
            {"Authorization": f"Bearer {revealed(settings.bot_token)}"},
            settings.proxy,
        )
        self._twin = OtherGateway("Slack", clock.monotonic(), expected=intake.several)
        self.port = SlackPort(
            self._web, files, streams=settings.streams, feedback=settings.feedback, sends=self._twin.sends
        )
        self._sockets: Sockets | None = None
        self._beside: set[asyncio.Task[None]] = set()
        """What is done beside taking in, while `run` runs."""
        self._looking: asyncio.Task[None] | None = None
        self._me = ""
        self._names: dict[str, str] = {}
        self._zones: dict[str, str] = {}
        self._tongues: dict[str, str] = {}
        self._taking = InOrder(SETTLE_SECONDS)
        self._owed = Owed(partial(self._take, owed=True), self._not_stored, self._aside)
        self._missed = SlackGaps(self.name, intake, self._web, self.port.asked, clock, self._late)
        self._last_life = clock.monotonic()
        self._way = WayIn(self.name, intake, clock)

    # ------------------------------------------------------------------ life

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[None]:
        """Connections to Slack are kept between calls: the library would make each anew for every call."""
        connector = aiohttp.TCPConnector(keepalive_timeout=KEPT_SECONDS)
        timeout, cookies = aiohttp.ClientTimeout(total=UPLOAD_SECONDS), aiohttp.DummyCookieJar()
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=cookies) as session:
            self._web.session = session
            try:
                yield
            finally:
                self._web.session = None

    @property
    def silent_seconds(self) -> float:
        """A socket that does not answer pings closes itself; so one that is open is life."""
        if self.any_works:
            return 0.0
        return self._clock.monotonic() - self._last_life

    @property
    def deaf_after_seconds(self) -> float:
        return DEAF_SECONDS

    @property
    def any_works(self) -> bool:
        """See `adapters.contract.supervision.SeveralConnections`. Without sockets, Slack calls us."""
        return not self._settings.app_token or (self._sockets is not None and self._sockets.alive > 0)

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        if state == UP:
            if not self.any_works:
                state, words = DOWN, "The connection to Slack is gone, and made anew."
            elif twin := self._twin.words(self._clock.monotonic()):
                state, words = NEEDS_A_PERSON, twin
        return AdapterSight(self.name, state, words, self._way.age_seconds, outbound)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled. Raises `AdapterDown`."""
        self._last_life = self._clock.monotonic()
        await self.stand()
        try:
            await self._missed.start(gap=not self._handed())
        except NotAccepted as away:
            raise AdapterDown(str(away)) from away
        self._aside(self._missed.run())
        self._aside(self._stand())
        try:
            await self._listen(up)
        finally:
            self._owed.clear()
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)

    def _handed(self) -> bool:
        """Whoever had our sockets went on until we have them, and others have some still."""
        if not self._spread:
            return False
        handed = [self.held.handed(number) for number in range(self.connections) if self.held.has(number)]
        return bool(handed) and all(handed)

    async def stand(self) -> None:
        """See `adapters.contract.supervision.Supervised`: learn who we are."""
        try:
            me, user = await self.port.told(self._web.auth_test(), "user_id")
        except CallFailed as error:
            raise _down(error) from error
        self._me = self._missed.me = self.port.me = user
        self.port.team = str(me.get("team_id") or "")

    async def _listen(self, up: Callable[[], None]) -> None:
        if not self._settings.app_token:
            up()
            await asyncio.Event().wait()
        while not await self._heard(up):
            # Another gateway may have our sockets by now, and Slack gives each event to any that is open; we can store none.
            self._owed.clear()
            known = asyncio.ensure_future(self.held.may_open())
            try:
                while not known.done():
                    self._lives()  # nothing is heard, and that is meant
                    await asyncio.wait({known}, timeout=LEFT_SECONDS)
            finally:
                known.cancel()
            up = self._gap  # they are still ours: else we would have been ended

    async def _heard(self, up: Callable[[], None]) -> bool:
        """Listen until cancelled; False as soon as it is doubtful whose the sockets are: they are closed then. Raises `AdapterDown`."""
        self._sockets = sockets = Sockets(
            self._settings.sockets,
            self._socket_url,
            self._take_in,
            proxy=self._settings.proxy,
            on_life=self._lives,
            on_gap=self._gap,
            on_hello=self._hello,
            held=self.held if self._spread else None,
        )
        tasks = [asyncio.ensure_future(sockets.run(up)), asyncio.ensure_future(self.held.doubted())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            heard = tasks[0].done()
            if heard:
                await tasks[0]
        except CallFailed as error:
            raise _unlinked(error) from error
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._sockets = None
            self._last_life = self._clock.monotonic()
        return heard

    async def _socket_url(self) -> str:
        opened = self._web.apps_connections_open(app_token=revealed(self._settings.app_token))
        _, url = await self.port.told(opened, "url")
        return url

    def _gap(self) -> None:
        """Something may have been said that nobody has heard; other gateways have heard more than we know."""
        if self._spread and self._intake.several:
            self._aside(self._missed.gap_of_all())
        else:
            self._missed.gap()

    def _hello(self, strangers: bool) -> None:
        """Who had our sockets may be suspended and have them still; spread, others have theirs by right."""
        if self._intake.several and not self._spread:
            self._missed.shares(strangers=strangers)

    def _lives(self) -> None:
        self._last_life = self._clock.monotonic()

    async def _stand(self) -> None:
        """What is stored while the connection stands was stored without a gap."""
        while True:
            await asyncio.sleep(STANDING_SECONDS)
            if self._sockets is not None and self._sockets.whole:
                self._missed.standing()

    def _aside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)
        return task

    # ------------------------------------------------------------------ in

    async def _take_in(self, body: object) -> bool:
        """Whether what Slack tells is in a table: only then it is acknowledged."""
        if not self._me:
            return False
        self._last_life = self._clock.monotonic()
        event = table(table(body).get("event"))
        self._whose(event)
        try:
            if by_a_bot(event, self._me):
                await self._missed.noticed(event)
            else:
                await self._take(body)
        except _Behind as behind:
            self._owed.put(event, body, behind.place)
            return False
        except NotAccepted as refused:
            self._not_stored(refused)
            self._way.waiting(refused, [lambda: self._message_of(body)])
            self._missed.owes(event)  # Slack gives up telling it after some minutes
            self._owed.put(event, body)
            return False
        return True

    def _not_stored(self, refused: NotAccepted) -> None:
        if not isinstance(refused, _Behind):
            log.warning("slack.not_stored", words=str(refused))

    def _whose(self, event: Table) -> None:
        """What appears by our own bot is looked at, one at a time, once the answer to the call that made it must have come."""
        plain = event.get("type") == "message" and event.get("user") == self._me and "files" not in event
        if plain and event.get("subtype") in (None, "bot_message") and (self._looking is None or self._looking.done()):
            self._looking = self._aside(self._look(event))

    async def _look(self, event: Table) -> None:
        ts = str(event.get("ts") or "")
        await asyncio.sleep(ANSWERED_SECONDS)
        if self._twin.sent(ts):
            return
        try:
            key = await self.port.key_at(str(event.get("channel")), str(event.get("thread_ts") or ""), ts)
        except CallFailed as error:
            log.info("slack.not_looked_at", words=error.words)
            return
        if key and self._twin.heard(key, self._clock.monotonic()):
            log.error("slack.two_gateways", account=self.account, chat=str(event.get("channel")))

    def _message_of(self, body: object) -> ChatMessage | None:
        read = read_body(body, self._me, self.account, self._settings.direct)
        return read.message if isinstance(read, PersonDid) else None

    async def _take(self, body: object, late: str | None = None, *, owed: bool = False) -> None:
        """Come back when it is in a table. `late` is put before the words of one that was read from the history; None: it came by itself.
        `owed`: it is what the others of its channel wait for."""
        direct = self._settings.direct

        await self._way.take(
            lambda: raw_of(key_of_body(body), body, lambda: whence(body, self._me, self.account, direct)),
            lambda: read_body(body, self._me, self.account, direct, late=late or ""),
            lambda read: self._act(read, late=late is not None),
            key=lambda read: key_of(read.message) if isinstance(read, PersonDid) else "",
            turn=nullcontext if late is not None else lambda: self._turn(table(body), owed=owed),
        )

    @asynccontextmanager
    async def _turn(self, told: Table, *, owed: bool) -> AsyncGenerator[None]:
        """What came by itself is taken in the order of what was said in its channel, and by its person. Raises `NotAccepted` if something else comes
        first."""
        event = table(told.get("event"))
        async with asyncio.timeout(ACT_SECONDS):
            is_next = await self._missed.before(event)
        if not is_next:
            raise _Behind(place_of(event))
        async with self._taking.turn(self._age(event), parties(told) or ALL):
            if not owed and self._owed.before(event):
                raise _Behind
            yield

    async def again(self, body: bytes) -> None:
        """See `adapters.contract.supervision.Supervised`."""
        await self._act(read_body(json.loads(body), self._me, self.account, self._settings.direct), late=None)

    def _age(self, event: Table) -> int:
        """When something was said: microseconds."""
        ts = str(event.get("ts") or event.get("event_ts") or "")
        return number_of(ts) if ts else self._clock.now_ms() * 1000

    async def _late(self, event: Table, late: str) -> None:
        """A message of the history."""
        await self._take({"event": event}, late)

    async def _act(self, read: Read, *, late: bool | None) -> bool:
        """Store what it means; whether it was a person's doing. `late`: whether it was read from the history; None: it was kept here."""
        match read:
            case PersonDid():
                await self._told(read, late)
                return True
            case MessageDeleted(key):
                await self._intake.removed(self.name, key)
            case Opened(channel):
                if self._settings.prompts:
                    self._aside(self._suggest(channel))
            case None:
                pass
        return False

    async def _told(self, told: PersonDid, late: bool | None) -> None:
        message, event = told.message, told.event
        person = message.origin.person
        name = person.name if told.named else await self._name(person.id)
        names = {one: await self._name(one) for one in told.mentioned}
        message = told.by(name, self._zones.get(person.id, ""), self._tongues.get(person.id, ""), names)
        message = await self._with_files(message)
        if event is None or event.get("type") == "agent_session_stopped":
            await self._intake.receive(message, None)
            if event is not None:
                # Slack's own stop button. The streams that it has ended already say so at their next call.
                self._aside(self._ready(str(event["channel"]), str(event["thread_ts"])))
            return
        cursor = None
        if late is not None and not message.edited:
            cursor = await self._missed.cursor(event, for_us=message.for_us, late=late)
        await self._intake.receive(message, cursor)
        if cursor is not None:
            self._missed.stored(event, late=late is True)

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

    async def _with_files(self, message: ChatMessage) -> ChatMessage:
        """With what Slack says of files of which it has told an id only, as of those from other workspaces; one of which it says nothing now is asked for
        again when it is fetched."""
        origin = message.origin
        if not any(one.ref.startswith(LOOK_UP) for one in origin.attachments):
            return message
        files = [await self._seen(one, origin.person.id) for one in origin.attachments]
        return replace(message, origin=replace(origin, attachments=tuple(files)))

    async def _seen(self, file: Attachment, person: str) -> Attachment:
        if not file.ref.startswith(LOOK_UP):
            return file
        try:
            return await self.port.looked_up(file.ref, person)
        except (CallFailed, TypeError, ValueError):  # what is the matter is told when it cannot be fetched
            return file

    async def _name(self, user: str) -> str:
        """A person's name, asked for once."""
        if not user:
            return "somebody"
        if user not in self._names:
            try:
                answer: Any = await self.port.asked(self._web.users_info(user=user, include_locale=True))
                profile = answer["user"]
                self._names[user] = str(profile.get("real_name") or profile.get("name") or user)
                self._zones[user] = str(profile.get("tz") or "")
                self._tongues[user] = str(profile.get("locale") or "")[:35]
            except CallFailed as error:
                log.info("slack.name_not_known", words=error.words)
                return user
            except Exception as error:  # noqa: BLE001 - what somebody said is worth more than the name
                log.info("slack.name_not_known", words=in_words(error))
                return user
        return self._names[user]

    # ------------------------------------------------------------------ HTTP

    def routes(self) -> list[web.RouteDef]:
        if self._settings.app_token:
            return []
        from adapters.slack.door import AppDoor  # and with it a framework

        door = AppDoor(revealed(self._settings.bot_token), revealed(self._settings.signing_secret), self._take_in)
        return [web.post("/slack/events", door.call)]


def _down(error: CallFailed) -> AdapterDown:
    if error.cause is Cause.NOT_LET_IN:
        words = (
            "Slack does not know the token. Copy it again (api.slack.com/apps, your app): the bot token from OAuth & Permissions "
            "into SLACK_BOT_TOKEN, the app-level token from Basic Information into SLACK_APP_TOKEN."
        )
        return AdapterDown(words, fatal=True)
    return AdapterDown(f"Slack cannot be reached: {error.words}", wait_seconds=error.retry_after)


def _unlinked(error: CallFailed) -> AdapterDown:
    """There is no socket to be had."""
    if error.words in OFF:
        return AdapterDown(SWITCHED_OFF, fatal=True)
    if error.words in NOT_FOR_SOCKETS:
        words = (
            "The app-level token may not open sockets. Make one with connections:write (api.slack.com/apps, your app, Basic Information, "
            "App-Level Tokens) and set SLACK_APP_TOKEN."
        )
        return AdapterDown(words, fatal=True)
    return _down(error)
