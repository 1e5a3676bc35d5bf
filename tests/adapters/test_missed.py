"""What was said while nobody listened is found by the cursors, whatever is interrupted: the gaps of Slack and of Discord before a history that is a list."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from adapters.contract import intake
from adapters.contract.backlog import Behind
from adapters.contract.chat import CallFailed, Fate
from adapters.contract.notaccepted import NotAccepted, NotAcceptedCode
from adapters.discord import adapter as of_adapter
from adapters.discord import missed as of_discord
from adapters.discord.inbound import Began, Brought, Complete, Happened, SaidIn
from adapters.discord.missed import HEARD, NO_CHAT, PERSON, DiscordGaps
from adapters.discord.platform import Discord as Section
from adapters.slack import missed as of_slack
from adapters.slack.missed import SlackGaps, number_of, ts_of
from agent_core.ports import steady_ms
from tests.agent_core.turns import gives
from tests.store.support import FakeClock

BOT = "discord/1"


class Stored:
    """The cursors of an account; dies as soon as it has stored so many more."""

    def __init__(self, cursors: Mapping[str, str] | None = None) -> None:
        self.kept: dict[str, str] = dict(cursors or {})
        self.left = 1_000

    async def cursors(self, account: str) -> list[tuple[str, str]]:
        del account
        return [*self.kept.items()]

    async def skip(self, account: str, cursor: tuple[str, str]) -> None:
        del account
        if self.left <= 0:
            raise Died
        self.left -= 1
        self.kept[cursor[0]] = cursor[1]

    async def allowed(self, account: str) -> list[str]:
        del account
        return ["7"]


class Died(BaseException):
    """The process is over."""


class Away(Stored):
    """The storage is away the first few times that something is to be stored."""

    times = 3

    async def skip(self, account: str, cursor: tuple[str, str]) -> None:
        if self.times:
            self.times -= 1
            raise NotAccepted("Nothing can be stored just now.", NotAcceptedCode.STORAGE_AWAY)
        await super().skip(account, cursor)


# ---------------------------------------------------------------------- Slack


@given(st.integers(0, 10**10), st.text("0123456789", max_size=9))
def test_a_time_stamp_is_so_many_microseconds(seconds: int, rest: str) -> None:
    number = number_of(f"{seconds}.{rest}")
    assert number == seconds * 1_000_000 + int((rest + "000000")[:6])
    assert number_of(ts_of(number)) == number


class Slack:
    """A workspace whose places hold messages, and its gaps."""

    def __init__(self, stored: Stored, said: Mapping[str, list[str]]) -> None:
        self.clock = FakeClock(1_700_000_000_000)
        self.said, self.taken = said, list[str]()
        self.reading: list[str] = []
        web = SimpleNamespace(conversations_history=self._history, conversations_replies=self._history)

        async def ask(call: Any) -> Any:
            return await call

        self.gaps = SlackGaps("slack/T1", cast("Any", stored), web, ask, self.clock, self._take)

    async def _history(self, channel: str, oldest: str, ts: str = "", **_: object) -> Any:
        place = f"{channel}:{ts}" if ts else channel
        self.reading.append(place)
        found = [one for one in self.said.get(place, []) if number_of(one) > number_of(oldest)]
        return {"messages": [{"ts": one} for one in found]}

    async def _take(self, event: dict[str, Any], late: str) -> None:
        del late
        self.taken.append(event["ts"])

    def event(self, place: str, ts: str) -> dict[str, Any]:
        channel, _, thread = place.partition(":")
        return {"type": "message", "channel": channel, "ts": ts, **({"thread_ts": thread} if thread else {})}


async def test_what_is_not_taken_because_the_past_is_being_read_is_looked_for_once_more() -> None:
    """The reading may have asked before it was said."""
    said = {"C1": ["1699999990.000001"]}
    slack = Slack(Stored({"C1": "1699999900.000000"}), said)
    await slack.gaps.start()

    async def comes_meanwhile(event: dict[str, Any], late: str) -> None:
        """While the past is handed over, somebody writes."""
        slack.taken.append(event["ts"])
        if len(slack.taken) == 1:
            new = slack.event("C1", "1699999999.000000")
            slack.gaps._backlog._failed("C1", of_slack_failure())
            assert not await slack.gaps.before(new), "its turn comes behind what was missed"
            said["C1"].append(new["ts"])

    slack.gaps._take = comes_meanwhile
    assert await slack.gaps._read("C1", Behind(number_of("1699999900.000000"), 0))
    assert slack.taken == ["1699999990.000001", "1699999999.000000"]


@pytest.mark.parametrize("age", [0, 66, 366])
async def test_what_is_told_again_waits_for_the_past_of_its_place_as_long_as_what_is_new(age: int) -> None:
    """Whoever was told it before is gone, and whoever has come in its place has just begun to read."""
    slack = Slack(Stored({"C1": "1699999000.000000"}), {})
    await slack.gaps.start()
    slack.gaps._backlog._failed("C1", of_slack_failure())
    event = slack.event("C1", f"{1_700_000_000 - age}.000000")
    assert not await slack.gaps.before(event)
    slack.clock.now += round(of_slack.HOLD_SECONDS * 1000)
    slack.gaps._backlog._failed("C1", of_slack_failure())
    assert not await slack.gaps.before(event)
    slack.clock.now += 1_000
    assert await slack.gaps.before(event), "no longer than that"


@pytest.mark.parametrize(
    ("place", "words", "reads"),
    [
        ("C1", "hello", True),
        ("D1:5.000000", "hello", True),
        ("C1:5.000000", "<@UBOT> hello", True),
        ("C1:5.000000", "hello", False),
    ],
)
async def test_after_a_gap_a_thread_of_a_channel_is_read_only_where_it_may_be_one_of_ours(
    place: str, words: str, *, reads: bool
) -> None:
    """There are as many as people like, and each reading is a call that Slack counts."""
    slack = Slack(Stored({}), {})
    slack.gaps.me = "UBOT"
    await slack.gaps.start()
    assert await slack.gaps.noticed({**slack.event(place, "1699999999.000000"), "text": words})
    assert (slack.gaps._backlog.mark(place) is not None) is reads


def of_slack_failure() -> Any:
    from adapters.contract.chat import CallFailed, Fate

    return CallFailed(Fate.TOO_FAST, "a pause", retry_after=20.0)


@pytest.mark.parametrize(("seconds", "found"), [(1, True), (599, True), (601, False)])
async def test_before_the_first_message_of_a_place_after_a_gap_is_read_what_slack_may_not_tell_again(
    seconds: int, found: bool
) -> None:
    before, now = f"{1_700_000_000 - seconds}.000000", "1700000000.000001"
    stored = Stored()
    slack = Slack(stored, {"D9": [before]})
    await slack.gaps.start()
    assert await slack.gaps.before(slack.event("D9", now)), "what was said before it is stored by now"
    assert slack.taken == ([before] if found else [])
    assert number_of(stored.kept["D9"]) <= number_of(now)


async def test_while_somebody_else_has_a_share_of_the_events_a_place_is_read_before_what_is_said_in_it_is_taken() -> (
    None
):
    said = {"C1": ["1699999990.000000"]}
    slack = Slack(Stored({"C1": "1699999980.000000"}), said)
    await slack.gaps.start(gap=False)

    async def next_one(ts: str) -> None:
        said["C1"].append(ts)
        assert await slack.gaps.before(slack.event("C1", ts))
        slack.gaps.stored(slack.event("C1", ts), late=False)

    await next_one("1699999991.000000")
    assert slack.reading == [], "everything comes to us"
    slack.gaps.shares(strangers=True)
    said["C1"].append("1699999992.000000")
    await next_one("1699999993.000000")
    assert slack.taken == ["1699999992.000000", "1699999993.000000"], "what another was told comes first"
    assert await slack.gaps.before(slack.event("C1", "1699999992.000000"))
    assert slack.reading == ["C1"], "told again, it is known"
    slack.gaps._backlog._closed_until_ms = steady_ms(slack.clock) + 20_000
    await next_one("1699999994.000000")
    assert slack.reading == ["C1"], "who is asked to wait holds nobody up for it"
    slack.gaps._backlog._closed_until_ms = 0
    await next_one("1699999995.000000")
    slack.gaps.shares(strangers=False)
    await next_one("1699999996.000000")
    slack.gaps.shares(strangers=True)
    slack.clock.now += round(of_slack.SHARED_SECONDS * 1000)
    await next_one("1699999997.000000")
    assert slack.reading == ["C1", "C1"]


async def test_where_something_was_said_last_is_read_first_whatever_else_there_is_to_read() -> None:
    """Slack lets some fifty histories a minute be read. Threads that every private message opens hold no chat up."""
    chats = {f"D{n}": f"{1_699_999_000 + n}.000000" for n in range(700)}
    threads = {f"{place}:{ts}": ts for place, ts in chats.items()}
    slack = Slack(Stored({**threads, **chats}), {})
    await slack.gaps.start()
    reading = asyncio.create_task(slack.gaps.run())
    while len(slack.reading) < of_slack.MOST_CHANNELS + of_slack.MOST_THREADS:
        await asyncio.sleep(0)
    reading.cancel()
    read = [one for one in slack.reading if ":" not in one]
    assert read[: of_slack.MOST_CHANNELS] == [f"D{n}" for n in reversed(range(700))][: of_slack.MOST_CHANNELS]


async def test_a_thread_that_begins_with_us_is_read_after_the_next_gap() -> None:
    stored = Stored({"C1": "1699999900.000000"})
    slack = Slack(stored, {})
    await slack.gaps.start(gap=False)
    event = slack.event("C1", "1699999990.000000")
    assert await slack.gaps.cursor(event, for_us=True, late=False) == ("C1", "1699999990.000000")
    slack.gaps.stored(event, late=False)
    slack.gaps.standing()
    thread = "C1:1699999990.000000"
    assert stored.kept[thread] == "1699999990.000000"
    slack.gaps.gap()
    assert slack.gaps._backlog.mark(thread) == number_of("1699999990.000000")
    assert await slack.gaps.cursor(slack.event("C1:5.000000", "1699999991.000000"), for_us=False, late=False) is None


@pytest.mark.parametrize(
    ("channel", "ours", "read"), [("C1", True, True), ("C1", False, False), ("D1", True, True), ("D1", False, True)]
)
@pytest.mark.parametrize("replies", [0, 2])
async def test_answers_in_a_thread_of_what_was_missed_are_looked_for_where_they_may_be_for_us(
    channel: str, ours: bool, read: bool, replies: int
) -> None:
    root = "1699999990.000000"
    kept = {channel: "1699999900.000000"} | ({f"{channel}:{root}": root} if ours else {})
    slack = Slack(Stored(kept), {})
    await slack.gaps.start(gap=False)

    async def history(**_: object) -> Any:
        return {"messages": [{"ts": root, "reply_count": replies} if replies else {"ts": root}]}

    slack.gaps._web = SimpleNamespace(conversations_history=history)
    await slack.gaps._read(channel, Behind(number_of(kept[channel]), 0))
    thread = f"{channel}:{root}"
    assert slack.gaps._backlog.mark(thread) == (number_of(root) if read and replies else None)


@pytest.mark.parametrize("days", [0.0, of_slack.THREAD_DAYS - 0.01, of_slack.THREAD_DAYS + 0.01, 300.0])
async def test_a_thread_in_which_nothing_was_said_for_long_is_not_looked_into_and_a_channel_is(days: float) -> None:
    last = ts_of(round((1_700_000_000 - days * 86_400) * 1_000_000))
    slack = Slack(Stored({"C1": last, "C1:5.000000": last}), {})
    await slack.gaps.start()
    assert slack.gaps._backlog.mark("C1") == number_of(last)
    assert (slack.gaps._backlog.mark("C1:5.000000") is not None) == (days <= of_slack.THREAD_DAYS)


@pytest.mark.parametrize(
    ("place", "words", "looked_for"),
    [
        ("C1", "hello", True),
        ("C1:1699999000.000000", "hello", True),
        ("C1:1699998000.000000", "hello", False),
        ("C1:1699998000.000000", "<@U0> hello", True),
        ("D1:1699998000.000000", "hello", True),
    ],
)
async def test_what_could_not_be_stored_is_looked_for_in_every_place_that_may_be_ours(
    place: str, words: str, *, looked_for: bool
) -> None:
    slack = Slack(Stored({"C1:1699999000.000000": "1699999100.000000"}), {})
    slack.gaps.me = "U0"
    await slack.gaps.start(gap=False)
    slack.gaps.owes({**slack.event(place, "1699999999.000000"), "text": words})
    mark = slack.gaps._backlog.mark(place)
    assert mark == (number_of("1699999999.000000") - 1 if looked_for else None)


async def test_the_message_that_a_thread_hangs_on_is_not_taken_again() -> None:
    thread = "C1:1699999990.000000"
    slack = Slack(Stored({thread: "1699999990.000000"}), {thread: ["1699999991.000000"]})
    await slack.gaps.start(gap=False)

    async def history(**_: object) -> Any:
        return {"messages": [{"ts": "1699999990.000000"}, {"ts": "1699999991.000000"}]}

    slack.gaps._web = SimpleNamespace(conversations_replies=history)
    await slack.gaps._read(thread, Behind(number_of("1699999990.000000"), 0))
    assert slack.taken == ["1699999991.000000"]


@pytest.mark.parametrize("pages", [1, 3, of_slack.MOST_PAGES + 2])
async def test_the_pages_of_a_history_follow_each_other_and_a_long_one_goes_on_later(pages: int) -> None:
    stored = Stored({"C1": "1699999900.000000"})
    slack = Slack(stored, {})
    await slack.gaps.start()

    async def history(cursor: str | None, **_: object) -> Any:
        number = int(cursor or 0)
        more = {"next_cursor": str(number + 1)} if number + 1 < pages else {}
        return {"messages": [{"ts": f"1699999901.{number:06d}"}], "response_metadata": more}

    slack.gaps._web = SimpleNamespace(conversations_history=history)
    whole = await slack.gaps._read("C1", Behind(number_of("1699999900.000000"), 0))
    assert whole == (pages <= of_slack.MOST_PAGES)
    count = min(pages, of_slack.MOST_PAGES)
    assert slack.taken == [f"1699999901.{number:06d}" for number in range(count)]
    assert stored.kept["C1"] == slack.taken[-1], "how far it was read is stored, also where that was not all"


async def test_only_what_stood_twice_counts_as_sure() -> None:
    """A socket may be dead for some seconds before that is noticed."""
    slack = Slack(Stored({"C1": "1699999900.000000"}), {})
    await slack.gaps.start(gap=False)
    slack.gaps.standing()
    slack.gaps.stored(slack.event("C1", "1699999950.000000"), late=False)
    slack.gaps.standing()
    slack.gaps.gap()
    assert slack.gaps._backlog.mark("C1") == number_of("1699999900.000000")


async def test_after_a_gap_while_a_place_is_read_nothing_is_noted_of_it_until_it_is_read_once_more() -> None:
    """What was said in that gap is behind the page that is being handed over, and before what comes by itself now."""
    said, stored = {"C1": ["1699999990.000001"]}, Stored({"C1": "1699999900.000000"})
    slack = Slack(stored, said)
    await slack.gaps.start()
    marks = list[str]()

    async def takes(event: dict[str, Any], late: str) -> None:
        await Slack._take(slack, event, late)
        slack.gaps.stored(event, late=True)
        marks.append(stored.kept["C1"])
        if len(slack.taken) == 1:
            said["C1"].append("1699999995.000001")  # while nobody listens
            slack.gaps.gap()
            slack.gaps.stored(slack.event("C1", "1699999999.000001"), late=False)  # it comes by the new connection

    slack.gaps._take = takes
    while slack.gaps._backlog.mark("C1") is not None:
        await slack.gaps._backlog._try("C1")
    assert slack.taken == ["1699999990.000001", "1699999995.000001"]
    assert marks == ["1699999900.000000"] * 2, "a crash between the two would have missed the second"


# ---------------------------------------------------------------------- Discord


def snowflake(ms: int) -> int:
    return (ms - 1_420_070_400_000) << 22


class Discord:
    """A bot with one channel and one person, and its gaps."""

    def __init__(self, stored: Stored, said: list[int], *, shard: int | None = None) -> None:
        self.clock = FakeClock(1_700_000_000_000)
        self.said, self.taken, self.asked = said, list[int](), list[int]()
        self.shard = shard
        self.channel = SimpleNamespace(id=77, guild=None)
        client = SimpleNamespace(get_channel=gives(self.channel))
        port = SimpleNamespace(client=client, history=self._history, opened=self._opened)
        self.gaps = DiscordGaps(
            BOT, cast("Any", stored), cast("Any", port), self.clock, cast("Any", self._take), lambda _: None
        )

    async def _history(self, _client: object, _channel: int, most: int, after: int) -> list[Any]:
        self.asked.append(after)
        return [{"id": str(one)} for one in self.said if one > after][:most]

    async def _opened(self, person: str) -> tuple[str, int]:
        assert person == "7"
        return "77", max(self.said)

    async def _take(self, _client: object, _channel: object, data: Any, late: str) -> None:
        del late
        self.taken.append(int(data["id"]))

    def message(self, number: int) -> Any:
        return SimpleNamespace(id=number, channel=self.channel, guild=None)

    def heard(self, number: int) -> SaidIn:
        return SaidIn("77", number, 0, private=True)


MARK = snowflake(1_699_999_000_000)


async def test_a_persons_chat_is_found_by_the_next_process_wherever_this_one_dies() -> None:
    """After each thing that is stored once: what was said there is read in the end, and the person is not met before that is sure."""
    said = [MARK + 5, MARK + 9]
    for steps in range(8):
        stored = Stored({f"{HEARD}0": str(MARK)})
        stored.left = steps
        with suppress(Died):
            await opened(Discord(stored, said))
        stored.left = 1_000
        if f"{PERSON}7" in stored.kept:
            assert int(stored.kept["77"]) <= max(said)
        again = Discord(stored, said)
        await opened(again)
        read = await reads(again)
        assert read or int(stored.kept["77"]) == max(said)
        assert int(stored.kept["77"]) == max(said)


async def opened(discord: Discord) -> None:
    """A session begins, and the person's chat is looked into."""
    await discord.gaps.began(None)
    await discord.gaps.complete(cast("Any", SimpleNamespace(guilds=[])), None)
    place = f"{PERSON}7"
    if discord.gaps._backlog.mark(place) is not None:
        await discord.gaps._backlog._try(place)


