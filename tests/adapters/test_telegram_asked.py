"""What Telegram is asked beside messages, and its webhook: menus are set when they are others, a webhook is taken away only where we poll, a call is taken only with
the secret word, and what is said of it is of now."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import AdapterDown
from adapters.telegram import webhook as of_webhook
from adapters.telegram.adapter import MENUS, TelegramAdapter
from adapters.telegram.inbound import Me, Pressed
from adapters.telegram.platform import Telegram
from adapters.telegram.port import TelegramPort
from adapters.telegram.webhook import (
    MOST_LOOKS_FAILED,
    RECENT_SECONDS,
    SECRET_HEADER,
    TOLD_SECONDS,
    Webhook,
    unreachable_words,
)
from tests.adapters.test_port_calls import Told
from tests.store.support import FakeClock

AWAY = NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)
SECRET, PLACE = "the-secret-word-of-ours", "https://us.example"
HOOK: dict[str, Any] = {"webhook_url": PLACE, "webhook_secret": SecretStr(SECRET)}


class Intake(SimpleNamespace):
    """Keeps cursors, and takes messages."""

    several, ours = False, None

    def __init__(self) -> None:
        super().__init__(kept={}, taken=[], refuses=None, words="Stop it")

    def commands(self) -> tuple[Any, ...]:
        return (SimpleNamespace(name="stop", words=self.words),)

    async def cursor(self, _: str, channel: str) -> str | None:
        return self.kept.get(channel)

    async def skip(self, _: str, cursor: tuple[str, str]) -> None:
        self.kept[cursor[0]] = cursor[1]

    async def receive(self, message: object, _: object) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.taken.append(message)


def adapter(bot: Told, intake: Intake, **more: Any) -> TelegramAdapter:
    made = TelegramAdapter(Telegram(token=SecretStr("7:x"), **more), cast("Any", intake), FakeClock())
    made._bot = cast("Any", bot)
    made.port = TelegramPort(cast("Any", bot), cast("Any", None), drafts=True)
    made._me = Me("7", "us_bot")
    return made


def asked(bot: Told, name: str) -> list[dict[str, Any]]:
    return [told for called, told in bot.calls if called == name]


async def test_menus_in_all_languages_are_set_once_and_again_when_they_are_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapters.telegram.adapter.translated", lambda: ("de", "es"))
    bot, intake = Told(()), Intake()
    made = adapter(bot, intake)
    await made._set_menus()
    first = len(asked(bot, "set_my_commands"))
    assert first == 2
    assert MENUS in intake.kept
    await made._set_menus()
    assert len(asked(bot, "set_my_commands")) == first
    intake.words = "Stop all of it"
    await made._set_menus()
    assert len(asked(bot, "set_my_commands")) == 2 * first


@pytest.mark.parametrize("polls", [True, False])
async def test_a_webhook_is_taken_away_only_where_we_poll_and_what_waits_stays(*, polls: bool) -> None:
    bot = Told(SimpleNamespace(url="https://somewhere.example"))
    await adapter(bot, Intake(), **({} if polls else HOOK))._remove_webhook()
    assert asked(bot, "delete_webhook") == ([{"drop_pending_updates": False}] if polls else [])
    bot = Told(SimpleNamespace(url=""))
    await adapter(bot, Intake())._remove_webhook()
    assert asked(bot, "delete_webhook") == [], "there is none"


async def test_a_press_is_stored_whatever_becomes_of_its_answer() -> None:
    slow = asyncio.Event()

    class Slow(Told):
        async def answer_callback_query(self, *_: object) -> None:
            await slow.wait()

    intake = Intake()
    made = adapter(Slow(None), intake)
    message = cast("Any", SimpleNamespace())
    async with asyncio.timeout(10):
        assert await made._act(Pressed("q", message))
    assert intake.taken == [message]
    assert len(made._presses) == 1
    slow.set()
    await asyncio.gather(*made._presses)
    await asyncio.sleep(0)
    assert made._presses == set()


@pytest.mark.parametrize("cause", [Cause.NOT_LET_IN, Cause.NONE])
def test_who_is_not_let_in_needs_a_person_and_who_is_to_wait_waits(cause: Cause) -> None:
    down = adapter(Told(None), Intake())._down(CallFailed(Fate.TOO_FAST, "wait", cause=cause, retry_after=7))
    assert isinstance(down, AdapterDown)
    assert (down.fatal, down.wait_seconds) == ((True, 0) if cause is Cause.NOT_LET_IN else (False, 7))


def test_what_cannot_hear_is_not_up_although_it_speaks() -> None:
    made = adapter(Told(None), Intake())
    assert made.sight("up", "", None).state == "up"
    made._polling.words = "Somebody else polls."
    assert (made.sight("up", "", None).state, made.sight("up", "", None).words) == ("down", "Somebody else polls.")
    assert made.sight("starting", "It begins.", None).state == "starting"
    assert made.sight("starting", "It begins.", None).words == "It begins."


async def test_marks_of_what_was_stored_are_kept_only_until_all_of_its_answer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adapters.telegram.adapter.AGAIN_SECONDS", 0.0)
    made, refuses = adapter(Told(None), Intake()), {2}

    async def take(update: Any) -> None:
        if update["update_id"] in refuses:
            raise AWAY

    def quiet(*_: object) -> None:
        """Nobody is told."""

    made._take = take
    made._waiting = cast("Any", quiet)
    updates = [{"update_id": n, "message": {"chat": {"id": n}}} for n in range(4)]
    assert not await made._all_taken(updates)
    assert len(made._taken) == 3
    refuses.clear()
    assert await made._all_taken(updates)
    assert made._taken == set()


async def test_nothing_is_taken_before_it_is_known_who_we_are() -> None:
    made = adapter(Told(None), Intake())
    made._me = None
    assert not await made._taken_in({"update_id": 1})


# ---------------------------------------------------------------------- the webhook


class Hook:
    def __init__(self) -> None:
        self.clock, self.taken, self.takes = FakeClock(), list[object](), True
        self.bot = Told(None)
        settings = Telegram(token=SecretStr("7:x"), **HOOK)
        self.made = Webhook(settings, cast("Any", self.bot), self.clock, self._take)

    async def _take(self, update: object) -> bool:
        self.taken.append(update)
        return self.takes

    async def call(self, secret: str, body: bytes, length: int | None = None) -> int:
        async def read() -> bytes:
            return body

        request = SimpleNamespace(headers={SECRET_HEADER: secret}, content_length=length, read=read)
        return (await self.made.call(cast("Any", request))).status


async def test_a_call_is_taken_with_the_secret_word_alone_and_confirmed_when_it_is_in_a_table() -> None:
    hook = Hook()
    for wrong in ("", "the-secret-word", f"{SECRET}x", "ü"):
        assert await hook.call(wrong, b"{}") == 403
    assert await hook.call(SECRET, b"{}", length=1_000_001) == 413
    assert hook.taken == []
    assert await hook.call(SECRET, b'{"update_id": 1}') == 200
    hook.takes = False
    assert await hook.call(SECRET, b"no json") == 503
    assert hook.taken == [{"update_id": 1}, "no json"]


async def test_a_webhook_is_set_with_its_word_for_one_call_at_a_time_and_drops_nothing() -> None:
    hook = Hook()
    hook.made.deaf_words = "It was taken away."
    await hook.made.set()
    (told,) = asked(hook.bot, "set_webhook")
    assert told["secret_token"] == SECRET
    assert told["max_connections"] == 1, "in their order"
    assert told["drop_pending_updates"] is False
    assert {*told["allowed_updates"]} == {"message", "edited_message", "callback_query"}
    assert hook.made.deaf_words == ""


def info(url: str, waiting: int = 0, age: float | None = None, now: datetime | None = None) -> Any:
    at = None if age is None else (now or datetime.now(UTC)) - timedelta(seconds=age)
    return SimpleNamespace(url=url, pending_update_count=waiting, last_error_date=at, last_error_message="timed out")


@pytest.mark.parametrize(
    ("waiting", "age", "told"), [(3, 10, True), (0, 10, False), (3, None, False), (3, RECENT_SECONDS + 1, False)]
)
def test_that_telegram_cannot_call_is_told_while_something_waits_and_the_error_is_of_now(
    waiting: int, age: float | None, *, told: bool
) -> None:
    now = datetime(2026, 11, 27, tzinfo=UTC)
    words = unreachable_words(info("https://us.example/telegram/7", waiting, age, now), now)
    assert ("us.example" in words and "timed out" in words) is told


async def test_a_webhook_that_was_taken_away_is_told_for_a_while_and_counted_while_it_goes_on() -> None:
    hook = Hook()
    ours = f"{PLACE}/telegram/7"
    assert not hook.made._looked(info(ours))
    assert hook.made.words == ""
    assert hook.made._looked(info(""))
    assert "taken away" in hook.made.words
    assert "times" not in hook.made.words
    hook.clock.now += 60_000
    assert hook.made._looked(info("https://them.example/x"))
    assert "them.example" in hook.made.words
    assert "(2 times)" in hook.made.words
    hook.clock.now += round(TOLD_SECONDS * 1000) + 1
    assert hook.made.words == ""
    assert hook.made._looked(info(""))
    assert "times" not in hook.made.words, "that is another time"


@pytest.mark.parametrize("between", [True, False])
async def test_only_looks_that_fail_in_a_row_end_the_connection(
    monkeypatch: pytest.MonkeyPatch, *, between: bool
) -> None:
    """And a look that shows nothing amiss begins the count anew."""
    hook, looks = Hook(), 0
    real_sleep = asyncio.sleep

    async def sleep(_: float) -> None:
        await real_sleep(0)

    class Bot(Told):
        async def get_webhook_info(self) -> Any:
            nonlocal looks
            looks += 1
            if between and looks % MOST_LOOKS_FAILED == 0:
                if looks > 5 * MOST_LOOKS_FAILED:
                    raise asyncio.CancelledError
                return info(f"{PLACE}/telegram/7")
            raise OSError("no network")

    async def answered(call: Any) -> Any:
        try:
            return await call
        except OSError as error:
            raise CallFailed(Fate.UNKNOWN, "no network") from error

    hook.made._bot = cast("Any", Bot(None))
    monkeypatch.setattr(of_webhook.asyncio, "sleep", sleep)
    monkeypatch.setattr(TelegramPort, "asked", staticmethod(answered))
    with pytest.raises(asyncio.CancelledError if between else CallFailed):
        await hook.made.watch()
    assert looks == (5 * MOST_LOOKS_FAILED + MOST_LOOKS_FAILED if between else MOST_LOOKS_FAILED)


@pytest.mark.parametrize("fate", Fate)
async def test_what_the_bot_can_live_without_is_passed_over_only_where_the_server_does_not_do_it(fate: Fate) -> None:
    async def refused() -> None:
        raise CallFailed(fate, "it is so")

    made, passed_over = adapter(Told(()), Intake()), True
    try:
        await made._tried("menus", refused)
    except AdapterDown:
        passed_over = False
    assert passed_over is (fate is Fate.REFUSED)
