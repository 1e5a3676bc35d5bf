"""Addresses that lead inside by another name: nothing is dialled but what is public, whoever gives the address and however it is spelt.

The canaries are real servers on this machine. What the real tool dials is written down at the loop, one floor below all checks.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from adapters.contract.files import FileHosts
from agent_core.ports import SystemClock
from agent_core.tools.base import ToolContext, ToolStatus
from agent_core.tools.builtin.fetch import FetchUrl
from agent_core.tools.web.addresses import parsed, refusal
from agent_core.workers.pool import Workers

CONTEXT = ToolContext("t", "c", "k", Path("unused"), "m", SystemClock(), lambda _: None)
OUTSIDE = "127.0.0.2"
"""Stands for a public server, which sends its callers elsewhere."""
LOOPBACK = (
    "127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "127.0.0.01", "127.000.000.001", "0", "00", "0.0.0.0", "0.0", "0x0", "0x7f.1", "0x7f000001",
    "0x7F.0x0.0x0.0x1", "0x7f.0.0.1", "0X7F000001", "2130706433", "2130706433.", "017700000001", "0177.0.0.1", "0177.0.0.01", "00000177.0.0.1",
    "4294967296", "6425673729", "127.255.255.254", "127.0.0.1%00", "127.0.0.1%2e", "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "127.0.0.1%20", "127.0.0.1%09",
    "localhost", "LOCALHOST", "localhost.", "LocalHost.", "localhost..", "localhost%2e", "localhost%00.example", "foo.localhost", "localhost.localdomain",
    "ip6-localhost", "ip6-loopback", "[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[::ffff:0.0.0.0]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]", "[2001:0:7f00:1::]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[::1%25lo]", "[::1%lo]",
    "[::1].", "::1", "[fe80::1]", "[fe80::1%25lo]", "①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "𝟏𝟐𝟕.𝟎.𝟎.𝟏",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "ｌｏｃａｌｈｏｓｔ", "loca\u00adlhost", "local\u200bhost", "loc\u200dalhost", "localhoſt", "١٢٧.٠.٠.١", "१२७.०.०.१",
)  # fmt: skip
INNER = (
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "100.64.0.1",
    "100.127.255.254", "192.0.0.1", "192.0.0.192", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250",
    "240.0.0.1", "255.255.255.255", "192.88.99.1", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "0xa9.0xfe.0xa9.0xfe", "167772161",
    "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[ff0e::1]", "[fec0::1]", "[2001:db8::1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]",
    "[64:ff9b::10.0.0.1]", "[64:ff9b::169.254.169.254]", "[2002:a00:1::]", "[2002:a9fe:a9fe::]", "[::10.0.0.1]", "[100::1]", "[fe80::a9fe:a9fe]",
    "metadata.google.internal", "metadata", "instance-data", "kubernetes.default.svc",
)  # fmt: skip
NAMES = {
    "inner.example": ["127.0.0.1"], "six.example": ["::1"], "mapped.example": ["::ffff:127.0.0.1"], "nat.example": ["64:ff9b::7f00:1"],
    "mixed.example": ["93.184.215.14", "127.0.0.1"], "mixed-six.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::1"], "zero.example": ["0.0.0.0"],
    "metadata.example": ["169.254.169.254"], "multicast.example": ["224.0.0.1"], "shared.example": ["100.64.0.1"], "private.example": ["10.0.0.1"],
    "127.0.0.1.nip.example": ["127.0.0.1"], "scope.example": ["fe80::1%1"], "good.example": ["93.184.215.14"], "odd.example": ["not an address"],
}  # fmt: skip
REBINDS = "rebind.example"
"""Public when it is asked for the first time, and here ever after."""
WHOLE = (
    "http://good.example@127.0.0.1:{port}/", "http://good.example:80@127.0.0.1:{port}/", "http://127.0.0.1:{port}@good.example/",
    "http://good.example\\@127.0.0.1:{port}/", "http://127.0.0.1:{port}\\@good.example/", "http://127.0.0.1:{port}#@good.example/",
    "http://127.0.0.1:{port}?@good.example/", "http://good.example#@127.0.0.1:{port}/", "http://good.example%40127.0.0.1:{port}/",
    "http://good.example\t@127.0.0.1:{port}/", "http://good.example%0d%0aHost:%20127.0.0.1:{port}/", "http://good.example\r\nHost: 127.0.0.1:{port}/",
    "http://@127.0.0.1:{port}/", "http://:@127.0.0.1:{port}/", "http://%67ood@127.0.0.1:{port}/", "http://127.0.0.1:{port},good.example/",
    "http://127.0.0.1:{port};good.example/", "http://good.example,127.0.0.1:{port}/", "http://[::1]:{port}@good.example/", "http://[good.example]:{port}/",
    "http://127.0.0.1:0{port}/", "http://127.0.0.1:+{port}/", "http://127.0.0.1:{port}:80/", "http://127.0.0.1: {port}/", "http://127.0.0.1:６５/",
    "HTTP://127.0.0.1:{port}/", " http://127.0.0.1:{port}/", "\thttp://127.0.0.1:{port}/", "ht\ntp://127.0.0.1:{port}/", "http://127.0.\n0.1:{port}/",
    "\x00http://127.0.0.1:{port}/", "http:/127.0.0.1:{port}/", "http:127.0.0.1:{port}/", "http:///127.0.0.1:{port}/", "http:\\\\127.0.0.1:{port}/",
    "//127.0.0.1:{port}/", "///127.0.0.1:{port}/", "\\\\127.0.0.1:{port}/", "127.0.0.1:{port}/", "https://127.0.0.1:{port}/", "file:///etc/passwd",
    "file://localhost/etc/passwd", "gopher://127.0.0.1:{port}/_x", "ftp://127.0.0.1:{port}/", "dict://127.0.0.1:{port}/", "ws://127.0.0.1:{port}/",
    "wss://127.0.0.1:{port}/", "unix:///var/run/docker.sock", "http+unix://%2Fvar%2Frun%2Fdocker.sock/", "data:text/plain,x", "javascript:alert(1)",
    "jar:http://127.0.0.1:{port}/!/", "ldap://127.0.0.1:{port}/", "tftp://127.0.0.1:{port}/", "sftp://127.0.0.1:{port}/", "blob:http://127.0.0.1:{port}/",
    "view-source:http://127.0.0.1:{port}/", "http://", "http://:{port}/", "http://?x", "http://.:{port}/", "http://..:{port}/", "http://%:{port}/",
    "http://good.example:22/", "http://good.example:25/", "http://good.example:6379/", "http://good.example:022/", "http://[::1", "http://]:{port}/",
)  # fmt: skip


def forms(port: int) -> list[str]:
    hosts = [*LOOPBACK, *INNER, *NAMES, REBINDS]
    return [*(f"http://{host}:{port}/" for host in hosts), *(form.replace("{port}", str(port)) for form in WHOLE)]


@dataclass
class Canaries:
    """Servers that nobody may reach, and one that may be, and sends its callers on."""

    port: int
    visits: list[str] = field(default_factory=list[str])
    dialled: list[str] = field(default_factory=list[str])


class Names(AbstractResolver):
    """Somebody else's name server."""

    asked = 0

    def of(self, _workers: object, _owner: object) -> Names:
        return self

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        del family
        name = host.rstrip(".").lower()
        if name in ("localhost", "foo.localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"):
            found = ["127.0.0.1", "::1"]
        elif name == REBINDS:
            self.asked += 1
            found = ["93.184.215.14"] if self.asked == 1 else ["127.0.0.1"]
        elif name in NAMES:
            found = NAMES[name]
        else:
            raise OSError(None, "no such name")
        return [_entry(host, address, port) for address in found]

    async def close(self) -> None:
        pass


