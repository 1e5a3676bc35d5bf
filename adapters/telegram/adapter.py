"""The Telegram bot: asks for updates (or is sent them), has them stored, and only then confirms them.

The library's own `Updater` is not used: it confirms what it holds only in memory. Here what an answer held is confirmed when all of it
is in a table (`adapters.contract.intake`), by its own ids (`polling`); what is not confirmed stays with Telegram for 24 hours.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import warnings
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from adapters.contract.chat import AdapterSight, CallFailed, Cause, ChatIntake, ChatMessage, CommandDoc, Fate
from adapters.contract.files import FileHosts, FileSource
from adapters.contract.intake import WayIn, digest_of, key_of, raw_of
from adapters.contract.notaccepted import NotAccepted
from adapters.contract.settings import revealed
from adapters.contract.supervision import AdapterDown
from adapters.telegram.inbound import (
    PLATFORM,
    Me,
    Moved,
    Pressed,
    Update,
    as_table,
    id_of,
    parties,
    read_update,
    whence,
)
from adapters.telegram.polling import Polling
from adapters.telegram.port import TelegramPort
from adapters.telegram.section import TelegramSection
from adapters.telegram.webhook import Webhook
from agent_core.ports import Clock
from agent_core.text.tongue import speak, speaking, spelled, translated

if TYPE_CHECKING:
    from telegram import Bot

    from adapters.telegram.wire import Wire

log = structlog.get_logger("telegram")

AGAIN_SECONDS = 1.0
"""After so long what cannot be stored is tried again."""
MENUS = "menus"
"""The channel by whose cursor it is known which menus were set."""


class TelegramAdapter:
    """One bot. `run` it under supervision."""

    def __init__(self, settings: TelegramSection, intake: ChatIntake, clock: Clock) -> None:
        self._settings = settings
        self._intake = intake
        self._clock = clock
        self.account = settings.account
        self.name = f"{PLATFORM}/{self.account}"
        self._bot, self._sending = _bot(settings, read_seconds=20)
        self._poller, self._poll_connections = _bot(settings, read_seconds=settings.poll_seconds + 10)
        files = FileSource(FileHosts((), settings.api_base), proxy=settings.proxy)
        self.port = TelegramPort(self._bot, files, drafts=settings.drafts)
        self._me: Me | None = None
        self._way = WayIn(self.name, intake, clock)
        self._polling = Polling(
            settings, self._poller, clock, self._all_taken, self._introduce, intake.ours, several=intake.several
        )
        self._webhook = Webhook(settings, self._bot, clock, self._taken_in)
        self._taken: set[str] = set()
        """Marks of updates that are in a table, and are not confirmed because one behind them is not."""
        self._presses: set[asyncio.Task[None]] = set()
        """Answers to presses of buttons that are on their way; over when `run` is."""

    # ------------------------------------------------------------------ life

    def opened(self) -> AbstractAsyncContextManager[None]:
        """Connections for sending, open for the block: what is to be delivered does not wait for the polling."""
        return _Opened(self._sending)

    async def run(self, up: Callable[[], None]) -> None:
        """Serve until cancelled; `up` is called when it works. Raises `AdapterDown` with words."""
        self._polling.alive()
        async with _Opened(self._poll_connections):
            await self._introduce()
            try:
                await self._serve(up)
            finally:
                for task in self._presses:
                    task.cancel()
                await asyncio.gather(*self._presses, return_exceptions=True)

    async def _serve(self, up: Callable[[], None]) -> None:
        if self._settings.webhook_url:
            try:
                await self._webhook.set()
                up()
                await self._webhook.watch()
            except CallFailed as error:
                raise self._down(error) from error
        up()
        await self._polling.run()

    async def _introduce(self) -> None:
        """Learn who we are, and put our commands into the menu."""
        me = await self._known()
        await self._tried("webhook", self._remove_webhook)
        await self._tried("menu", self._set_menu)
        log.info("telegram.ready", bot=f"@{me.username}", account=self.account)

    async def _known(self) -> Me:
        """Learn who we are. Raises `AdapterDown`."""
        try:
            found = await self.port.asked(self._bot.get_me())
        except CallFailed as error:
            raise self._down(error) from error
        self._me = Me(str(found.id), found.username or "")
        return self._me

    async def _tried(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do what the bot can live without, on a server that does not know it."""
        try:
            await work()
        except CallFailed as error:
            if error.fate is not Fate.REFUSED:
                raise self._down(error) from error
            log.warning("telegram.not_done", what=what, words=error.words)

    async def _remove_webhook(self) -> None:
        """A webhook that is set would take all updates."""
        waiting = await self.port.asked(self._bot.get_webhook_info())
        if waiting.url and not self._settings.webhook_url:
            log.info("telegram.webhook_removed", was=waiting.url)
            await self.port.asked(self._bot.delete_webhook(drop_pending_updates=False))

    async def _set_menu(self) -> None:
        from telegram import BotCommand

        menu = [BotCommand(name, words[:256]) for name, words in _in_language("", self._intake.commands())]
        known = await self.port.asked(self._bot.get_my_commands())
        if list(known) != menu:
            await self.port.asked(self._bot.set_my_commands(menu))
        await self._set_menus()

    async def _set_menus(self) -> None:
        """The same in other languages, if they are others than the last time."""
        from telegram import BotCommand

        menus = {tag: _in_language(tag, self._intake.commands()) for tag in translated()}
        mark = hashlib.sha256(repr(menus).encode()).hexdigest()
        if not menus or await self._intake.cursor(self.name, MENUS) == mark:
            return
        for tag, commands in menus.items():
            menu = [BotCommand(name, words[:256]) for name, words in commands]
            await self.port.asked(self._bot.set_my_commands(menu, language_code=tag))
        with suppress(NotAccepted):  # then they are set once more
            await self._intake.skip(self.name, (MENUS, mark))

    def _down(self, error: CallFailed) -> AdapterDown:
        if error.cause is Cause.NOT_LET_IN:
            words = (
                "Telegram does not know the bot's token. Take it from @BotFather again (/mybots, API Token) and set "
                "TELEGRAM_BOT_TOKEN."
            )
            return AdapterDown(words, fatal=True)
        return AdapterDown(f"Telegram cannot be reached: {error.words}", wait_seconds=error.retry_after)

    @property
    def silent_seconds(self) -> float:
        """How long there was no sign of life from the platform."""
        return 0.0 if self._settings.webhook_url else self._polling.silent_seconds

    @property
    def deaf_after_seconds(self) -> float:
        return self._polling.deaf_after_seconds

    def sight(self, state: str, words: str, outbound: float | None) -> AdapterSight:
        """For `status`. What cannot hear is not up, even if it can speak."""
        deaf = self._polling.words or self._webhook.deaf_words
        said = words or deaf or self._webhook.words
        return AdapterSight(
            self.name, "down" if deaf and state == "up" else state, said, self._way.age_seconds, outbound
        )

    def routes(self) -> list[web.RouteDef]:
        return self._webhook.routes() if self._settings.webhook_url else []

    # ------------------------------------------------------------------ updates

    async def _all_taken(self, updates: Sequence[object]) -> bool:
        """Have updates stored: those of one chat, and of one person, one after the other; others together, so that they share commits. False if one
        cannot be: then none of them is confirmed, and after a moment they are asked for again."""
        latest: dict[str, asyncio.Task[NotAccepted | None]] = {}
        async with asyncio.TaskGroup() as group:
            for update in updates:
                whose = parties(update) or {""}
                before = [latest[one] for one in whose if one in latest]
                latest |= dict.fromkeys(whose, group.create_task(self._taken_behind(before, update)))
        refused = next((why for one in latest.values() if (why := one.result()) is not None), None)
        if refused is None:
            self._taken.clear()
            return True
        self._waiting(refused, [one for one in updates if digest_of(one) not in self._taken])
        await asyncio.sleep(AGAIN_SECONDS)
        return False

    async def _taken_behind(
        self, before: Sequence[asyncio.Task[NotAccepted | None]], update: object
    ) -> NotAccepted | None:
        """Why an update is in no table; None if it is. It is not even tried if one of those `before` it is in none."""
        mark = digest_of(update)
        for one in before:
            if (refused := await one) is not None:
                return refused
        if mark in self._taken or (refused := await self._refused(update)) is None:
            self._taken.add(mark)
            return None
        return refused

    async def _taken_in(self, update: object) -> bool:
        """Whether an update is in a table; if it has to come again, its chat is told."""
        if self._me is None:
            return False
        refused = await self._refused(update)
        if refused is not None:
            self._waiting(refused, [update])
        return refused is None

    async def _refused(self, update: object) -> NotAccepted | None:
        try:
            await self._take(update)
        except NotAccepted as refused:
            return refused
        return None

    def _waiting(self, refused: NotAccepted, updates: Sequence[object]) -> None:
        """Chats whose updates wait for the storage are told."""
        log.warning("telegram.not_stored", words=str(refused))
        me = self._me
        assert me is not None

        def said(update: object) -> ChatMessage | None:
            read = read_update(as_table(update), me)
            return read if isinstance(read, ChatMessage) else None

        self._way.waiting(refused, (partial(said, update) for update in updates))

    async def _take(self, update: object) -> None:
        """Come back when it is in a table."""
        me, number = self._me, id_of(update)
        assert me is not None
        # Telegram chooses numbers anew now and then, so that a number alone may name two updates.
        key = "" if number is None else f"update:{number}:{digest_of(update)}"
        await self._way.take(
            lambda: raw_of(key, update, lambda: whence(as_table(update), me)),
            lambda: read_update(as_table(update), me),
            self._act,
            key=lambda read: key_of(
                read.message if isinstance(read, Pressed) else None if isinstance(read, Moved) else read
            ),
        )

    async def stand(self) -> None:
        """See `adapters.contract.supervision.Supervised`: sending needs no more than what is open."""
        await self._known()

    async def again(self, body: bytes) -> None:
        """See `adapters.contract.supervision.Supervised`."""
        assert self._me is not None
        await self._act(read_update(as_table(json.loads(body)), self._me))

    async def _act(self, read: Update) -> bool:
        """Store what an update means; whether it was a person's doing. There is no position to store with it (see `polling`)."""
        match read:
            case None:
                return False
            case Moved():
                await self._intake.moved(PLATFORM, self.account, read.old, read.new)
                return False
            case Pressed():
                self._answer(read.query)
                await self._intake.receive(read.message, None)
            case _:
                await self._intake.receive(read, None)
        return True

    def _answer(self, query: str) -> None:
        """Let the pressed button stop spinning; nobody waits for that."""
        task = asyncio.create_task(self._try_answer(query), name="telegram press")
        self._presses.add(task)
        task.add_done_callback(self._presses.discard)

    async def _try_answer(self, query: str) -> None:
        try:
            await self.port.answer_press(query)
        except CallFailed as error:
            log.debug("telegram.press_not_answered", words=error.words)


