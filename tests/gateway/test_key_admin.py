"""What whoever runs the gateway changes of keys over HTTP: a secret is shown once and kept by nobody on the way, and an old key has a bounded end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from agent_core.limits.budgets import BudgetRules
from gateway.http.keyadmin import MOST_KEPT_SECONDS, KeyAdmin
from gateway.people.keys import KeyRefused


class Ring:
    """Keys that are made up, and what was asked of them."""

    def __init__(self) -> None:
        self.done: list[tuple[object, ...]] = []

    async def add(self, name: str, terms: object, nameable: object) -> tuple[dict[str, str], str]:
        return self._with(("add", name, terms, nameable))

    async def rotate(self, name: str, seconds: int) -> tuple[dict[str, str], str]:
        return self._with(("rotate", name, seconds))

    async def change(self, name: str, terms: object, nameable: object) -> dict[str, str]:
        return self._with(("change", name, terms, nameable))[0]

    async def revoke(self, name: str) -> dict[str, str]:
        return self._with(("revoke", name))[0]

    async def tables(self, rules: BudgetRules) -> list[dict[str, str]]:
        return [self._with(("list", rules))[0]]

    def _with(self, what: tuple[object, ...]) -> tuple[dict[str, str], str]:
        self.done.append(what)
        if what[1] == "bad":
            raise KeyRefused("A name like this is none.")
        return {"name": str(what[1])}, "sk-secret"


async def asked(body: Any, rules: BudgetRules | None = None) -> tuple[int, dict[str, Any], str, Ring]:
    """Status, answer, what caches are told, and what was done."""
    ring = Ring()
    hub = SimpleNamespace(nameable=lambda: "whom", budgets=SimpleNamespace(rules=rules) if rules is not None else None)
    app = web.Application()
    app.add_routes(KeyAdmin(cast("Any", ring), cast("Any", hub), "operators-key").routes())
    async with TestClient(TestServer(app), headers={"Authorization": "Bearer operators-key"}) as http:
        asking = http.get("/api/keys") if body is None else http.post("/api/keys", json=body)
        async with asking as response:
            return response.status, await response.json(), response.headers.get("Cache-Control", ""), ring


@pytest.mark.parametrize("verb", ["add", "rotate", "change", "revoke"])
async def test_a_secret_is_shown_where_one_is_made_and_stays_in_no_cache(verb: str) -> None:
    status, told, cached, ring = await asked({"verb": verb, "name": "laptop", "terms": {"owner": "ada"}})
    made = verb in ("add", "rotate")
    assert (status, told.get("secret"), cached) == (200, "sk-secret" if made else None, "no-store" if made else "")
    terms = ({"owner": "ada"}, "whom") if verb in ("add", "change") else (0,) if verb == "rotate" else ()
    assert ring.done == [(verb, "laptop", *terms)]


@pytest.mark.parametrize(
    ("keep", "kept"),
    [(3600, 3600), (MOST_KEPT_SECONDS, MOST_KEPT_SECONDS), (10**12, MOST_KEPT_SECONDS), (0, 0), (-5, 0), ("3600", 0), (None, 0)],
)  # fmt: skip
async def test_an_old_key_is_good_for_as_long_as_it_was_left_and_for_a_week_at_most(keep: object, kept: int) -> None:
    *_, ring = await asked({"verb": "rotate", "name": "laptop", "keep_seconds": keep})
    assert ring.done == [("rotate", "laptop", kept)]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"verb": "add"}, "name"),
        ({"verb": "add", "name": 7}, "name"),
        ([], "name"),
        ({"verb": "lend", "name": "laptop"}, "verb"),
        ({"verb": "add", "name": "laptop", "terms": ["owner", "ada"]}, "terms"),
        ({"verb": "change", "name": "laptop", "terms": "owner=ada"}, "terms"),
        ({"verb": "add", "name": "bad"}, None),
    ],
)
async def test_what_makes_no_sense_is_refused_in_words(body: Any, param: str | None) -> None:
    status, told, _, _ = await asked(body)
    assert (status, told["error"]["param"]) == (400, param)
    assert told["error"]["message"]


async def test_they_are_listed_with_what_they_used_by_the_budgets_that_count() -> None:
    rules = BudgetRules(zone_name="Europe/Rome")
    for given in (rules, None):
        _, told, _, ring = await asked(None, given)
        assert (len(told["keys"]), ring.done) == (1, [("list", given or BudgetRules())])
