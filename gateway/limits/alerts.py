"""What the operators are told, and when. Pure: it gets what is wrong just now and the time, and gives messages.

Theory. What is wrong is a set of conditions, looked at every few seconds. One that lasts longer than its grace begins an episode; the
episode is told once, again after a long while, and once that it is over. One that comes back soon belongs to the same episode, so
what flaps is told like what lasts. Whatever is to be told at one look is one message; news (incidents) have one each.

Laws (tests/gateway/test_alerts.py). In any hour there are at most `per_hour` messages. Two openings of one key lie at least `again_ms`
apart. A key is told as over at most once for each opening, and never without one. Nothing is told while nothing can be stored: what
began and ended meanwhile is told afterwards, with its times. What lasts is told as soon as there is room. What there was no room for
until it was over is counted. A clock that is put back keeps nobody from hearing for longer than an hour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from agent_core.records import dataclass
from agent_core.text.durations import at_time

HOUR_MS = 3_600_000
MOST_LINES = 8
"""Lines of one message; what is more comes with a later one."""


class AlertKind(StrEnum):
    """What an alert is about."""

    ADAPTER = "adapter"
    INTAKE = "intake"
    """Something came and cannot be taken in."""
    STORAGE = "storage"
    DISK = "disk"
    DELIVERY = "delivery"
    QUEUE = "queue"
    SPEND = "spend"
    INCIDENT = "incident"
    UNCLAIMED = "unclaimed"
    WEBHOOK = "webhook"
    """Another program is not told what it should be."""
    DAMAGE = "damage"
    """Something that is stored cannot be read."""
    LAW = "law"
    """What is stored breaks a law."""


@dataclass(frozen=True, slots=True)
class AlertLimits:
    """From when on something is wrong."""

    adapter_seconds: int = 60
    undelivered_seconds: int = 300
    free_mib: int = 512
    wait_seconds: int = 120


@dataclass(frozen=True, slots=True)
class AlertRules:
    """How much is told."""

    per_hour: int = 12
    """Messages."""
    again_ms: int = HOUR_MS
    """The same thing is not told as new more often than this."""
    still_ms: int = 6 * HOUR_MS
    """What lasts is told again after so long."""
    settle_ms: int = 60_000
    """What has been well for so long is over."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that is wrong just now."""

    key: str
    """What tells it from others."""
    kind: AlertKind
    words: str
    over: str = ""
    """What is said when it is over; empty: nothing, and it is told once only."""
    grace_ms: int = 0
    """It is told when it has lasted for so long."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that somebody else has decided to tell, once."""

    key: str
    words: str