async def reads(discord: Discord) -> list[int]:
    while discord.gaps._backlog.mark("77") is not None:
        await discord.gaps._backlog._try("77")
    return discord.taken


async def test_how_far_was_heard_is_stored_only_when_nothing_is_left_to_be_read() -> None:
    stored = Stored({f"{HEARD}0": str(MARK), "77": str(MARK)})
    discord = Discord(stored, [])
    await discord.gaps.began(None)
    late = MARK + (60_000 << 22)
    await discord.gaps.handled(discord.heard(late))
    assert stored.kept[f"{HEARD}0"] == str(MARK), "of its servers not all are known, and its channel is unread"
    await discord.gaps.complete(cast("Any", SimpleNamespace(guilds=[])), None)
    await discord.gaps.handled(discord.heard(late))
    assert stored.kept[f"{HEARD}0"] == str(MARK)
    for place in [*discord.gaps._backlog._behind]:
        if place.startswith(PERSON):
            del discord.gaps._backlog._behind[place]
    await reads(discord)
    await discord.gaps.handled(discord.heard(late))
    assert stored.kept[f"{HEARD}0"] == str(late - of_discord.HEARD_EVERY)


async def test_what_was_said_before_the_gap_was_noticed_is_marked_as_late_and_nothing_else() -> None:
    gap = 1_700_000_000_000
    said = [snowflake(gap + ms) for ms in (-60_000, -1, 0, 60_000)]
    discord, lates = Discord(Stored({"77": str(MARK)}), said), list[str]()

    async def take(_client: object, _channel: object, _data: object, late: str) -> None:
        lates.append(late)

    discord.gaps._take = cast("Any", take)
    await discord.gaps._read("77", Behind(MARK, gap))
    assert [bool(late) for late in lates] == [True, True, False, False]


