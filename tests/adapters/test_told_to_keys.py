"""What the API tells of models and of thoughts depends on whose key it is, and where a request goes on on what it goes on from. Before a gateway that is made up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from typing_extensions import override

from adapters.contract.base import About, FromApi, KeptResponse, SessionKey, Ticket
from adapters.contract.callers import Caller, KeyTerms
from adapters.http import sealing
from adapters.http.sealing import Seals
from agent_core.failures.exits import ExitCode
from agent_core.messages import Message
from agent_core.turn.state import ThoughtText
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


async def test_a_seal_is_opened_for_whose_it_is_and_only_if_it_is_not_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seals = Seals(lambda: b"1" * 64)
    assert await seals.at_hand()
    sealed = seals.seal({"thought": "x"}, "ada")
    monkeypatch.setattr(sealing, "MOST_CHARS", len(sealed))
    assert seals.opened(sealed, "ada") == {"thought": "x"}
    assert seals.opened(sealed, "ben") is None
    monkeypatch.setattr(sealing, "MOST_CHARS", len(sealed) - 1)
    assert seals.opened(sealed, "ada") is None


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("configured", [True, False])
@pytest.mark.parametrize("of_key", [True, False, None])
async def test_what_a_model_thinks_is_shown_as_the_key_says_and_else_as_is_configured(
    of_key: bool | None, *, configured: bool, stream: bool
) -> None:
    thought = ThoughtText()
    thought.add("I THINK")
    gateway = ScriptGateway([replace(DONE, thought=thought)])
    body = {"messages": [{"role": "user", "content": "hi"}], "stream": stream}
    async with (
        surface(gateway, callers=Keys(KeyTerms(thinking=of_key)), thinking=configured) as url,
        aiohttp.ClientSession(headers={"Authorization": "Bearer key"}) as http,
        http.post(f"{url}/v1/chat/completions", json=body) as answer,
    ):
        assert ("I THINK" in await answer.text()) is (configured if of_key is None else of_key)


class Before(ScriptGateway):
    """A response was given before, in a conversation of its own."""

    def __init__(self, *, latest: bool, stateless: bool) -> None:
        super().__init__([DONE])
        history = () if stateless else None
        self.kept = KeptResponse(
            Ticket(5, "s_9", duplicate=False),
            FromApi(
                account="api", platform_key="k", session=PLACE, input=(), surface="api", memory_scope="api",
                own_history=history, response={},
            ),
            1_000,
            latest=latest,
        )  # fmt: skip

    async def response(self, session: str, number: int) -> KeptResponse:
        assert (session, number) == ("s_9", 5)
        return self.kept

    async def told_after(self, _: KeptResponse) -> Sequence[Message]:
        return ({"role": "user", "content": "before"}, {"role": "assistant", "content": "answered"})


PLACE = SessionKey("api", "response", "x_9")


@pytest.mark.parametrize("latest", [True, False])
@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("brings", [True, False])
async def test_who_goes_on_from_a_response_is_in_its_conversation_if_nothing_came_there_since_and_nothing_is_brought(
    *, latest: bool, stateless: bool, store: bool, brings: bool
) -> None:
    """Else in one of their own that begins with what was said until then: nothing is said twice, and nothing is lost."""
    gateway = Before(latest=latest, stateless=stateless)
    said = [{"role": "user", "content": "more"}, {"role": "assistant", "content": "of it"}] if brings else []
    body = {"input": [*said, {"role": "user", "content": "hi"}], "previous_response_id": "resp_s_9_5", "store": store}
    async with (
        surface(gateway) as url,
        aiohttp.ClientSession() as http,
        http.post(f"{url}/v1/responses", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
    (taken,) = gateway.taken
    goes_on = latest and store and not brings and not stateless
    assert (taken.session == PLACE) is goes_on
    before = [one["content"] for one in taken.own_history or ()]
    assert before == ([] if goes_on else ["before", "answered", *(one["content"] for one in said)])


async def test_a_conversation_is_gone_on_with_once_more_when_what_went_on_there_is_stored() -> None:
    gateway = Before(latest=True, stateless=False)
    async with surface(gateway) as url, aiohttp.ClientSession() as http:
        for words in ("one", "two"):
            body = {"input": words, "previous_response_id": "resp_s_9_5"}
            async with http.post(f"{url}/v1/responses", json=body) as answer:
                assert answer.status == 200, await answer.text()
    assert [(taken.session, taken.input[0].content) for taken in gateway.taken] == [(PLACE, "one"), (PLACE, "two")]


@pytest.mark.parametrize("errand", [True, False])
async def test_an_errand_knows_what_it_is_for_and_is_no_part_of_it(*, errand: bool) -> None:
    gateway = Before(latest=True, stateless=False)
    body = {"input": "A title, please", "previous_response_id": "resp_s_9_5"}
    headers = {"X-Outspoken-Task": "title"} if errand else {}
    async with (
        surface(gateway) as url,
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{url}/v1/responses", json=body) as answer,
    ):
        assert answer.status == 200, await answer.text()
    (taken,) = gateway.taken
    assert ((taken.session == PLACE), len(taken.own_history or ())) == ((False, 2) if errand else (True, 0))
