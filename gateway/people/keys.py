"""Keys of the API: their form, whose one is that was shown, and what is made of one. Pure.

Theory. A key is 256 random bits, so its digest needs no slow function and no salt: nobody tries them all. It begins with our mark and a
lookup part; by that it is found, and only the digest decides. Whoever shows a key of our form is that key or nobody: it never falls back
to what who shows none may do, or a revoked key would do on a machine that needs none.

Laws (tests/gateway/test_keys.py): a key opens what it was made for, and nothing else does; a revoked one opens nothing, nor does one that was
rotated, but for the time that it was left.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from adapters.contract.callers import ANYBODY, CONFIGURED, USER_CHARS, Caller, ErrorStyle, KeyTerms, caller
from agent_core import storedjson
from agent_core.jsonvalue import Json
from agent_core.limits.budgets import NANOS, BudgetRules, Level, Payer, Pot
from agent_core.limits.spend import Budget
from agent_core.records import dataclass
from agent_core.store.apikeys.rows import ApiKeyRow
from agent_core.text.nearest import nearest
from agent_core.tools.offer import ToolsFrom
from gateway.limits.standing import TurnStanding

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MARK = "sk-outspoken-"
"""How our keys begin: clients and scanners of secrets know ``sk-``, and so does our redaction."""
LOOKUP_CHARS = 8
"""By so much of it a key is found; it is no secret."""
_FORM = re.compile(re.escape(MARK) + rf"([0-9a-z]{{{LOOKUP_CHARS}}})([A-Za-z0-9_-]{{43}})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")
_OWNER = re.compile(r"[A-Za-z0-9._@+-]{1,64}")
MOST_KEYS = 1_000
"""So many may be good at once: all of them are in memory."""
_NOBODYS = hashlib.sha256(b"").hexdigest()


class KeyRefused(Exception):
    """A key cannot be made or changed like that, in words."""


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A key as it is asked for at each request."""

    row: ApiKeyRow
    terms: KeyTerms

    def opened_by(self, prefix: str, digest: str, now: int) -> bool:
        """Whether what was shown is this key, and it is good. Takes as long for a wrong one as for the right one."""
        right = hmac.compare_digest(digest, self.row.digest if prefix == self.row.prefix else _NOBODYS)
        before = hmac.compare_digest(digest, self.row.before_digest if prefix == self.row.before_prefix else _NOBODYS)
        return self.good(now) and (right or (before and now < self.row.before_until))

    def good(self, now: int) -> bool:
        """It was neither revoked, nor has its time passed."""
        return self.row.revoked_at is None and (not self.terms.expires_at or now < self.terms.expires_at)


