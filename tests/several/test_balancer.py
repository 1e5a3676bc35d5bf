"""HAProxy, with the settings that are shipped, before gateways that begin together, are killed and are replaced."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from openai import APIStatusError, AsyncOpenAI

from tests.databases import new_database
from tests.several.support import Cluster, cluster

pytestmark = pytest.mark.timeout(200)
SETTINGS = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"
KEY = "a-key-of-this-test"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@asynccontextmanager
async def balancer(*gateways: str, **more: str) -> AsyncGenerator[str]:
    """HAProxy before these two, as soon as one is ready; its address."""
    program = shutil.which("haproxy")
    if program is None:
        pytest.skip("haproxy is not installed (Debian: apt install haproxy)")
    port = free_port()
    env = {**os.environ, "LISTEN": f"127.0.0.1:{port}"}
    env |= more
    env |= {f"GATEWAY_{number}": url.removeprefix("http://") for number, url in enumerate(gateways, 1)}
    process = await asyncio.create_subprocess_exec(
        program, "-db", "-q", "-f", str(SETTINGS), env=env, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await ready(url := f"http://127.0.0.1:{port}")
        yield url
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def ready(url: str) -> None:
    """As soon as somebody answers there."""
    async with asyncio.timeout(30), aiohttp.ClientSession() as http:
        while True:
            with suppress(aiohttp.ClientError):
                async with http.get(f"{url}/readyz") as response:
                    if response.status == 200:
                        return
            await asyncio.sleep(0.1)


class Asking:
    """People who go on asking, every other one in a conversation of their own, and never try twice."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answered = 0
        self.failed: list[str] = []

    async def person(self, name: str) -> None:
        number = 0
        async with AsyncOpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0, timeout=60) as client:
            while True:
                number += 1
                try:
                    stream = await client.chat.completions.create(
                        model="m1",
                        messages=[{"role": "user", "content": f"say answer #{name}.{number}"}],
                        stream=True,
                        extra_headers={"X-Outspoken-Session": name} if name[-1] in "02" else {},
                    )
                    text = "".join([one.choices[0].delta.content or "" async for one in stream if one.choices])
                except Exception as error:  # noqa: BLE001 - whatever it is, somebody got no answer
                    self.failed.append(f"{name}.{number}: {error!r}")
                    await asyncio.sleep(0.2)
                else:
                    if f"#{name}.{number}" in text:
                        self.answered += 1
                    else:
                        self.failed.append(f"{name}.{number}: {text!r}")
                await asyncio.sleep(0.02)

    @asynccontextmanager
    async def people(self, count: int) -> AsyncGenerator[None]:
        tasks = [asyncio.create_task(self.person(f"p{number}")) for number in range(count)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def more(self, count: int) -> None:
        """As soon as so many more were answered."""
        wanted = self.answered + count
        async with asyncio.timeout(60):
            while self.answered < wanted:
                await asyncio.sleep(0.05)


@pytest.fixture
async def gateways(postgres_server: str, tmp_path: Path) -> AsyncGenerator[Cluster]:
    async with cluster(tmp_path, "telegram", await new_database(postgres_server)) as all_:
        yield all_


async def test_gateways_that_begin_together_on_an_empty_database_all_serve(gateways: Cluster) -> None:
    nodes = await asyncio.gather(*(gateways.begin(name) for name in ("first", "second", "third")))
    await gateways.even(3)
    asking = Asking(nodes[2].url)
    async with asking.people(2):
        await asking.more(4)
    assert not asking.failed
    gateways.sound()


async def test_where_no_gateway_answers_a_program_is_told_so_in_its_own_form() -> None:
    async def leaves(request: web.Request) -> web.StreamResponse:
        if request.path == "/readyz":
            return web.Response(status=200 if up else 503)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def asked(url: str) -> APIStatusError:
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, timeout=20) as client:
            with pytest.raises(APIStatusError) as found:
                await client.chat.completions.create(model="m1", messages=[{"role": "user", "content": "hello"}])
            return found.value

    up = True
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", leaves)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port := free_port()).start()
    try:
        async with balancer(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{free_port()}") as url:
            gone = await asked(url)
            assert (gone.status_code, gone.code) == (502, "gateway_gone")
            up = False
            async with asyncio.timeout(20):  # the balancer believes the second no
                while (none := await asked(url)).code != "no_gateway":
                    await asyncio.sleep(0.1)
            assert none.status_code == 503
            assert none.response.headers["retry-after"] == "5"
    finally:
        await runner.cleanup()


class Names(asyncio.DatagramProtocol):
    """Says where names are, as Docker's own server does for containers: of others that there are none."""

    def __init__(self, where: Mapping[str, str]) -> None:
        self.where = where

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        end = data.index(0, 12)
        name, question = data[13:end].decode(), data[12 : end + 5]
        found = self.where.get(name) if question[-4:-2] == b"\x00\x01" else None
        record = b"\xc0\x0c\0\x01\0\x01\0\0\0\x01\0\x04" + socket.inet_aton(found) if found is not None else b""
        counts = bytes([0x81, 0x80 if name in self.where else 0x83, 0, 1, 0, found is not None, 0, 0, 0, 0])
        self.transport.sendto(data[:2] + counts + question + record, addr)


async def test_a_gateway_that_has_another_address_after_it_was_made_anew_is_found_there() -> None:
    """What a container's name stands for is looked up again, as deploy/compose-several.yaml has it."""

    async def tells(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.Response(text=str(request.transport.get_extra_info("sockname")[0]))

    async def serving(address: str) -> web.AppRunner:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", tells)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, address, port).start()
        return runner

    port, where = free_port(), {"first": "127.0.0.1"}
    names, _ = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Names(where), ("127.0.0.1", 0))
    resolver = f"127.0.0.1:{names.get_extra_info('sockname')[1]}"
    gateway = await serving("127.0.0.1")
    try:
        async with balancer(f"http://first:{port}", f"http://second:{port}", RESOLVER=resolver) as url:
            await gateway.cleanup()
            where["first"] = "127.0.0.2"
            gateway = await serving("127.0.0.2")
            async with asyncio.timeout(30), aiohttp.ClientSession() as http:
                while True:
                    async with http.get(url) as response:
                        if await response.text() == "127.0.0.2":
                            break
                    await asyncio.sleep(0.1)
    finally:
        names.close()
        await gateway.cleanup()


async def test_nobody_notices_a_new_version_and_few_a_death(gateways: Cluster) -> None:
    port = {"OUTSPOKEN_SERVER__API_KEY": KEY}
    ports = [free_port(), free_port()]
    envs = [{**port, "OUTSPOKEN_SERVER__PORT": str(one)} for one in ports]
    first, second = [await gateways.begin(f"g{number}", **env) for number, env in enumerate(envs)]
    await gateways.even(2)
    async with balancer(first.url, second.url) as url:
        asking = Asking(url)
        async with asking.people(4):
            await asking.more(8)
            for number, node in enumerate((first, second)):
                node.signal(signal.SIGTERM)
                assert await node.ended() == 0
                await asking.more(8)
                await ready((await gateways.begin(f"g{number}", **envs[number])).url)
                await gateways.even(2)
                await asking.more(8)
            assert not asking.failed
            gateways.nodes["g0"].inner.kill()
            await asking.more(20)
        assert len(asking.failed) <= 4, asking.failed
    gateways.sound()