@pytest.mark.parametrize("fate", Fate)
async def test_who_takes_no_private_messages_is_not_asked_again_and_whoever_could_not_be_asked_is(fate: Fate) -> None:
    stored = Stored({f"{HEARD}0": str(MARK)})
    discord = Discord(stored, [])

    async def refused(_: str) -> tuple[str, int]:
        raise CallFailed(fate, "no")

    vars(discord.gaps._port)["opened"] = refused
    await opened(discord)
    assert (stored.kept.get(f"{PERSON}7") == NO_CHAT) is (fate is Fate.REFUSED)


async def test_a_long_history_is_read_page_by_page_and_its_place_stored_on_the_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_discord, "PAGE", 3)
    monkeypatch.setattr(of_discord, "MOST_MESSAGES", 6)
    said = [MARK + number for number in range(1, 9)]
    stored = Stored({f"{HEARD}0": str(MARK), "77": str(MARK)})
    discord = Discord(stored, said)
    await discord.gaps.began(None)
    await discord.gaps._backlog._try("77")
    assert discord.taken == said[:6]
    assert discord.asked == [MARK, MARK + 3]
    assert stored.kept["77"] == str(said[5]), "a crash now reads no message twice, and misses none"
    await reads(discord)
    assert discord.taken == said
    assert stored.kept["77"] == str(said[-1])


