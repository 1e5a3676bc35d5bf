"""Who may talk: denied unless allowed. Pure.

Somebody may talk who is on the configured list, or was approved (by ``outspoken access approve``, by an admin in a chat), or if
the account is open to all. A stranger is told so once, politely; where pairing is on, with a short-lived code that whoever runs
the gateway can approve. Groups count by the person, not by the chat.

Laws (tests/gateway/test_chat_decisions.py): who was revoked may not talk, whatever the list of approved people says; a stranger is told
at most once a code's life; a code is not shown in a group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum, auto

from adapters.contract.chat import ChatKind, ChatPerson
from agent_core.jsonvalue import Json
from agent_core.records import dataclass
from agent_core.store.people.rows import PersonRow, PersonState
from agent_core.text.tongue import speak

CODE_LIFE_MS = 3_600_000
MOST_PENDING = 50
"""Codes that may be open for an account at once: beyond that, strangers are refused without one."""
_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_CHARS = 8
API_ACCOUNT, PAGE_ACCOUNT = "api", "web"
"""In which people are who come by a key, a proxy or a name that a request gives."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """What the configuration says about an account."""

    allow: frozenset[str] = frozenset()
    """Ids, or user names with @, in small letters."""
    admins: frozenset[str] = frozenset()
    open: bool = False
    pairing: bool = True


class PersonStanding(Enum):
    """What a person may do."""

    ADMIN = auto()
    ALLOWED = auto()
    STRANGER = auto()


@dataclass(frozen=True, slots=True)
class StrangerRefused:
    """A stranger's message is refused: what is told (nothing, if they know), and what is noted of them."""

    words: str
    row: PersonRow | None
    """To be stored; None if nothing changes."""


def names_of(person: ChatPerson) -> frozenset[str]:
    """How a list may name a person."""
    number = person.id.lower()  # Slack's ids have capitals
    return frozenset({number, f"@{person.username.lower()}"} if person.username else {number})


def rules(allow: Iterable[str], admins: Iterable[str], *, open_to_all: bool, pairing: bool) -> AccessRules:
    """Rules from configured lists."""
    return AccessRules(_small(allow), _small(admins), open_to_all, pairing)


def _small(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.strip().lower() for name in names if name.strip())


def standing(person: ChatPerson, rules: AccessRules, known: PersonRow | None) -> PersonStanding:
    """What a person may do."""
    names = names_of(person)
    if names & rules.admins:
        return PersonStanding.ADMIN
    if known is not None and known.state is PersonState.REVOKED:
        return PersonStanding.STRANGER
    if known is not None and known.state is PersonState.ADMIN:
        return PersonStanding.ADMIN
    approved = known is not None and known.state is PersonState.APPROVED
    return PersonStanding.ALLOWED if rules.open or names & rules.allow or approved else PersonStanding.STRANGER


def listed(people: Sequence[PersonRow], rules: AccessRules, account: str) -> list[str]:
    """The ids of those who may talk, as far as they are known by id: who was approved last comes first, then the configured ones."""
    mine = {row.person: row.state for row in people if row.account == account}
    approved = [one for one, state in mine.items() if state in (PersonState.APPROVED, PersonState.ADMIN)]
    configured = sorted(one for one in rules.allow | rules.admins if not one.startswith("@"))
    revoked = [one for one, state in mine.items() if state is PersonState.REVOKED]
    return [one for one in dict.fromkeys((*approved, *configured)) if one not in revoked or one in rules.admins]


def code_of(seed: int, chars: int = CODE_CHARS) -> str:
    """A code from 63 random bits; each letter takes 5 of them."""
    letters: list[str] = []
    for _ in range(chars):
        seed, index = divmod(seed, len(_ALPHABET))
        letters.append(_ALPHABET[index])
    return "".join(letters)


def refuse(
    person: ChatPerson, account: str, kind: ChatKind, rules: AccessRules, known: PersonRow | None, pending: int, now: int, seed: int
) -> StrangerRefused:  # fmt: skip
    """What happens to a stranger's message. `pending` is how many codes are open for the account; `seed` makes a new code."""
    if known is not None and known.state is PersonState.REVOKED:
        return StrangerRefused("", None)
    fresh = PersonRow(account, person.id, PersonState.REFUSED, person.name, at=now)
    if not rules.pairing or pending >= MOST_PENDING:
        if known is not None and (known.state is PersonState.REFUSED or known.code_until > now):
            return StrangerRefused("", None)
        return StrangerRefused(
            speak("I am a private assistant and may not talk to everybody. Please ask whoever runs me for access."),
            fresh,
        )
    if known is not None and known.state is PersonState.PENDING and known.code_until > now:
        return StrangerRefused("", None)
    if kind is ChatKind.GROUP:
        if known is not None:
            return StrangerRefused("", None)
        return StrangerRefused(
            speak("I do not know you yet. Please write to me in private, and I will tell you how to get access."), fresh
        )
    code = code_of(seed)
    row = replace(fresh, state=PersonState.PENDING, code=code, code_until=now + CODE_LIFE_MS)
    words = speak(
        "Hello {name}! I do not know you yet. Give this code to whoever runs me, and they can let you in: {code}\nIt is valid for an hour. (They run: outspoken access approve {code})",
        name=person.name,
        code=code,
    )
    return StrangerRefused(words, row)