def digest_of(key: str) -> str:
    """As it is stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


def new_key(random: bytes) -> str:
    """A key from 37 random bytes: 5 to find it by, 32 that are secret."""
    import base64

    lookup = base64.b32encode(random[:5]).decode().lower().replace("=", "")
    return f"{MARK}{lookup}{base64.urlsafe_b64encode(random[5:37]).decode().rstrip('=')}"


def prefix_of(key: str) -> str:
    """The part by which a key of our form is found; empty if it is none."""
    found = _FORM.fullmatch(key)
    return found[1] if found else ""


def by_prefix(known: Collection[KnownKey]) -> Mapping[str, KnownKey]:
    """Keys by the parts by which they are found; those that were rotated by both."""
    return {one.row.before_prefix: one for one in known if one.row.before_prefix} | {
        one.row.prefix: one for one in known
    }


def who(
    shown: str,
    headers: Mapping[str, str],
    configured: str | None,
    known: Mapping[str, KnownKey],
    now: int,
    *,
    keyless: bool,
) -> Caller | None:
    """Who calls with the key that was shown (empty: none was); None: nobody who may. `keyless`: none is needed."""
    if configured is not None and hmac.compare_digest(
        shown.encode("utf-8", "surrogateescape"), configured.encode("utf-8", "surrogateescape")
    ):
        return ANYBODY
    if not shown.startswith(MARK):
        return ANYBODY if keyless else None
    prefix = prefix_of(shown)
    found = known.get(prefix)
    if found is None or not found.opened_by(prefix, digest_of(shown), now):
        return None
    return caller(found.row.name, found.terms, headers)


# ------------------------------------------------------------------ what is made of keys


def made(name: str, key: str, terms: KeyTerms, by: str, now: int) -> ApiKeyRow:
    """A new one. Raises `KeyRefused`."""
    if not _NAME.fullmatch(name):
        raise KeyRefused("A key's name has 1 to 40 letters, digits, dots, - or _, and begins with a letter or digit.")
    if name == CONFIGURED:
        raise KeyRefused(f"{CONFIGURED} is the name of the key in [server] api_key. Choose another one.")
    return ApiKeyRow(name, prefix_of(key), digest_of(key), stored_terms(terms), by, now, now)


def revoked(row: ApiKeyRow, now: int) -> ApiKeyRow:
    """It opens nothing any more."""
    changed = max(now, row.changed_at + 1)
    return replace(row, revoked_at=row.revoked_at or now, before_until=0, changed_at=changed)


def rotated(row: ApiKeyRow, key: str, now: int, keep_ms: int = 0) -> ApiKeyRow:
    """Another key under the same name; the one before is good for so long. Raises `KeyRefused`."""
    if row.revoked_at is not None:
        raise KeyRefused(f"{row.name} was revoked. Make a new key under another name.")
    if row.digest == digest_of(key):
        return row  # the same once more
    before = (row.prefix, row.digest, now + keep_ms) if keep_ms else ("", "", 0)
    return replace(
        row, prefix=prefix_of(key), digest=digest_of(key), before_prefix=before[0], before_digest=before[1],
        before_until=before[2], changed_at=max(now, row.changed_at + 1),
    )  # fmt: skip


def under(row: ApiKeyRow, terms: KeyTerms, now: int) -> ApiKeyRow:
    """The same key under other terms. Raises `KeyRefused`."""
    if row.revoked_at is not None:
        raise KeyRefused(f"{row.name} was revoked. Make a new key under another name.")
    return replace(row, terms=stored_terms(terms), changed_at=max(now, row.changed_at + 1))


def stored_terms(terms: KeyTerms) -> str:
    """As they are stored."""
    return storedjson.dumps(terms).decode()


@cache
def _terms() -> TypeAdapter[KeyTerms]:
    from pydantic import TypeAdapter

    return TypeAdapter(KeyTerms)


def terms_of(stored: str) -> KeyTerms:
    """What a key may, as it is stored. Raises ValueError if that cannot be read."""
    return _terms().validate_json(stored)


def known_key(row: ApiKeyRow) -> KnownKey:
    """A key as it is asked for. Raises ValueError if its terms cannot be read."""
    return KnownKey(row, terms_of(row.terms))


# ------------------------------------------------------------------ for operators


@dataclass(frozen=True, slots=True)
class Nameable:
    """What a key's lists may name."""

    models: Sequence[str] = ()
    """Models and agents; empty if nobody knows all of them just now."""
    tools: Sequence[str] = ()


def terms_from(asked: Mapping[str, Json], there: Nameable, before: KeyTerms | None = None) -> KeyTerms:
    """The terms that operators ask for; what they do not name stays as it was. Raises `KeyRefused`."""
    if unknown := sorted(set(asked) - set(_READERS)):
        raise KeyRefused(f"A key has no {unknown[0]}. It has: {', '.join(_READERS)}.")
    values = {name: _READERS[name](name, value) for name, value in asked.items()}
    terms = replace(before or KeyTerms(), **values)
    if terms.owner and not _OWNER.fullmatch(terms.owner):
        raise KeyRefused("An owner has 1 to 64 letters, digits, dots, @, +, - or _.")
    for what, given, possible in (("model or agent", terms.models, there.models), ("tool", terms.tools, there.tools)):
        for name in given or ():
            if possible and name not in possible:
                near = nearest(name, possible)
                hint = f"Did you mean {near[0]}?" if near else f"There is: {', '.join(possible)}."
                raise KeyRefused(f"There is no {what} called {name}. {hint}")
    return terms


