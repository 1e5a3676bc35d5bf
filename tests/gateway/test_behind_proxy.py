"""Whom a reverse proxy names: each has what is theirs, and nobody is anybody who is not named by one that is trusted."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import make_mocked_request
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from adapters.contract.callers import EVERYTHING, PROXY, proxied
from adapters.http.behindproxy import BehindProxy
from adapters.http.common import NAMED
from gateway.config.server import Server
from gateway.people.keys import KeyRefused, made
from tests.serving import served

HEADER = "X-Forwarded-User"
TRUSTING = {
    "OUTSPOKEN_SERVER__IDENTITY_HEADER": HEADER,
    "OUTSPOKEN_SERVER__TRUSTED_PROXIES": '["127.0.0.1"]',
}
ADA, BOB = {HEADER: "ada@example.org"}, {HEADER: "bob@example.org"}


def named(peer: str, said: list[str], *, header: str = HEADER, proxied_by: bool = True) -> str | None:
    headers = CIMultiDict(
        [("Host", "a"), *((HEADER, one) for one in said), *([("Via", "1.1 p")] if proxied_by else [])]
    )
    request = make_mocked_request("GET", "/", headers=headers)
    BehindProxy(header, Server(trusted_proxies=("10.0.0.0/8",)).door_limits(100).trusted).note(request, peer)
    return request.get(NAMED)


names = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=30)


@given(names, st.sampled_from(["192.0.2.7", "", "127.0.0.1", "11.0.0.1", "::1", "nonsense"]))
def test_from_any_other_address_nobody_is_anybody_by_a_header(name: str, peer: str) -> None:
    assert named(peer, [name]) is None


@given(names)
def test_without_a_configured_header_it_is_passed_over(name: str) -> None:
    assert named("10.0.0.7", [name], header="") is None


@given(names)
def test_a_trusted_proxy_names_one_person(name: str) -> None:
    assert named("10.0.0.7", [name]) == name
    assert named("::ffff:10.0.0.7", [name]) == name


@pytest.mark.parametrize("said", [[], [""], ["  "], ["ada", "bob"], ["a\x00b"], ["a" * 300], ["a\u202eb"]])
def test_a_trusted_proxy_that_names_nobody_or_several_lets_nobody_in(said: list[str]) -> None:
    assert named("10.0.0.7", said) == ""


@given(names, names)
def test_different_names_are_different_people(one: str, other: str) -> None:
    assert (proxied(one).realm == proxied(other).realm) == (one == other)
    assert proxied(one).realm


def test_no_key_has_the_name_of_the_proxys_people() -> None:
    with pytest.raises(KeyRefused):
        made(PROXY, "key", EVERYTHING, "test", 1)


async def test_a_header_without_a_trusted_proxy_names_nobody(tmp_path: Path) -> None:
    env = {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame", "OUTSPOKEN_SERVER__IDENTITY_HEADER": HEADER}
    async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
        assert (await listed(http, up.url, ADA))[0] == 401


async def listed(http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> Any:
    async with http.get(f"{url}/api/conversations", headers=headers) as response:
        return response.status, await response.json()


async def test_each_person_has_conversations_of_their_own_and_others_are_let_in_by_their_keys_alone(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path, {**TRUSTING, "OUTSPOKEN_SERVER__API_KEY": "sesame-sesame"}) as up,
        aiohttp.ClientSession() as http,
    ):
        said = {"id": "message-0001", "text": "my secret plan"}
        async with http.post(f"{up.url}/api/sessions/c-conversation/messages", json=said, headers=ADA) as response:
            assert response.status == 202, await response.text()
        status, mine = await listed(http, up.url, ADA)
        assert (status, [one["id"] for one in mine["conversations"]]) == (200, ["c-conversation"])
        status, theirs = await listed(http, up.url, BOB)
        assert (status, theirs["conversations"]) == (200, [])
        assert (await listed(http, up.url, {}))[0] == 401
        assert (await listed(http, up.url, {"Via": "1.1 proxy"}))[0] == 401
        both = CIMultiDict([(HEADER, "ada@example.org"), (HEADER, "bob@example.org")])
        assert (await listed(http, up.url, both))[0] == 401
        status, all_of = await listed(
            http, up.url, {"Authorization": "Bearer sesame-sesame", "X-Outspoken-Browser": "browser-one"}
        )
        assert (status, all_of["conversations"]) == (200, [])
        foreign = {**ADA, "Origin": "https://evil.example"}
        assert (await listed(http, up.url, foreign))[0] == 403


async def test_where_nothing_is_configured_the_header_names_nobody(tmp_path: Path) -> None:
    async with (
        served(
            tmp_path,
            {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame", "OUTSPOKEN_SERVER__TRUSTED_PROXIES": '["127.0.0.1"]'},
        ) as up,
        aiohttp.ClientSession() as http,
    ):
        assert (await listed(http, up.url, ADA))[0] == 401


async def test_what_comes_through_the_proxy_without_a_name_is_nobody_also_where_no_key_is_needed(
    tmp_path: Path,
) -> None:
    async with served(tmp_path, TRUSTING) as up, aiohttp.ClientSession() as http:
        browser = {"X-Outspoken-Browser": "browser-one"}
        assert (await listed(http, up.url, {**browser, "Via": "1.1 proxy"}))[0] == 401
        assert (await listed(http, up.url, browser))[0] == 200  # a program on this machine
        assert (await listed(http, up.url, ADA))[0] == 200


async def test_people_of_a_proxy_and_of_keys_stand_in_the_list_of_people_until_they_are_forgotten(
    tmp_path: Path,
) -> None:
    async with (
        served(
            tmp_path,
            TRUSTING
            | {"OUTSPOKEN_SERVER__API_KEY": "sesame-sesame", "OUTSPOKEN_SERVER__OPERATOR_KEY": "operating-operating"},
        ) as up,
        aiohttp.ClientSession() as http,
    ):
        operator, nobody = ({"Authorization": f"Bearer {key}"} for key in ("operating-operating", "sesame-sesame"))
        new = {"verb": "add", "name": "laptop", "terms": {"owner": "cyd"}}
        async with http.post(f"{up.url}/api/keys", json=new, headers=operator) as response:
            assert response.status == 200, await response.text()
            cyd = {"Authorization": f"Bearer {(await response.json())['secret']}"}

        async def ask(headers: Mapping[str, str]) -> None:
            body = {"model": "rehearsal", "messages": [{"role": "user", "content": "say hi"}]}
            async with http.post(f"{up.url}/v1/chat/completions", json=body, headers=headers) as response:
                assert response.status == 200, await response.text()

        async def write(who: Mapping[str, str], browser: str) -> None:
            headers = {**who, "X-Outspoken-Browser": browser}
            said = {"id": "message-0001", "text": "say hi", "browser": browser}
            url = f"{up.url}/api/sessions/c-{browser}/messages"
            async with http.post(url, json=said, headers=headers) as response:
                assert response.status == 202, await response.text()
            async with http.get(f"{up.url}/api/sessions/c-{browser}/events", headers=headers) as response:
                await response.content.readuntil(b"hi")

        async def known() -> list[tuple[str, str, str]]:
            async with http.get(f"{up.url}/api/access", headers=operator) as response:
                return [(one["state"], one["account"], one["person"]) for one in (await response.json())["people"]]

        async def decide(verb: str, who: str) -> tuple[int, str]:
            body = {"verb": verb, "who": who}
            async with http.post(f"{up.url}/api/access", json=body, headers=operator) as response:
                return response.status, await response.text()

        await ask(BOB)
        await write(ADA, "browser-of-ada")
        await ask(cyd)
        await write(cyd, "browser-of-cyd")
        await write(nobody, "browser-of-nobody")  # whose name would be its secret
        everybody = {("spoke", "api", one) for one in ("proxy/ada@example.org", "proxy/bob@example.org", "cyd")}
        assert sorted(await known()) == sorted(everybody)
        status, words = await decide("revoke", "proxy/bob@example.org")
        assert (status, "a proxy" in words, len(await known())) == (409, True, 3)
        assert (await decide("forget", "api/proxy/bob@example.org"))[0] == 200
        async with asyncio.timeout(20):
            while ("spoke", "api", "proxy/bob@example.org") in await known():
                await asyncio.sleep(0.1)
        assert len(await known()) == 2
