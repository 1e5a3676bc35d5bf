"""Keys of the API as operators read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent_core.jsonvalue import Json
from agent_core.limits.spend import Measure, amount_words, share_words
from agent_core.text.durations import at_time

NONE_YET = "There is no key yet. Make one: outspoken keys add NAME"


def keys_lines(tables: Sequence[Mapping[str, Json]], currency: str, now: int) -> list[str]:
    """All of them, a line each."""
    return [_line(one, currency, now) for one in tables] or [NONE_YET]


def _line(one: Mapping[str, Json], currency: str, now: int) -> str:
    owner = f"  of {one.get('owner')}" if one.get("owner") else ""
    users = "  names users" if one.get("names_users") else ""
    today = _today(one.get("today"), currency)
    used = f"  today {today}" if today else ""
    return f"{one.get('name')!s:16} {one.get('begins')}…{owner}{users}{used}  {_state(one, now)}"


def _state(one: Mapping[str, Json], now: int) -> str:
    if one.get("revoked_at"):
        return f"revoked {_when(one.get('revoked_at'))}"
    expires = one.get("expires_at")
    if isinstance(expires, int) and expires:
        if expires <= now:
            return f"expired {_when(expires)}"
        return f"used {_when(one.get('used_at'))}, expires {_when(expires)}"
    return f"used {_when(one.get('used_at'))}"


def _today(used: Json, currency: str) -> str:
    """What a key used today, of how much; empty where nothing is counted."""
    if not isinstance(used, dict):
        return ""
    parts: list[str] = []
    for measure, name in ((Measure.TOKENS, "tokens"), (Measure.MONEY, "nanos")):
        spent, limit = used.get(name), used.get(f"{name}_limit")
        if not isinstance(spent, int) or not isinstance(limit, int):
            continue
        if limit:
            parts.append(share_words(measure, spent, limit, currency))
        elif spent or measure is Measure.TOKENS:
            parts.append(amount_words(measure, spent, currency))
    return ", ".join(parts)


def key_lines(one: Mapping[str, Json], currency: str, now: int) -> list[str]:
    """One of them, whole."""
    tools, thinking = one.get("tools"), one.get("thinking")
    if one.get("names_users"):
        whose = f"the users that its requests name, of {one.get('owner') or one.get('name')}"
    else:
        whose = str(one.get("owner") or "nobody: its requests have no memory, and no files but their own turn's")
    rows = [
        ("key", f"{one.get('name')}, begins with {one.get('begins')}"),
        ("made", f"{_when(one.get('made_at'))} by {one.get('by')}"),
        ("used", _when(one.get("used_at"))),
        *([("revoked", _when(one.get("revoked_at")))] if one.get("revoked_at") else []),
        *([("expires", _expiry(one.get("expires_at"), now))] if one.get("expires_at") else []),
        *(
            [("before", f"the one before it is good until {_when(one.get('before_until'))}")]
            if one.get("before_until")
            else []
        ),
        ("person", whose),
        ("models", _names(one.get("models")) or "all"),
        ("tools", "all of the gateway's" if tools is None else _names(tools) or "none of the gateway's"),
        ("from", _FROM[str(one.get("tools_from") or "")]),
        ("day", _day(one, currency)),
        *([("today", _today(one["today"], currency) or "not counted: there is no budget")] if "today" in one else []),
        ("minute", f"{one.get('minute_requests')} requests" if one.get("minute_requests") else "no limit of its own"),
        ("errors", str(one.get("errors") or "as the server is configured")),
        ("thinking", "as the server is configured" if thinking is None else "shown" if thinking else "not shown"),
    ]
    return [f"{name:9} {words}" for name, words in rows]


def _day(one: Mapping[str, Json], currency: str) -> str:
    tokens, money = one.get("day_tokens"), one.get("day_money")
    parts = [f"{tokens:,} tokens"] if isinstance(tokens, int) and tokens else []
    parts += [f"{money:,.2f} {currency}"] if isinstance(money, int | float) and money else []
    return ", ".join(parts) or "no limit of its own"


_FROM = {
    "": "as each request says",
    "none": "no tools at all",
    "client": "tools of the client only",
    "gateway": "tools of the gateway only",
    "both": "tools of the client and of the gateway together",
}


def _expiry(at: Json, now: int) -> str:
    return f"{_when(at)}{', so it opens nothing any more' if isinstance(at, int) and at <= now else ''}"


def _names(value: Json) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else ""


def _when(at: Json) -> str:
    return f"{at_time(at):%Y-%m-%d %H:%M} UTC" if isinstance(at, int) and at else "never"
