"""Who is served over HTTP before anything is read: pages of others and names that were made to point here are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from adapters.contract.callers import ANYBODY, Allowance, Caller
from adapters.http.common import NAMED, Problem, caller_of, guarded
from gateway.console.access import Access

OWN = "gate.example"


class Keys:
    """One key is good; whoever shows none is served if there is no need for one."""

    def __init__(self, *, keyless: bool) -> None:
        self._keyless = keyless

    @property
    def keyless(self) -> bool:
        return self._keyless

    def who(self, shown: str, headers: Mapping[str, str]) -> Caller | None:
        del headers
        return Caller("good") if shown == "good" else ANYBODY if self._keyless else None

    def left(self, caller: Caller) -> Sequence[Allowance]:
        del caller
        return ()

    def holds(self, caller: Caller) -> bool:
        return caller.key == "good"


def status(host: str, *, keyless: bool, origin: str = "", key: str = "", named: str | None = None) -> int:
    headers = {
        "Host": host,
        **({"Origin": origin} if origin else {}),
        **({"Authorization": f"Bearer {key}"} if key else {}),
    }
    request = make_mocked_request("POST", "/v1/chat/completions", headers=headers)
    if named is not None:
        request[NAMED] = named
    found = caller_of(request, Keys(keyless=keyless), ("https://app.example",), OWN)
    return found.status if isinstance(found, Problem) else 200


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "127.0.0.2", "localhost", "[::1]:80", OWN, "evil.example", "127.0.0.1.evil.example", "10.0.0.1"],
)
@pytest.mark.parametrize("keyless", [True, False])
@pytest.mark.parametrize("key", ["", "good"])
def test_by_another_name_than_this_machines_a_key_is_asked_for(host: str, key: str, *, keyless: bool) -> None:
    here = host in ("127.0.0.1:8080", "127.0.0.2", "localhost", "[::1]:80", OWN)
    if key:
        assert status(host, keyless=keyless, key=key) == 200
    else:
        assert status(host, keyless=keyless) == (200 if keyless and here else 401)


@pytest.mark.parametrize("key", ["", "good"])
@pytest.mark.parametrize(
    ("origin", "served"),
    [
        ("", True),
        ("http://localhost", True),
        ("https://app.example", True),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("null", False),
    ],
)
def test_pages_of_others_are_not_served_whatever_key_they_have(origin: str, key: str, *, served: bool) -> None:
    assert status("localhost", keyless=True, origin=origin, key=key) == (200 if served else 403)


@pytest.mark.parametrize(("named", "found"), [("ada", 200), ("", 401)])
def test_whom_a_proxy_names_is_known_by_that_and_nobody_else_is(named: str, found: int) -> None:
    for keyless in (True, False):
        assert status("evil.example", keyless=keyless, named=named) == found
        assert status("evil.example", keyless=keyless, named=named, origin="https://evil.test") == 403


@pytest.mark.parametrize("behind_proxy", [True, False])
@pytest.mark.parametrize("header", ["", "X-Forwarded-For", "Forwarded", "X-Real-IP"])
@pytest.mark.parametrize("remote", ["127.0.0.1", "::1", "::ffff:127.0.0.1", "203.0.113.5"])
@pytest.mark.parametrize("host", ["localhost:8080", "evil.example"])
def test_without_a_key_the_console_is_served_to_this_machine_alone(
    host: str, remote: str, header: str, *, behind_proxy: bool
) -> None:
    headers = {"Host": host, **({header: "203.0.113.5"} if header else {})}
    request = make_mocked_request("GET", "/console", headers=headers).clone(remote=remote)
    here = host == "localhost:8080" and remote != "203.0.113.5" and not header and not behind_proxy
    assert (Access(None, behind_proxy=behind_proxy).refusal(request) is None) == here
    assert Access("secret", behind_proxy=behind_proxy).refusal(request) is not None
    for site, served in (("same-origin", here), ("cross-site", False), ("same-site", False)):
        asked = make_mocked_request("GET", "/console", headers={**headers, "Sec-Fetch-Site": site}).clone(remote=remote)
        assert (Access(None, behind_proxy=behind_proxy).refusal(asked) is None) == served


@pytest.mark.parametrize("header", ["", "X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "CF-Connecting-IP"])
@pytest.mark.parametrize("host", ["localhost:8080", "evil.example"])
@pytest.mark.parametrize("shown", ["", "wrong", "right"])
@pytest.mark.parametrize("key", [None, "right"])
async def test_an_operators_door_opens_by_its_key_and_without_one_to_this_machine_alone(
    key: str | None, shown: str, host: str, header: str
) -> None:
    async def within(_: web.Request) -> web.Response:
        return web.Response(status=200)

    headers = {"Host": host, **({header: "203.0.113.5"} if header else {})}
    headers |= {"Authorization": f"Bearer {shown}"} if shown else {}
    answer = await guarded(key, within)(make_mocked_request("GET", "/status", headers=headers))
    here = host == "localhost:8080" and not header
    assert answer.status == ((200 if shown == key else 401) if key else (200 if here else 403))
