"""The section ``[schedule]``: prompts that start at certain times."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from adapters import platforms
from adapters.contract.settings import Section, complaint
from gateway.config.types import ZoneName, named_tables
from gateway.schedule import times
from gateway.schedule.times import BadTime, Cron, Every, IfMissed, Rule


class ScheduleEntry(Section):
    """A prompt that starts a turn in a chat at certain times, as if somebody had written it there."""

    name: str = Field(min_length=1, max_length=60, pattern=r"^[^/\s][^/]*$")
    """By what it is known, in the chat and in the database; another name is another entry."""
    prompt: str = Field(min_length=1, max_length=20_000)
    """What the model is asked to do."""
    chat: str
    """Where the answer goes: PLATFORM/CHAT or PLATFORM/CHAT/THREAD, with the platform's ids."""
    cron: str = ""
    """When: minute, hour, day of month, month, day of week, as Debian's cron."""
    every: str = ""
    """Or how often, such as 2 hours; full hours are those of UTC."""
    timezone: ZoneName = ""
    """By whose clocks cron counts; as in [schedule] if empty."""
    if_missed: IfMissed = IfMissed.RUN
    """What becomes of an occurrence whose time passed while the gateway was away: run it late, or skip it and say so."""
    late_seconds: int = Field(default=6 * 3600, ge=60, le=30 * 86_400)
    """Seconds that it may be late at most; what is later is skipped, and the chat is told."""

    @model_validator(mode="after")
    def _usable(self) -> ScheduleEntry:
        platform, _, chat = self.chat.partition("/")
        if platform not in platforms.names() or not chat or chat.startswith("/"):
            fix = (
                'Write for example chat = "telegram/12345678". The platforms are: ' + ", ".join(platforms.names()) + "."
            )
            raise complaint("entries", "an entry's chat is not PLATFORM/CHAT or PLATFORM/CHAT/THREAD", fix)
        if bool(self.cron) == bool(self.every):
            fix = 'Write cron = "0 8 * * mon-fri" or every = "2 hours".'
            raise complaint("entries", "an entry needs either cron or every", fix)
        try:
            times.check(self.rule(self.timezone or "UTC"))
        except BadTime as error:
            fix = 'Write for example cron = "0 8 * * mon-fri", every = "2 hours", timezone = "Europe/Berlin".'
            raise complaint("entries", f"an entry's time cannot be used: {str(error).rstrip('.')}", fix) from None
        return self

    def rule(self, zone: str) -> Rule:
        """When it happens; `zone` counts if the entry names none. Raises `BadTime` for a bad `every`."""
        if self.cron:
            return Cron(" ".join(self.cron.split()), self.timezone or zone)
        return Every(times.duration_seconds(self.every))


class Schedule(Section):
    """Reminders, and prompts that start at certain times."""

    timezone: ZoneName = Field(default="", examples=["Europe/Berlin"])
    """By whose clocks times of day are meant, as the tz database names it. Empty: the machine's own zone, or UTC if that has no
    name."""
    entries: Annotated[tuple[ScheduleEntry, ...], BeforeValidator(named_tables)] = Field(
        default=(),
        examples=[
            [{"name": "morning", "prompt": "What is new?", "chat": "telegram/12345678", "cron": "0 8 * * mon-fri"}]
        ],
    )
    """Prompts that start at certain times: tables with name, prompt, chat, and cron or every; further timezone, if_missed (run or
    skip) and late_seconds. In the file best as [[schedule.entries]]. From the environment: JSON."""

    @model_validator(mode="after")
    def _consistent(self) -> Schedule:
        names = [entry.name for entry in self.entries]
        if len(set(names)) < len(names):
            raise complaint("entries", "two entries have the same name", "Give each entry a name of its own.")
        return self
