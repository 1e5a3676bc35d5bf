"""One person with several accounts: which conversations they reach, what a code looks like, what is said. Pure.

A *place* is a private chat (or a thread of one); it is named by the key of the session that it has of its own. Another session
goes on in a place while the place *continues* the place whose own session that is. Groups are no places.

Laws (tests/gateway/test_people.py): in a place goes on its own session, or that of a place whose account is joined with this
one; a link counts only while both of its accounts may talk; what goes on in somebody's place never does for somebody else who
writes there; a code is read as it was shown, in any case and with any dashes; nobody tries more than so many wrong codes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

from adapters.contract.base import SessionKey
from adapters.contract.chat import ChatOrigin
from agent_core.records import dataclass
from agent_core.store.people.rows import LinkCode, LinkOutcome, LinkRow, PlaceRow
from agent_core.text.shown import quoted
from agent_core.text.tongue import command, sentence, speak, speak_many
from gateway.people.access import code_of

Account: TypeAlias = tuple[str, str]
"""(account of the bot, person)"""
Counts: TypeAlias = Callable[[LinkRow], bool]
"""Whether a joined account may talk."""

CODE_LIFE_MS = 600_000
CODE_CHARS = 10
"""50 bits."""
MOST_ACCOUNTS = 8
WRONG_MOST = 5
"""Wrong codes that an account may type within a code's life."""
LISTED = 9
"""Conversations that are shown."""

OFF = sentence(
    "Joining accounts and continuing a conversation elsewhere is switched off here. Whoever runs me can allow it: link = true under [people]."
)
ONLY_PRIVATE = sentence(
    "That works in a private chat only: a conversation of a group belongs to the group and stays there. Write to me in private."
)
NOT_YOURS = sentence("This chat is somebody else's as well, so nothing of yours can go on in it.")


def account_in(origin: ChatOrigin) -> Account:
    """Whose message it is."""
    return f"{origin.address.platform}/{origin.address.account}", origin.person.id


def joined(links: Collection[LinkRow], me: Account, counts: Counts) -> tuple[LinkRow, ...]:
    """The accounts that are one person's with this one, this one among them; empty if there are no others."""
    who = next((one.who for one in links if (one.account, one.person) == me and counts(one)), None)
    found = tuple(one for one in links if one.who == who and counts(one))
    return found if len(found) > 1 else ()


def reach(links: Collection[LinkRow], me: Account, counts: Counts) -> frozenset[Account]:
    """The accounts whose private conversations this one reaches."""
    return frozenset({me, *((one.account, one.person) for one in joined(links, me, counts))})


def goes_on(
    place: str, me: Account, places: Mapping[str, PlaceRow], links: Collection[LinkRow], counts: Counts
) -> str:  # fmt: skip
    """The place whose session goes on in `place` for what `me` writes there."""
    here = places.get(place)
    if here is None or here.continues is None or (here.account, here.person) != me:
        return place
    there = places.get(here.continues)
    if there is None or (there.account, there.person) not in reach(links, me, counts):
        return place
    return there.place


def new_code(seed: int) -> str:
    """A code from 63 random bits."""
    return code_of(seed, CODE_CHARS)


def shown_code(code: str) -> str:
    """A code as a person reads it."""
    half = len(code) // 2
    return f"{code[:half]}-{code[half:]}"


@dataclass(frozen=True, slots=True)
class Tries:
    """When an account typed wrong codes."""

    times: tuple[int, ...] = ()

    def wrong(self, now: int) -> Tries:
        """With one more."""
        return Tries((*self.times, now)[-WRONG_MOST:])

    def wait_ms(self, now: int) -> int:
        """How long nothing is tried any more; 0 if it may be."""
        recent = [at for at in self.times if now - at < CODE_LIFE_MS]
        return recent[0] + CODE_LIFE_MS - now if len(recent) >= WRONG_MOST else 0


