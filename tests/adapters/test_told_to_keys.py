"""What the API tells of models and of thoughts depends on whose key it is, and on what can be done here. Before a gateway that is made up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from typing_extensions import override

from adapters.contract.base import About
from adapters.contract.callers import Caller, KeyTerms
from adapters.http.sealing import Seals
from agent_core.failures.exits import ExitCode
from agent_core.turn.view import BubbleKind
from tests.adapters.scripted import ScriptGateway, ended, example, surface, text
from tests.callers import OneKey

DONE = ended(example(ExitCode.ANSWERED), text("a", "x", BubbleKind.ANSWER, final=True))


class Keys(OneKey):
    """One key that was made here, with its terms."""

    def __init__(self, terms: KeyTerms) -> None:
        super().__init__("key")
        self._terms = terms

    @override
    def who(self, shown: str, headers: Mapping[str, str]) -> Caller | None:
        return Caller("laptop", "ada", self._terms) if shown == "key" else None


class House(ScriptGateway):
    """Two models, and an agent that is held to people."""

    @override
    def about(self) -> About:
        return About("1", ("small", "large", "secretary"), rehearsal=False, held=frozenset({"secretary"}))


@pytest.mark.parametrize(
    ("models", "listed"),
    [
        ((), ["small", "large"]),
        (("large",), ["large"]),
        (("secretary", "small"), ["small", "secretary"]),
        (("another",), []),
    ],
)
async def test_a_key_is_told_of_the_models_that_it_may_ask_for(models: tuple[str, ...], listed: list[str]) -> None:
    bearer = {"Authorization": "Bearer key"}
    async with (
        surface(House([DONE]), callers=Keys(KeyTerms(models=models))) as url,
        aiohttp.ClientSession(headers=bearer) as http,
    ):
        async with http.get(f"{url}/v1/models") as answer:
            assert [one["id"] for one in (await answer.json())["data"]] == listed
        for name in ("small", "large", "secretary", "another"):
            async with http.get(f"{url}/v1/models/{name}") as answer:
                assert (answer.status == 200) is (name in listed)


def no_key() -> bytes:
    raise PermissionError


@pytest.mark.parametrize(
    ("seals", "left_out"), [(None, True), (Seals(no_key), True), (Seals(lambda: b"1" * 64), False)]
)
@pytest.mark.parametrize("asked", [True, False])
async def test_a_wish_for_sealed_thoughts_that_nobody_can_seal_is_said_to_be_left_out(
    seals: Seals | None, *, left_out: bool, asked: bool
) -> None:
    body: dict[str, Any] = {"input": "hi", "include": ["reasoning.encrypted_content"] if asked else []}
    async with (
        surface(ScriptGateway([DONE]), seals=seals) as url,
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/responses", json=body) as answer,
    ):
        told = (await answer.json())["outspoken"].get("left_out", [])
    assert told == (["include.reasoning.encrypted_content"] if asked and left_out else [])
