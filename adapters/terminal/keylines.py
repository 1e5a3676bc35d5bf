"""Keys of the API as operators read them. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_core.jsonvalue import Json

NONE_YET = "There is no key yet. Make one: outspoken keys add NAME"


def keys_lines(tables: Sequence[Mapping[str, Json]]) -> list[str]:
    """All of them, a line each."""
    return [_line(one) for one in tables] or [NONE_YET]


def _line(one: Mapping[str, Json]) -> str:
    state = f"revoked {_when(one.get('revoked_at'))}" if one.get("revoked_at") else f"used {_when(one.get('used_at'))}"
    owner = f"  of {one.get('owner')}" if one.get("owner") else ""
    users = "  names users" if one.get("names_users") else ""
    return f"{one.get('name')!s:16} {one.get('begins')}…{owner}{users}  {state}"


def key_lines(one: Mapping[str, Json], currency: str) -> list[str]:
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
        *(
            [("before", f"the one before it is good until {_when(one.get('before_until'))}")]
            if one.get("before_until")
            else []
        ),
        ("person", whose),
        ("models", _names(one.get("models")) or "all"),
        ("tools", "all of the gateway's" if tools is None else _names(tools) or "none of the gateway's"),
        ("day", _day(one, currency)),
        ("minute", f"{one.get('minute_requests')} requests" if one.get("minute_requests") else "no limit of its own"),
        ("errors", str(one.get("errors") or "as the endpoint does by itself")),
        ("thinking", "as the endpoint does by itself" if thinking is None else "shown" if thinking else "not shown"),
    ]
    return [f"{name:9} {words}" for name, words in rows]


def _day(one: Mapping[str, Json], currency: str) -> str:
    tokens, money = one.get("day_tokens"), one.get("day_money")
    parts = [f"{tokens:,} tokens"] if isinstance(tokens, int) and tokens else []
    parts += [f"{money:,.2f} {currency}"] if isinstance(money, int | float) and money else []
    return ", ".join(parts) or "no limit of its own"


def _names(value: Json) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else ""


def _when(at: Json) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d %H:%M} UTC" if isinstance(at, int) and at else "never"