def _entry(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    return {
        "hostname": host,
        "host": address,
        "port": port,
        "family": family,
        "proto": 0,
        "flags": socket.AI_NUMERICHOST,
    }


@pytest.fixture
async def canaries(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Canaries]:
    async with _canaries() as found:
        loop = asyncio.get_running_loop()
        plain: Callable[[socket.socket, Any], Awaitable[None]] = loop.sock_connect

        async def dial(made: socket.socket, address: Any) -> None:
            found.dialled.append(str(address[0]))
            if address[0] != OUTSIDE and not ip_address(address[0].split("%")[0]).is_loopback:
                raise ConnectionRefusedError(111, "nothing leaves this test")
            await plain(made, address)

        monkeypatch.setattr(loop, "sock_connect", dial)
        yield found


@asynccontextmanager
async def _canaries() -> AsyncGenerator[Canaries]:
    made = Canaries(0)

    async def inside(request: web.Request) -> web.Response:
        made.visits.append(str(request.url))
        return web.Response(text="secret of the inner network")

    async def outside(request: web.Request) -> web.Response:
        to = request.query.get("to", "")
        status = int(request.query.get("status", "302"))
        return web.Response(status=status, headers={"Location": to}) if to else web.Response(text="public page")

    runners: list[web.AppRunner] = []
    for handler, hosts in ((inside, ("127.0.0.1", "::1")), (outside, (OUTSIDE,))):
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        for host in hosts:
            try:
                await web.TCPSite(runner, host, made.port).start()
            except OSError:
                assert host == "::1", "this machine has no IPv6, and so nothing to reach by it"
                continue
            made.port = made.port or int(runner.addresses[0][1])
    try:
        yield made
    finally:
        for runner in runners:
            await runner.cleanup()


def judged(canaries: Canaries) -> list[str]:
    """What was dialled and may not be."""
    found = [(address, parsed(address)) for address in canaries.dialled if address != OUTSIDE]
    return [text for text, address in found if address is None or refusal(address) is not None]


def test_there_are_a_hundred_forms_and_more():
    assert len(set(forms(1))) == len(forms(1)) >= 180


async def test_no_form_of_an_address_reaches_anything_inside(canaries: Canaries, monkeypatch: pytest.MonkeyPatch):
    names = Names()
    monkeypatch.setattr("agent_core.tools.builtin.fetch.resolver", names.of)
    async with Workers() as workers:
        tool = FetchUrl(workers)
        for form in [*forms(canaries.port), f"http://{REBINDS}:{canaries.port}/again"]:
            outcome = await tool.run({"url": form}, CONTEXT)
            assert outcome.status is ToolStatus.FAILED, form
            assert "secret" not in outcome.text, form
            assert "Traceback" not in outcome.text, form
            assert outcome.text.endswith("."), (form, outcome.text)
            assert not judged(canaries), form
            assert not canaries.visits, form
    assert "93.184.215.14" in canaries.dialled, "the forms that are public are tried"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_of_a_public_server_reaches_anything_inside(
    canaries: Canaries, monkeypatch: pytest.MonkeyPatch, status: int
):
    names = Names()
    monkeypatch.setattr("agent_core.tools.builtin.fetch.resolver", names.of)
    async with Workers() as workers:
        tool = FetchUrl(workers, refuse=lambda address: None if str(address) == OUTSIDE else refusal(address))
        base = f"http://{OUTSIDE}:{canaries.port}/"
        assert "public page" in (await tool.run({"url": base}, CONTEXT)).text
        every = forms(canaries.port)
        for form in every if status == 302 else every[status % 5 :: 5]:
            names.asked = 0
            outcome = await tool.run({"url": f"{base}?status={status}&to={quote(form)}"}, CONTEXT)
            assert "secret" not in outcome.text, form
            assert not judged(canaries), form
            assert not canaries.visits, form


async def test_the_systems_own_names_of_this_machine_lead_nowhere(canaries: Canaries):
    own = [
        "localhost",
        "localhost.",
        "LOCALHOST",
        "foo.localhost",
        "ip6-localhost",
        socket.gethostname(),
        f"{socket.gethostname()}.",
    ]
    async with Workers() as workers:
        for host in own:
            outcome = await FetchUrl(workers).run({"url": f"http://{host}:{canaries.port}/"}, CONTEXT)
            assert outcome.status is ToolStatus.FAILED, host
    assert not judged(canaries)
    assert not canaries.visits


PLATFORMS = (
    FileHosts(("slack.com", "slack-edge.com")),
    FileHosts(("discordapp.com",), "http://127.0.0.3:1"),
    FileHosts(("api.telegram.org",)),
)


def test_no_form_of_an_address_is_a_platforms_file():
    more = [
        "https://slack.com@127.0.0.1/", "https://slack.com.evil.example/", "https://evilslack.com/", "https://slack.com:8443/", "http://slack.com/",
        "https://slack.com\\@evil.example/", "https://slack.com%2eevil.example/", "https://evil.example/slack.com", "https://evil.example#slack.com",
        "https://evil.example?slack.com", "https://slack。com.evil.example/", "https://xn--slack-.com/", "https://ѕlack.com/", "https://u:p@files.slack.com/",
        "//slack.com/", "slack.com", "ftp://slack.com/", "https://slack.com:443@evil.example/", "https://api.telegram.org.evil.example/",
    ]  # fmt: skip
    for form in chain(forms(80), forms(443), more):
        try:
            url = URL(form)
        except ValueError:
            continue
        assert not any(hosts.allows(url) for hosts in PLATFORMS), form
    assert PLATFORMS[0].allows(URL("https://files.slack.com/files-pri/x"))
    assert PLATFORMS[1].allows(URL("http://127.0.0.3:1/x"))