Announce = Callable[[str, str], None]
"""Tells the operators: (key, words). The same key is told once, however often it is asked."""


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One line of a message."""

    id: str
    """The same for the same thing told by another process shortly before."""
    key: str
    words: str
    opens: bool = False
    closes: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """What is said at once."""

    lines: tuple[AlertLine, ...]
    more: int = 0
    """How many lines are left for later."""
    passed: int = 0
    """How many conditions there was no room for until they were over."""

    @property
    def words(self) -> str:
        said = [line.words for line in self.lines]
        if self.more:
            said.append(f"… and {self.more} more. All of it: outspoken status")
        if self.passed:
            said.append(f"… and {self.passed} more that are over by now; the log has them.")
        return "\n".join(said)


@dataclass(frozen=True, slots=True)
class Episode:
    """A condition from its beginning to its end."""

    condition: Condition
    since: int
    seen_at: int
    """When it was there last."""
    told_at: int = 0
    """When it was told last; 0: not yet."""
    opened_at: int = 0
    """When it was told first."""
    missed: bool = False
    """It should have been told while nothing could be stored."""
    crowded_out: bool = False
    """There was no room for it."""


@dataclass(frozen=True, slots=True)
class AlertMemory:
    """What is known from one look to the next."""

    episodes: Mapping[str, Episode] = field(default_factory=dict[str, Episode])
    opened: Mapping[str, int] = field(default_factory=dict[str, int])
    """When each key was told as new last."""
    said: tuple[int, ...] = ()
    """When messages were said, of the last hour."""
    news: tuple[News, ...] = ()
    """What waits to be told."""
    passed: int = 0

    def with_news(self, news: News) -> AlertMemory:
        """With something more to tell."""
        return self if news in self.news else replace(self, news=(*self.news, news))


def looked(memory: AlertMemory, now_wrong: Sequence[Condition], now: int, rules: AlertRules) -> AlertMemory:
    """What is wrong at a look, put into the memory. Call `due` next."""
    memory = _not_ahead(memory, now)
    episodes = dict(memory.episodes)
    for condition in now_wrong:
        known = episodes.get(condition.key)
        if known is None:
            episodes[condition.key] = Episode(condition, now, now)
        else:
            episodes[condition.key] = replace(known, condition=condition, seen_at=now)
    said = tuple(at for at in memory.said if now - at < HOUR_MS)
    opened = {key: at for key, at in memory.opened.items() if now - at < rules.again_ms or key in episodes}
    return replace(memory, episodes=episodes, said=said, opened=opened)


def _not_ahead(memory: AlertMemory, now: int) -> AlertMemory:
    """The memory where the clock was put back: what happened at times that are still to come happened just now."""
    times = [*memory.said, *memory.opened.values()]
    times += [at for one in memory.episodes.values() for at in (one.since, one.seen_at, one.told_at, one.opened_at)]
    if max(times, default=now) <= now:
        return memory
    episodes = {
        key: replace(
            one, since=min(one.since, now), seen_at=min(one.seen_at, now), told_at=min(one.told_at, now),
            opened_at=min(one.opened_at, now),
        )
        for key, one in memory.episodes.items()
    }  # fmt: skip
    opened = {key: min(at, now) for key, at in memory.opened.items()}
    return replace(memory, episodes=episodes, opened=opened, said=tuple(min(at, now) for at in memory.said))


def due(memory: AlertMemory, now: int, rules: AlertRules, *, can_tell: bool) -> tuple[AlertMemory, Message | None]:
    """What is to be said now, if anything; and the memory without what needs no telling. Call `told` when it is said."""
    episodes: dict[str, Episode] = {}
    lines: list[AlertLine] = []
    passed = memory.passed
    full = len(memory.said) >= rules.per_hour
    for key, episode in memory.episodes.items():
        line = _line(episode, memory.opened.get(key), now, rules)
        over = now - episode.seen_at >= rules.settle_ms
        if line is None and over:
            passed += episode.crowded_out
            continue
        waits = line is not None and not episode.told_at
        missed, crowded_out = waits and not can_tell, waits and can_tell and full
        episodes[key] = replace(
            episode, missed=episode.missed or missed, crowded_out=episode.crowded_out or crowded_out
        )
        if line is not None:
            lines.append(line)
    memory = replace(memory, episodes=episodes, passed=passed)
    if not can_tell or full:
        return memory, None
    if memory.news:  # by itself, under its own key: whoever has decided it may decide it again in the next process
        news = memory.news[0]
        return memory, Message((AlertLine(news.key, news.key, news.words),))
    if not lines and not passed:
        return memory, None
    return memory, Message(tuple(lines[:MOST_LINES]), max(0, len(lines) - MOST_LINES), passed)


def told(memory: AlertMemory, message: Message, now: int) -> AlertMemory:
    """The memory after a message was said."""
    episodes, opened = dict(memory.episodes), dict(memory.opened)
    for line in message.lines:
        episode = episodes.get(line.key)
        if episode is None:
            continue
        if line.opens:
            opened[line.key] = now
        if line.closes:
            del episodes[line.key]
        else:
            first = now if line.opens else episode.opened_at
            episodes[line.key] = replace(episode, told_at=now, opened_at=first, missed=False)
    said = {line.id for line in message.lines}
    news = tuple(one for one in memory.news if one.key not in said)
    passed = memory.passed - message.passed
    return replace(memory, episodes=episodes, opened=opened, said=(*memory.said, now), news=news, passed=passed)


def open_now(memory: AlertMemory) -> tuple[Condition, ...]:
    """What is wrong for longer than its grace, told or not."""
    return tuple(one.condition for one in memory.episodes.values() if one.seen_at - one.since >= one.condition.grace_ms)


def _line(episode: Episode, opened_before: int | None, now: int, rules: AlertRules) -> AlertLine | None:
    """What is to be said of an episode now."""
    condition = episode.condition
    over = now - episode.seen_at >= rules.settle_ms
    fresh = opened_before is None or now - opened_before >= rules.again_ms
    key, hour = condition.key, now // rules.again_ms
    if episode.told_at:
        if over:
            return _over(episode) if condition.over else None
        if condition.over and now - episode.told_at >= rules.still_ms:
            words = f"⚠️ Still, since {_clock(episode.since)}: {condition.words}"
            return AlertLine(f"{key}:still:{now // rules.still_ms}", key, words)
        return None
    if not fresh or episode.seen_at - episode.since < condition.grace_ms:
        return None
    if not over:
        if episode.seen_at != now:
            return None  # it may be over: nothing is told as being wrong that is not seen to be
        # What is told once only has the same id for ever; the rest may come again in another hour.
        return AlertLine(key if not condition.over else f"{key}:{hour}", key, f"⚠️ {condition.words}", opens=True)
    if not episode.missed:
        return None
    words = f"⚠️ From {_clock(episode.since)} to {_clock(episode.seen_at)}: {condition.words} It is over."
    return AlertLine(f"{key}:was:{episode.since}", key, words, opens=True, closes=True)


def _over(episode: Episode) -> AlertLine:
    minutes = max(1, round((episode.seen_at - episode.since) / 60_000))
    words = f"✅ {episode.condition.over} (It lasted {minutes} min.)"
    return AlertLine(f"{episode.condition.key}:over:{episode.opened_at}", episode.condition.key, words, closes=True)


def _clock(at: int) -> str:
    return at_time(at).strftime("%H:%M UTC")