def _text(name: str, value: Json) -> str:
    if not isinstance(value, str) or len(value) > USER_CHARS:
        raise KeyRefused(f"{name} must be text.")
    return value


def _flag(name: str, value: Json) -> bool:
    if not isinstance(value, bool):
        raise KeyRefused(f"{name} must be true or false.")
    return value


def _maybe(name: str, value: Json) -> bool | None:
    return None if value is None else _flag(name, value)


def _count(name: str, value: Json) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise KeyRefused(f"{name} must be a whole number, 0 or more.")
    return value


def _names(name: str, value: Json) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > 100:
        raise KeyRefused(f"{name} must be a list of names.")
    return tuple(dict.fromkeys(_text(name, one) for one in value))


def _tools(name: str, value: Json) -> tuple[str, ...] | None:
    return None if value is None else _names(name, value)


def _errors(name: str, value: Json) -> ErrorStyle | None:
    if value in (None, ""):
        return None
    try:
        return ErrorStyle(_text(name, value))
    except ValueError:
        raise KeyRefused(f"{name} must be {' or '.join(ErrorStyle)}.") from None


def _tools_from(name: str, value: Json) -> ToolsFrom | None:
    if value in (None, ""):
        return None
    try:
        return ToolsFrom(_text(name, value))
    except ValueError:
        raise KeyRefused(f"{name} must be one of: {', '.join(ToolsFrom)}.") from None


_READERS = {
    "owner": _text, "names_users": _flag, "models": _names, "tools": _tools, "day_tokens": _count, "day_nanos": _count,
    "minute_requests": _count, "errors": _errors, "thinking": _maybe, "tools_from": _tools_from, "expires_at": _count,
}  # fmt: skip
"""How each of the terms is read."""


def table_of(known: KnownKey) -> dict[str, Json]:
    """A key as operators see it: nothing of it opens anything."""
    row, terms = known.row, known.terms
    return {
        "name": row.name,
        "begins": f"{MARK}{row.prefix}",
        "by": row.by,
        "made_at": row.made_at,
        "used_at": row.used_at or None,
        "revoked_at": row.revoked_at,
        "before_until": row.before_until or None,
        "owner": terms.owner,
        "names_users": terms.names_users,
        "models": list(terms.models),
        "tools": None if terms.tools is None else list(terms.tools),
        "day_tokens": terms.day_tokens,
        "day_money": terms.day_nanos / NANOS,
        "minute_requests": terms.minute_requests,
        "errors": terms.errors.value if terms.errors else None,
        "thinking": terms.thinking,
        "tools_from": terms.tools_from.value if terms.tools_from else None,
        "expires_at": terms.expires_at or None,
    }


def pot_of(known: KnownKey, rules: BudgetRules, now: int) -> Pot | None:
    """Where what a key uses today is counted; None where nothing is."""
    days = TurnStanding(None, known.terms, known.row.name).days
    if not (rules.active or days):
        return None
    payer = Payer("", "", key=known.row.name, limits=days)
    return next((pot for pot in rules.pots(payer, "", now) if pot.budget is Budget.KEY), None)


def used_of(pot: Pot, level: Level) -> dict[str, Json]:
    """What a key used today, of what it may use in all (0: no limit)."""
    return {
        "tokens": level.spent.tokens,
        "tokens_limit": pot.limit.tokens,
        "nanos": level.spent.nanos,
        "nanos_limit": pot.limit.nanos,
        "calls": level.calls,
        "until": pot.until,
    }
