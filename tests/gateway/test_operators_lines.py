"""What operators read of keys and of gateways beside each other: what has ended is not shown as if it went on, and what one lacks is told of that one."""

from __future__ import annotations

import pytest

from adapters.terminal.keylines import keys_lines
from adapters.terminal.nodelines import unlike
from agent_core.jsonvalue import Json

NOW = 1_700_000_000_000


@pytest.mark.parametrize(
    ("expires", "revoked", "begins"),
    [
        (None, None, "used"), (0, None, "used"), (NOW + 1, None, "used"), (NOW, None, "expired"), (NOW - 1, None, "expired"),
        (NOW + 1, NOW - 5, "revoked"), (NOW - 1, NOW - 5, "revoked"),
    ],
)  # fmt: skip
def test_a_key_is_shown_as_used_as_long_as_it_can_be(expires: int | None, revoked: int | None, begins: str) -> None:
    key: dict[str, Json] = {"name": "ci", "begins": "sk", "used_at": NOW, "expires_at": expires, "revoked_at": revoked}
    (line,) = keys_lines([key], "USD", NOW)
    assert line.partition("sk…")[2].strip().startswith(begins)


def test_who_serves_less_than_the_others_is_named_with_what_it_lacks() -> None:
    nodes: list[dict[str, Json]] = [
        {"node": 1, "serves": ["telegram/1", "slack/T"]}, {"node": 2, "serves": ["slack/T"]}, {"node": 3, "serves": ["telegram/1", "slack/T"]},
        {"node": 4},
    ]  # fmt: skip
    told = [what for what, _ in unlike(nodes) if "does not serve" in what]
    assert len(told) == 1
    assert told[0].startswith("Gateway 2 does not serve telegram/1")


@pytest.mark.parametrize(
    ("version", "other", "told"), [("1.2", True, True), ("1.2", False, False), ("1.3", True, False)]
)
def test_other_settings_are_told_of_gateways_of_one_version_alone(version: str, *, other: bool, told: bool) -> None:
    """While one is replaced after the other, a newer one has settings that the older ones know nothing of."""
    here: dict[str, Json] = {"node": 1, "here": True, "version": "1.2", "settings": {"model": "a", "session": "b"}}
    settings: dict[str, Json] = {"model": "c" if other else "a", "session": "b"}
    found = [what for what, _ in unlike([here, {"node": 2, "version": version, "settings": settings}])]
    assert ["[model]" in one for one in found] == ([True] if told else [])