# ---------------------------------------------------------------------- words


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that can be continued."""

    place: str
    at: int
    words: str
    """How it began."""


def platform_of(account_or_place: str) -> str:
    """The name of its platform, as people write it."""
    return account_or_place.partition("/")[0].capitalize()


def where_words(place: str, own: str) -> str:
    """Where a conversation is at home, as seen from the place `own`."""
    if place == own:
        return speak("this chat")
    key = SessionKey.of(place)
    return speak("{platform}, a thread", platform=platform_of(place)) if key.thread else platform_of(place)


def age_words(ms: int) -> str:
    """How long ago something was."""
    minutes = max(0, ms) // 60_000
    if minutes < 1:
        return speak("just now")
    if minutes < 60:
        return speak_many("{count} minute ago", "{count} minutes ago", minutes)
    if minutes < 1_440:
        return speak_many("{count} hour ago", "{count} hours ago", minutes // 60)
    return speak_many("{count} day ago", "{count} days ago", minutes // 1_440)


def one_of(conversation: Conversation, own: str, now: int) -> str:
    """A conversation in a line."""
    where = where_words(conversation.place, own)
    return f"{where}, {age_words(now - conversation.at)}: {quoted(conversation.words)}"


def list_words(found: Sequence[Conversation], own: str, current: str, now: int) -> str:
    """What can be continued."""
    here = speak("  ◂ goes on here")
    lines = [
        f"{number}. {one_of(one, own, now)}{here if one.place == current else ''}"
        for number, one in enumerate(found, 1)
    ]
    tail = speak("Continue one here: {/resume NUMBER}. What was said in groups stays there, and is not listed.")
    return (
        "\n".join([*lines, tail])
        if lines
        else speak("There is no private conversation of yours yet that could go on here.")
    )


def resumed_words(chosen: Conversation, own: str, now: int, *, busy: bool) -> str:
    """Said when a conversation goes on in another chat."""
    words = speak("This goes on here now – {what}", what=one_of(chosen, own, now))
    if chosen.place != own:
        both = speak(
            "I answer here what you write here, and there what you write there. {/new} or another {/resume} lets go of it."
        )
        words += f"\n{both}"
    waits = speak("An answer is on its way there; what you write here waits for it.")
    return f"{words}\n{waits}" if busy else words


def accounts_words(accounts: Sequence[LinkRow], me: Account) -> str:
    """Which accounts are joined."""
    if not accounts:
        return speak("This account is joined with no other.")
    this = speak(" (this one)")
    lines = [
        f"{number}. {platform_of(one.account)}, {one.name or one.person}"
        f"{this if (one.account, one.person) == me else ''}"
        for number, one in enumerate(accounts, 1)
    ]
    return "\n".join(
        [
            speak("Joined accounts:"),
            *lines,
            speak("{/unlink} takes this one out, {/unlink NUMBER} another one; {/resume} continues."),
        ]
    )


def ask_words(code: str) -> str:
    """Said with a new code."""
    minutes = CODE_LIFE_MS // 60_000
    return speak(
        "To join another account, write there in private, within {minutes} minutes: {command}\nType it only into an account of your own, and give it to nobody: joined accounts can read and continue each other's private conversations.",
        minutes=minutes,
        command=command(f"link {shown_code(code)}"),
    )


def redeemed_words(outcome: LinkOutcome, code: LinkCode | None) -> str:
    """Said to whoever typed a code."""
    match outcome:
        case LinkOutcome.JOINED:
            other = f"{platform_of(code.account)}, {code.name}" if code is not None else speak("the other account")
            return speak(
                "Joined with {other}. Each of the two can now read and continue the other's private conversations: {/resume}. If that account is not yours: {/unlink}.",
                other=other,
            )
        case LinkOutcome.UNKNOWN:
            return speak(
                "There is no such code (any more). A code works once, and for ten minutes; {/link} shows a new one."
            )
        case LinkOutcome.OWN:
            return speak("That is this account's own code. Type it in the other account.")
        case LinkOutcome.SAME:
            return speak("These two accounts are joined already.")
        case LinkOutcome.ELSEWHERE:
            return speak("Both accounts are joined with others already. {/unlink} one of them first, then try again.")
        case LinkOutcome.FULL:
            return speak(
                "More than {count} accounts cannot be joined. {/unlink NUMBER} takes one out.",
                count=MOST_ACCOUNTS,
            )


def joined_there_words(platform: str, name: str) -> str:
    """Said where a code was asked for."""
    return speak(
        "{platform}, {name}: this account was joined with yours by your code. It can read and continue your private conversations. If it is not yours, {/unlink} at once.",
        platform=platform,
        name=name,
    )
