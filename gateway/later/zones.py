"""By whose clocks a person's times are meant: their own if it is known, else the platform's word for it, else the gateway's."""

from __future__ import annotations

from adapters.contract.base import FromChat, Inbound
from agent_core.records import dataclass
from agent_core.store.store import Store
from agent_core.text.tongue import speak
from gateway.limits.whose import memory_of
from gateway.schedule.times import BadTime, zone_of, zone_shown

SETTING, TIMEZONE = "setting", "timezone"
"""Under which it is kept, beside what is remembered in the same name."""


@dataclass(frozen=True, slots=True)
class ZoneSaid:
    """A time zone, and who says that it is meant."""

    zone: str
    source: str
    """In words that follow "The time zone is"."""
    sure: bool
    """The person or their platform says so."""


async def zone_for(store: Store, inbound: Inbound, gateway: str) -> ZoneSaid:
    """The zone of whoever wrote a message; in a group that shares its conversation, of the group."""
    kept = {name: value for name, value, _ in await store.memory.entries(memory_of(inbound), SETTING)}
    theirs = inbound.chat.person.zone if isinstance(inbound, FromChat) else ""
    platform = inbound.surface.capitalize()
    for zone, source in (
        (kept.get(TIMEZONE, ""), speak("as it was set here")),
        (theirs, speak("as {platform} says of you", platform=platform)),
    ):
        try:
            if zone and zone_of(zone):
                return ZoneSaid(zone, source, sure=True)
        except BadTime:
            continue
    return ZoneSaid(gateway, speak("the gateway’s, since nobody has said yours"), sure=False)


def zone_words(said: ZoneSaid) -> str:
    """Which zone, and why, in a sentence."""
    return speak("The time zone is {zone}, {source}.", zone=zone_shown(said.zone), source=said.source)