async def test_what_there_was_no_room_for_is_looked_for_in_all_channels_before_anything_new_comes_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(of_adapter, "QUEUE", 4)
    log: list[object] = []
    intake: Any = SimpleNamespace(several=False)
    adapter = of_adapter.DiscordAdapter(Section(token=SecretStr("N3.x.y")), intake, FakeClock())

    async def handle(_: object, event: Happened) -> None:
        log.append(event)
        if event == new(3):  # what comes meanwhile would hide what was left out
            adapter.happened(new(9))

    def new(number: int) -> Brought:
        return Brought("MESSAGE_CREATE", {"id": number}, shard=number % 2)

    client: Any = SimpleNamespace(user=object())
    adapter._clients = {0: client, 1: client}
    monkeypatch.setattr(adapter, "_handle", handle)
    for number in range(1, 7):
        adapter.happened(new(number))
    working = asyncio.create_task(adapter._work())
    try:
        async with asyncio.timeout(10):
            while len(log) < 8:
                await asyncio.sleep(0)
            adapter.happened(new(7))
            while new(7) not in log:
                await asyncio.sleep(0)
    finally:
        working.cancel()
    assert log == [*map(new, range(1, 5)), Began(0), Complete(0), Began(1), Complete(1), new(7)]


async def test_a_session_that_begins_anew_while_a_channel_is_read_has_it_read_once_more() -> None:
    said, stored = [MARK + 1], Stored({f"{HEARD}0": str(MARK), "77": str(MARK)})
    discord = Discord(stored, said)
    await discord.gaps.began(None)
    marks = list[str]()

    async def takes(_client: object, _channel: object, data: Any, late: str) -> None:
        await Discord._take(discord, _client, _channel, data, late)
        discord.gaps._backlog.stored("77", int(data["id"]), late=True)
        marks.append(stored.kept["77"])
        if len(discord.taken) == 1:
            said.append(MARK + 5)
            await discord.gaps.began(None)
            discord.gaps._backlog.stored("77", MARK + 9, late=False)

    discord.gaps._take = cast("Any", takes)
    await reads(discord)
    assert discord.taken == [MARK + 1, MARK + 5]
    assert marks == [str(MARK)] * 2


