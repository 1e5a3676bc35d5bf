"""What was said on Slack while nobody listened: read from the histories of channels, and of the threads that we take part in.

Slack tells an event again for some minutes only. So up to where a channel or a thread was stored is a cursor, and after a gap what
is behind it is read. A channel's history does not hold the answers in its threads, so that a thread has a cursor of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Protocol, cast

import structlog

from adapters.contract.backlog import Backlog, Behind, numbered
from adapters.contract.chat import ChatIntake
from adapters.contract.intake import in_words, until_stored
from adapters.contract.notaccepted import NotAccepted
from agent_core.ports import Clock

log = structlog.get_logger("slack")

LATE = "[Sent while I was offline] "
PAGE = 100
MOST_PAGES = 10
"""So many are taken at once of one place after a gap, from the oldest on; the others at leisure."""
MOST_CHANNELS, MOST_THREADS = 500, 100
"""So many are looked into at once after a gap: those in which something was most likely said. The others at leisure."""
SELDOM = 0.1
"""The chance of a thread of direct messages, against theirs, to be read at leisure before them: there are many more of those, and hardly anybody
writes in them."""
THREAD_DAYS = 7.0
"""A thread in which nothing was said for so long is not looked into."""
HOLD_SECONDS, HOLD_PAUSE_SECONDS = 60.0, 30.0
"""So long nothing of a place is taken because its past is still to be read, and how long a pause of Slack's is waited for with it."""
RETOLD_SECONDS = 600.0
"""For so long Slack may tell again what was not acknowledged. So what is known to be first in a place, for so long after a gap,
may have had a message before it, from so long before the gap."""
SHARED_SECONDS = 120.0
"""For so long a place is read before something that is said in it is taken, if somebody else's sockets get a share of what is said: until Slack has
seen that nobody answers there. Each reading is a call that Slack counts, and keeps a message waiting."""
LIVE_SECONDS = 1.5
"""How long an event waits for the past of its place: Slack waits three seconds for its acknowledgement."""

Table = dict[str, Any]
Take = Callable[[Table, str], Awaitable[None]]
"""Takes an event in, with words that are put before those of a late one."""


class PlatformCall(Protocol):
    """Makes a call; raises `CallFailed`."""

    def __call__(self, call: Awaitable[Any], /) -> Awaitable[Any]: ...


def number_of(ts: str) -> int:
    """A time stamp as a number that can be compared: microseconds."""
    seconds, _, rest = ts.partition(".")
    return int(seconds) * 1_000_000 + int((rest + "000000")[:6])


def ts_of(number: int) -> str:
    """The time stamp of a number."""
    return f"{number // 1_000_000}.{number % 1_000_000:06d}"


def _likely(known: tuple[str, int]) -> tuple[bool, int]:
    """How likely something was said in a place: least of all in a thread of direct messages, which each of them opens."""
    place, last = known
    return not (place.startswith("D") and ":" in place), last


def place_of(event: Table) -> str:
    """Where a message stands: a channel, or ``channel:thread`` for an answer in a thread."""
    thread = str(event.get("thread_ts") or "")
    channel = str(event["channel"])
    return f"{channel}:{thread}" if thread and thread != event.get("ts") else channel


def _odd(error: Exception) -> None:
    log.error("slack.odd_event", error=in_words(error))


def _refused(refused: NotAccepted) -> None:
    log.warning("slack.not_stored", words=str(refused))


