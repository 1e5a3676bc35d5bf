"""How Slack's app takes what it is told: what is read, kept or changed moves no mark that it should not, people are asked for once, and a gap is looked into with
what others have stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pydantic import SecretStr

from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.contract.supervision import AdapterDown
from adapters.slack import adapter as of_slack
from adapters.slack.adapter import SlackAdapter, _Behind
from adapters.slack.inbound import PersonDid, deleted_ts, read_body, read_press
from adapters.slack.platform import Slack
from adapters.slack.sockets import ALL
from tests.adapters.test_port_calls import Answer, Told
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

MENTION = {"type": "message", "channel": "C1", "ts": "5.0", "user": "U1", "text": "<@UBOT> hello"}


class Intake(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(several=False, taken=[])

    async def receive(self, message: Any, cursor: object) -> None:
        self.taken.append((message, cursor))


class Missed(SimpleNamespace):
    """The gaps, as far as they are told."""

    def __init__(self) -> None:
        super().__init__(done=[], next=True)

    async def cursor(self, event: Any, *, for_us: bool, late: bool) -> tuple[str, str] | None:
        del for_us, late
        return ("C1", event["ts"])

    def stored(self, event: Any, *, late: bool) -> None:
        self.done.append((event["ts"], late))

    def gap(self) -> None:
        self.done.append("gap")

    async def gap_of_all(self) -> None:
        self.done.append("gap of all")

    async def before(self, event: Any) -> bool:
        del event
        return self.next


PERSON = Answer({"user": {"real_name": "Ada", "tz": "Europe/Vienna", "locale": "de-AT"}})


def adapter(**more: Any) -> tuple[SlackAdapter, Intake, Missed, Told]:
    intake, missed, web = Intake(), Missed(), Told(PERSON)
    given: dict[str, Any] = {"bot_token": SecretStr("xoxb-1"), "app_token": SecretStr("xapp-1"), **more}
    made = SlackAdapter(Slack(**given), cast("Any", intake), FakeClock())
    made._me, made._web, made._missed = "UBOT", web, cast("Any", missed)
    return made, intake, missed, web


def read(event: dict[str, Any]) -> PersonDid:
    found = read_body({"event": event}, "UBOT", "T1")
    assert isinstance(found, PersonDid)
    return found


CHANGED = {
    "type": "message", "subtype": "message_changed", "channel": "C1", "ts": "9.0",
    "message": MENTION, "previous_message": {**MENTION, "text": "hello"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "late", "moves"),
    [(MENTION, False, True), (MENTION, True, True), (MENTION, None, False), (CHANGED, False, False)],
)
async def test_a_mark_moves_with_what_was_said_and_not_with_what_was_changed_or_kept(
    event: dict[str, Any], late: bool | None, *, moves: bool
) -> None:
    made, intake, missed, _ = adapter()
    await made._told(read(event), late)
    ((message, cursor),) = intake.taken
    assert message.text == "hello"
    assert cursor == (("C1", "5.0") if moves else None)
    assert missed.done == ([("5.0", late)] if moves else [])


async def test_a_person_is_asked_for_once_and_is_known_with_zone_and_language() -> None:
    made, intake, _, web = adapter()
    for _ in range(2):
        await made._told(read(MENTION), False)
    assert len(web.calls) == 1
    person = intake.taken[-1][0].origin.person
    assert (person.name, person.zone, person.language) == ("Ada", "Europe/Vienna", "de-AT")


@pytest.mark.parametrize("error", [CallFailed(Fate.TOO_FAST, "wait"), KeyError("odd")])
async def test_a_person_who_cannot_be_asked_for_now_is_asked_for_the_next_time(error: Exception) -> None:
    made, intake, _, web = adapter()
    web.fails = {"users_info": error}
    await made._told(read(MENTION), False)
    assert intake.taken[-1][0].origin.person.name == "U1"
    web.fails = {}
    await made._told(read(MENTION), False)
    assert intake.taken[-1][0].origin.person.name == "Ada"


@pytest.mark.parametrize("spread", [True, False])
@pytest.mark.parametrize("several", [True, False])
async def test_a_gap_is_looked_into_with_what_other_gateways_have_stored(*, spread: bool, several: bool) -> None:
    made, intake, missed, _ = adapter(spread=spread)
    intake.several = several
    beside: list[Coroutine[Any, Any, None]] = []
    made._aside = cast("Any", beside.append)
    made._gap()
    for work in beside:
        await work
    assert missed.done == (["gap of all"] if spread and several else ["gap"])


async def test_what_is_owed_comes_first_and_does_not_wait_for_itself() -> None:
    made, _, missed, _ = adapter()
    earlier = {**MENTION, "ts": "4.0"}
    made._owed = cast("Any", SimpleNamespace(before=lambda event: event["ts"] == "5.0"))  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(_Behind) as behind:
        async with made._turn({"event": MENTION}, owed=False):
            pytest.fail("something was said before it")
    assert behind.value.place == "", "all of its channel waits for that"
    for event, owed in ((earlier, False), (MENTION, True)):
        async with made._turn({"event": event}, owed=owed):
            pass
    missed.next = False
    with pytest.raises(_Behind) as behind:
        async with made._turn({"event": earlier}, owed=False):
            pytest.fail("its past is being read")
    assert behind.value.place == "C1", "that place alone waits"
    assert isinstance(behind.value, NotAccepted)
    assert behind.value.code.passes
    assert made._taking._busy == set()
    assert ALL not in made._taking._lines


async def test_nothing_is_acknowledged_before_it_is_known_who_we_are() -> None:
    made, intake, _, _ = adapter()
    made._me = ""
    assert not await made._take_in({"event": MENTION})
    assert intake.taken == []


@pytest.mark.parametrize(("alive", "works"), [(None, False), (0, False), (1, True)])
def test_an_app_hears_while_a_socket_stands_or_where_slack_calls(alive: int | None, *, works: bool) -> None:
    made, _, _, _ = adapter()
    made._sockets = None if alive is None else cast("Any", SimpleNamespace(alive=alive))
    assert made.any_works is works
    assert (made.sight("up", "", None).state == "up") is works
    assert made.routes() == []


def test_an_app_that_slack_calls_hears_without_sockets() -> None:
    made, _, _, _ = adapter(app_token=None, signing_secret=SecretStr("s"))
    assert made.any_works
    assert made.silent_seconds == 0


@pytest.mark.parametrize("container", [None, "3.0"])
@pytest.mark.parametrize("of_message", [None, "3.0"])
def test_a_press_is_of_the_thread_in_which_its_message_stands_whoever_of_slacks_parts_says_so(
    container: str | None, of_message: str | None
) -> None:
    body: dict[str, Any] = {
        "trigger_id": "t", "channel": {"id": "C1"}, "user": {"id": "U1", "name": "ada"}, "actions": [{"value": "yes"}],
        "container": {"message_ts": "5.0", **({"thread_ts": container} if container else {})},
        "message": {"ts": "5.0", **({"thread_ts": of_message} if of_message else {})},
    }  # fmt: skip
    read = read_press(body, "T1")
    assert read is not None
    assert read.origin.address.thread == (container or of_message or "5.0")
    assert read.origin.message == "5.0"


@pytest.mark.parametrize(
    ("event", "gone"),
    [
        ({"subtype": "message_deleted", "deleted_ts": "5.0"}, "5.0"),
        ({"subtype": "message_changed", "message": {"subtype": "tombstone", "ts": "5.0"}}, "5.0"),
        ({"subtype": "message_changed", "message": {"ts": "5.0"}}, None),
        ({"text": "hello", "ts": "5.0"}, None),
    ],
)
def test_a_message_with_answers_in_its_thread_that_was_taken_back_is_gone_as_any_other(
    event: dict[str, Any], gone: str | None
) -> None:
    assert deleted_ts(event) == gone


@pytest.mark.parametrize("answer", [Answer(), Answer({"user_id": None, "url": 7}), AttributeError("'str' has no get")])
async def test_a_page_in_slacks_place_is_no_mistake_of_ours_and_ends_no_socket(answer: Answer | Exception) -> None:
    """A portal or a proxy may answer in words of its own, with a 200; the library fails at them, or hands on what has nothing in it."""
    made, _, _, _ = adapter()
    fails = {"auth_test": answer, "apps_connections_open": answer} if isinstance(answer, Exception) else {}
    made._web = Told(answer, fails)
    with pytest.raises(AdapterDown, match="could not be understood") as down:
        await made.stand()
    assert not down.value.fatal
    with pytest.raises(CallFailed) as failed:
        await made._socket_url()
    assert failed.value.cause is Cause.UNREADABLE


async def test_who_we_are_is_known_to_all_that_ask_for_it() -> None:
    made, _, missed, _ = adapter()
    made._web = Told(Answer({"user_id": "UBOT", "team_id": "T1", "url": "wss://slack.example"}))
    await made.stand()
    assert {made._me, missed.me, made.port.me} == {"UBOT"}
    assert made.port.team == "T1"
    assert await made._socket_url() == "wss://slack.example"


@pytest.mark.parametrize("late", ["", "[late] "])
@pytest.mark.parametrize(
    ("typed", "command", "words"),
    [("!new", "new", ""), ("!stop all", "stop", "all"), ("!Stop all", "stop", "all"), ("!stop\nall", "stop", "all")],
)
def test_a_command_means_the_same_however_it_is_written_and_though_it_is_read_late(
    typed: str, command: str, words: str, late: str
) -> None:
    found = read_body({"event": {**MENTION, "text": f"<@UBOT> {typed}"}}, "UBOT", "T1", late=late)
    assert isinstance(found, PersonDid)
    said = found.message
    assert (said.command, said.text, said.typed) == (command, words, f"{late}{typed}")


async def test_what_cannot_be_stored_is_not_acknowledged_and_is_looked_for_in_the_history_as_well() -> None:
    """Slack tells it again for some minutes alone."""
    made, _, missed, _ = adapter()
    missed.owes = missed.done.append

    async def away(_: object) -> None:
        raise NotAccepted("away", NotAcceptedCode.STORAGE_AWAY)

    made._take = cast("Any", away)
    made._way = cast("Any", SimpleNamespace(waiting=gives(None)))
    made._owed = cast("Any", SimpleNamespace(put=gives(None)))
    assert not await made._take_in({"event": MENTION})
    assert missed.done == [MENTION]


async def test_who_listens_to_nothing_on_purpose_is_not_taken_for_deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made anew by its supervisor as soon as it shows no life for too long."""
    monkeypatch.setattr(of_slack, "LEFT_SECONDS", 0.001)
    listened: list[object] = []
    lives: list[None] = []

    async def heard(up: object) -> bool:
        listened.append(up)
        return len(listened) > 1

    async def may_open() -> None:
        while len(lives) < 3:
            await asyncio.sleep(0)

    app: Any = SimpleNamespace(
        _settings=SimpleNamespace(app_token="x"), _heard=heard, _owed={}, _gap="gap", _lives=lambda: lives.append(None),
        held=SimpleNamespace(may_open=may_open),
    )  # fmt: skip
    async with asyncio.timeout(20):
        await SlackAdapter._listen(app, cast("Any", "up"))
    assert listened == ["up", "gap"]