async def test_a_channel_that_is_behind_stays_so_over_a_crash() -> None:
    stored = Stored({f"{HEARD}0": str(MARK)})
    discord = Discord(stored, [])
    await discord.gaps.began(None)
    new = discord.message(MARK + 99)
    discord.gaps._backlog._closed_until_ms = 10**15  # it cannot be read now
    await discord.gaps.before(discord.heard(new.id))
    assert stored.kept["77"] == str(MARK)
    assert discord.gaps.cursor(new, late=False) == ("77", str(MARK))


# ---------------------------------------------------------------------- both


@pytest.mark.parametrize("platform", ["slack", "discord"])
async def test_how_far_a_place_was_read_is_stored_as_soon_as_the_storage_is_there_again(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    """The next process would begin where this one did, and offer all of it once more."""
    monkeypatch.setattr(intake, "AGAIN_SECONDS", 0.0)
    first, last = ("1699999900.000000", "1699999901.000000") if platform == "slack" else (str(MARK), str(MARK + 9))
    stored = Away({"77": first})
    if platform == "slack":
        slack = Slack(stored, {"77": [last]})
        await slack.gaps.start()
        assert await slack.gaps._read("77", Behind(number_of(first), 0))
    else:
        assert await Discord(stored, [int(last)]).gaps._read("77", Behind(int(first), 0))
    assert (stored.kept["77"], stored.times) == (last, 0)