class SlackGaps:
    """The gaps of one workspace. What it finds goes the same way as what comes by itself."""

    def __init__(self, name: str, intake: ChatIntake, web: Any, ask: PlatformCall, clock: Clock, take: Take) -> None:
        self._name = name
        self._intake = intake
        self._web = web
        self._ask = ask
        self._clock = clock
        self._take = take
        self._backlog = Backlog(name, self._read, clock)
        self._sure: dict[str, int] = {}
        """The same, when the connection was last seen to stand, and was seen so once more since: a socket may be dead for
        some seconds before that is noticed."""
        self._refused: dict[str, tuple[int, float]] = {}
        """Place → the last message that was not taken because the past of the place was being read, maybe by a call that began
        before it was said; and since when there are such."""
        self.me = ""
        """The app's own user, once it is known."""
        self._gap_ms, self._gap_at = 0, float("-inf")
        """When the last gap was noticed."""
        self._shared_until = float("-inf")
        self._standing: dict[str, int] = {}
        """The same, when it was seen so last."""

    async def start(self, *, gap: bool = True) -> None:
        """Everything behind the stored cursors has to be looked for, if there is a gap. Before the first event comes."""
        await self._learn()
        self._sure = self._standing = dict(self._backlog.seen)
        if gap:
            self.gap()

    async def _learn(self) -> None:
        for place, last in await self._intake.cursors(self._name):
            self._backlog.saw(place, number_of(last))

    async def gap_of_all(self) -> None:
        """The same as `gap`, where other gateways have stored what we have not heard."""
        try:
            await self._learn()
        except NotAccepted as refused:
            _refused(refused)
        self.gap()

    async def run(self) -> None:
        """Read histories until cancelled."""
        await self._backlog.run()

    def standing(self) -> None:
        """The connection stands: what is stored now was stored without a gap."""
        self._sure, self._standing = self._standing, dict(self._backlog.seen)

    def gap(self) -> None:
        """The connection is another: something may have been said between."""
        self._gap_ms, self._gap_at = self._clock.now_ms(), self._clock.monotonic()
        # A place that was not known then has nothing older to be looked for.
        likely_first = sorted(({**self._backlog.seen, **self._sure}).items(), key=_likely, reverse=True)
        oldest = self._gap_ms * 1000 - round(THREAD_DAYS * 86_400e6)
        channels = [one for one in likely_first if ":" not in one[0]]
        threads = [one for one in likely_first if ":" in one[0] and one[1] >= oldest]
        later = (*channels[MOST_CHANNELS:], *threads[MOST_THREADS:])
        if any(_likely(one)[0] for one in later):
            log.warning("slack.gap_too_wide", channels=len(channels), threads=len(threads))
        self._backlog.add((*channels[:MOST_CHANNELS], *threads[:MOST_THREADS]))
        self._backlog.add((one for one in later if _likely(one)[0]), leisure=1.0)
        self._backlog.add((one for one in later if not _likely(one)[0]), leisure=SELDOM)

    def shares(self, *, strangers: bool) -> None:
        """Whether Slack gives somebody else a share of what is said just now: a gateway, say, that is suspended and had the sockets before."""
        self._shared_until = self._clock.monotonic() + SHARED_SECONDS if strangers else float("-inf")

    # ------------------------------------------------------------------ for what comes in

    async def before(self, event: Table) -> bool:
        """Something is said in a place: what was missed there comes first, if it can be had soon.

        False if that is still on its way: the event is not to be taken now. It is in the history that is being read.
        """
        if not await self.noticed(event):
            return True
        place, number = place_of(event), number_of(str(event["ts"]))
        last = self._backlog.seen.get(place, number)
        if self._clock.monotonic() < self._shared_until and last < number and not self._backlog.paused:
            self._backlog.add([(place, last)], since_ms=self._gap_ms)
        await self._backlog.catch_up(place, LIVE_SECONDS)
        now = self._clock.monotonic()
        refused, since = self._refused.get(place, (0, now))
        if now - since > HOLD_SECONDS or not self._backlog.hurry(place, HOLD_PAUSE_SECONDS):
            return True
        self._refused[place] = max(refused, number), since
        return False

    async def noticed(self, event: Table) -> bool:
        """A place is met: if something may have been missed there, it is read. False if the event is in none."""
        if event.get("type") not in ("message", "app_mention") or not event.get("channel") or not event.get("ts"):
            return False
        await self._first_of(place_of(event), event)
        return True

    def owes(self, event: Table) -> None:
        """It was told, and could not be stored: it is looked for in the history as well, because Slack does not tell it for ever."""
        if event.get("type") not in ("message", "app_mention"):
            return
        try:
            place, number = place_of(event), number_of(str(event["ts"]))
        except (KeyError, ValueError):
            return
        foreign = ":" in place and not place.startswith("D") and f"<@{self.me}>" not in str(event.get("text"))
        if place in self._backlog.seen or not foreign:
            # Slack tells it again at once, after one and after five minutes: that is quicker, and holds nobody up.
            self._backlog.add([(place, number - 1)], pause_seconds=RETOLD_SECONDS)

    async def _first_of(self, place: str, event: Table) -> None:
        """The first message of a place since a gap: one before it may have come when nobody could store it.

        That the place is to be read is stored, so that a crash in the middle does not forget it.
        """
        if place in self._backlog.seen or self._clock.monotonic() - self._gap_at > RETOLD_SECONDS:
            return
        foreign = ":" in place and not place.startswith("D") and f"<@{self.me}>" not in str(event.get("text"))
        if not foreign and self._backlog.mark(place) is None:
            mark = round((self._gap_ms - RETOLD_SECONDS * 1000) * 1000)
            await self._intake.skip(self._name, (place, ts_of(mark)))
            self._backlog.add([(place, mark)], since_ms=self._gap_ms)

    async def cursor(self, event: Table, *, for_us: bool, late: bool) -> tuple[str, str] | None:
        """What is stored together with a message: a place that is behind stays so until its history is read.

        None if the message is in a thread that is none of ours. One that opens a thread with us gives it a cursor, too.
        """
        place, number = place_of(event), number_of(str(event["ts"]))
        private = place.startswith("D")
        if ":" in place and place not in self._backlog.seen and not (for_us or private):
            return None
        if ":" not in place and (for_us or private):
            thread = f"{place}:{event['ts']}"
            await self._intake.skip(self._name, (thread, ts_of(number)))
            self._backlog.seen.setdefault(thread, number)
        return place, ts_of(self._backlog.cursor(place, number, late=late))

    def stored(self, event: Table, *, late: bool) -> None:
        """A message is stored."""
        self._backlog.stored(place_of(event), number_of(str(event["ts"])), late=late)

    # ------------------------------------------------------------------ reading

    async def _read(self, place: str, behind: Behind) -> bool:
        last = behind.mark
        while True:
            last, whole = await self._read_after(place, behind, last)
            if not whole:
                self._backlog.advanced(place, last)
                await self._note(place, lambda mark=last: mark)
                return False
            if self._backlog.anew(place):
                return True
            self._backlog.saw(place, last)
            await self._note(place, lambda: self._backlog.seen[place])
            if self._refused.pop(place, (0, 0.0))[0] <= last:
                return True

    async def _read_after(self, place: str, behind: Behind, mark: int) -> tuple[int, bool]:
        """Hand over what was said after `mark`; the last of it, and whether that was all."""
        channel, _, thread = place.partition(":")
        last = mark
        page, whole = await self._pages(channel, thread, mark)
        for number, message in numbered(page, lambda one: number_of(one["ts"]), _odd):
            if number <= mark:
                continue  # the message that a thread hangs on comes with every page of it
            kind = "im" if channel.startswith("D") else "channel"
            event = {**message, "type": "message", "channel": channel, "channel_type": kind}
            late = LATE if number < behind.since_ms * 1000 else ""
            await until_stored(partial(self._take, event, late), _refused)
            last = max(last, number)
            inner = f"{channel}:{message['ts']}"
            if message.get("reply_count") and (inner in self._backlog.seen or channel.startswith("D")):
                self._backlog.add([(inner, number)])
        return last, whole

    async def _pages(self, channel: str, thread: str, mark: int) -> tuple[list[Table], bool]:
        """The first messages after `mark`, and whether that is all. Where only `oldest` is given, the pages go forward in time."""
        found: list[Table] = []
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            more: Table = {"channel": channel, "oldest": ts_of(mark), "limit": PAGE, "cursor": cursor}
            if thread:
                call = self._web.conversations_replies(ts=thread, **more)
            else:
                call = self._web.conversations_history(**more)
            answer: Any = await self._ask(call)
            found += cast("Iterable[Table]", answer.get("messages") or ())
            paging = cast("Table", answer.get("response_metadata") or {})
            cursor = str(paging.get("next_cursor") or "")
            if not cursor:
                return found, True
        log.warning("slack.gap_too_long", channel=channel, thread=thread, read=len(found))
        return found, False

    async def _note(self, place: str, mark: Callable[[], int]) -> None:
        """Store a place's cursor, however long that takes, and as it is then."""
        await until_stored(lambda: self._intake.skip(self._name, (place, ts_of(mark()))), _refused)