def typed_code(words: str) -> str:
    """A code as it was copied or typed: in any case, with any dashes, and with the invisible marks that set it apart in text from right to left."""
    return "".join(letter for letter in words.upper() if letter.isalnum())


def by_code(people: Sequence[PersonRow], code: str, now: int) -> PersonRow | None:
    """Who was shown this code, if it is still valid."""
    wanted = typed_code(code)
    return next((p for p in people if p.code and p.code == wanted and p.code_until > now), None)


def everybody(decided: Sequence[PersonRow], spoke: Sequence[PersonRow], owners: Collection[str]) -> list[PersonRow]:
    """Whom an operator can name: about whom somebody decided, then who else has spoken. Whoever has the page open without a key is nobody:
    what stands for them is their browser's secret. `owners`: of keys.

    Somebody who came by a key or a proxy is one person on the page and in the API, in the API's name: so they are forgotten.
    """
    found = {(row.account, row.person): row for row in decided}
    for row in spoke:
        if row.account == PAGE_ACCOUNT and row.person not in owners and "/" not in row.person:
            continue
        account = API_ACCOUNT if row.account == PAGE_ACCOUNT else row.account
        found.setdefault((account, row.person), replace(row, account=account))
    return list(found.values())


def account_and_person(words: str) -> tuple[str, str] | None:
    """Who is meant by ACCOUNT/PERSON; None if that names nobody. A chat's account has a slash (telegram/4711), its people have none; people of the API
    may have one (api/proxy/ada).
    """
    account, slash, person = words.partition("/")
    if account not in (API_ACCOUNT, PAGE_ACCOUNT):
        account, slash, person = words.rpartition("/")
    return (account, person) if account and slash and person else None


def to_approve(people: Sequence[PersonRow], who: str, now: int) -> PersonRow | None:
    """Who is meant by a code that is still valid, an id, or ACCOUNT/ID; None if nobody."""
    return by_code(people, who, now) or next((row for row in people if who.strip() in _ids_of(row)), None)


def _ids_of(row: PersonRow) -> tuple[str, str]:
    return row.person, f"{row.account}/{row.person}"


class LetInElsewhere(Exception):
    """A key or a proxy lets them in, so nothing here shuts them out; the words say what does."""


def to_revoke(people: Sequence[PersonRow], who: str) -> PersonRow | None:
    """Who is meant by an id, or ACCOUNT/ID; None if nobody. Raises `LetInElsewhere`."""
    found = [row for row in people if who.strip() in _ids_of(row)]
    here = next((row for row in found if row.account != API_ACCOUNT), None)
    if found and here is None:
        raise LetInElsewhere(
            f"{found[0].person} comes by a key of the API, by a proxy or under a name that a request gave. `outspoken keys revoke` ends a key; whom a proxy lets in, it decides itself."
        )
    return here


def approved(row: PersonRow, by: str, now: int, *, admin: bool = False) -> PersonRow:
    """A person who may talk from now on."""
    state = PersonState.ADMIN if admin else PersonState.APPROVED
    return replace(row, state=state, code="", code_until=0, at=now, by=by)


def revoked(row: PersonRow, by: str, now: int) -> PersonRow:
    """A person who may not talk any more."""
    return replace(row, state=PersonState.REVOKED, code="", code_until=0, at=now, by=by)


MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Recent:
    """When a person's last messages came, to see who is too fast. A message that has a key counts once, however often it is brought."""

    counted: tuple[tuple[int, str], ...] = ()

    def with_one(self, at: int, limit: int, key: str = "", now: int | None = None) -> tuple[Recent, int]:
        """With one more message, said `at` that time and brought `now`, and how many milliseconds too early it is (0: it is within the limit a minute)."""
        now = at if now is None else now
        kept = tuple(one for one in self.counted if now - one[0] < MINUTE_MS or abs(at - one[0]) < MINUTE_MS)
        brought = [when for when, one in kept if key and one == key]
        if brought:
            return Recent(kept), max(0, brought[0] - now)
        held = now - at < MINUTE_MS  # then what is held counts, for when its time comes
        near = sorted(when for when, _ in kept if abs(at - when) < MINUTE_MS or (held and when > now))
        if limit and len(near) >= limit:
            return Recent(kept), near[-limit] + MINUTE_MS - at
        return Recent((*kept, (at, key))), 0

    def with_one_later(
        self, at: int, limit: int, most: int, key: str = "", now: int | None = None
    ) -> tuple[Recent, int]:
        """With one more message that is too early, when its time comes, and in how many milliseconds that is; 0 if `most` wait for theirs
        already, and this one is not taken."""
        now = at if now is None else now
        kept, early = self.with_one(at, limit, key, now)
        if not early or (key and kept.has(key)):
            return kept, early
        if sum(when > now for when, _ in kept.counted) >= most:
            return kept, 0
        return Recent((*kept.counted, (now + early, key))), early

    def has(self, key: str) -> bool:
        """One with this key is counted, as far as is known."""
        return any(one == key for _, one in self.counted)

    def without(self, key: str) -> Recent:
        """As if the one with this key had not come."""
        return Recent(tuple((at, one) for at, one in self.counted if one != key))


def table_of(row: PersonRow) -> dict[str, Json]:
    """A person as operators see them."""
    shown = ("account", "person", "name", "state", "code", "by", "at")
    return {name: getattr(row, name) for name in shown} | {"state": row.state.value}