class _Opened(AbstractAsyncContextManager[None]):
    """A bot whose connections are open. The library's own way would also ask who it is, and raise its own errors."""

    def __init__(self, requests: Sequence[Wire]) -> None:
        self._requests = requests

    async def __aenter__(self) -> None:
        for request in self._requests:
            await request.initialize()

    async def __aexit__(self, *_: object) -> None:
        for request in self._requests:
            await request.shutdown()


def _bot(settings: TelegramSection, *, read_seconds: float) -> tuple[Bot, tuple[Wire, ...]]:
    """A bot and its connections (updates are asked for by one of its own)."""
    from adapters.telegram.library import Bot
    from adapters.telegram.wire import Wire

    # The library's own method would read all updates at once, and one malformed one would hide the others.
    warnings.filterwarnings("ignore", "Please use 'Bot.getUpdates'")
    base = settings.api_base.rstrip("/")
    sending, polling = (Wire(base, read_seconds=read_seconds, proxy=settings.proxy) for _ in range(2))
    bot = Bot(
        revealed(settings.token) or "none",  # the library raises for an empty one; it is told by `amiss`
        base_url=f"{base}/bot",
        base_file_url=f"{base}/file/bot",
        request=sending,
        get_updates_request=polling,
    )
    return bot, (sending, polling)


def _in_language(language: str, commands: Sequence[CommandDoc]) -> list[tuple[str, str]]:
    """Commands by name, with what they do."""
    with speaking(language):
        return [(one.name, spelled(speak(one.words))) for one in commands]
