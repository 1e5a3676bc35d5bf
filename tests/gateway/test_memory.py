"""What a start does not read, and that nothing is trusted the more for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.certificates import self_signed

ASK = """
import asyncio, gc, ssl, sys
from gateway.memory import loading

usual, callbacks = gc.get_threshold(), [*gc.callbacks]
with loading():
    import aiohttp.connector

assert (gc.get_threshold(), gc.callbacks) == (usual, callbacks)

context = aiohttp.connector._SSL_CONTEXT_VERIFIED
assert not context.get_ca_certs() and context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname
assert ssl.SSLContext.load_default_certs.__qualname__ == "SSLContext.load_default_certs"
assert "set_default_verify_paths" not in vars(ssl.SSLContext)

async def run():
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(sys.argv[1] + "/certificate.pem", sys.argv[1] + "/key.pem")
    async def serve(reader, writer):
        await reader.readuntil(b"\\r\\n\\r\\n")
        writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nhi")
        await writer.drain()
        writer.close()
    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server)
    async with listening, aiohttp.ClientSession() as session:
        for _ in range(2):
            try:
                async with session.get(f"https://localhost:{listening.sockets[0].getsockname()[1]}/") as answer:
                    print(await answer.text())
            except aiohttp.ClientConnectorCertificateError as error:
                print("not trusted")
    print(type(context) is ssl.SSLContext)

asyncio.run(run())
"""


def test_whom_the_system_trusts_is_read_when_somebody_is_first_spoken_to_and_nobody_else_is_trusted(
    tmp_path: Path,
) -> None:
    self_signed(tmp_path)

    def asked(trusted: Path) -> list[str]:
        env = {"SSL_CERT_FILE": str(trusted), "SSL_CERT_DIR": str(tmp_path / "none")}
        command = [sys.executable, "-c", ASK, str(tmp_path)]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60).stdout.split(
            "\n"
        )[:-1]

    assert asked(tmp_path / "certificate.pem") == ["hi", "hi", "True"]
    assert asked(tmp_path / "none.pem") == ["not trusted", "not trusted", "True"]


LEFT = """
import gc
from gateway.memory import loading

usual = gc.get_threshold()
with loading():
    import gateway.config.sections
assert gc.get_freeze_count() > 20_000 and gc.get_threshold() == usual and not gc.callbacks
gc.unfreeze()
print(gc.collect())
"""
OVERLOADS = """
import typing
from gateway.memory import loading

with loading():
    import gateway.daemon
import sqlalchemy
print(len(typing.get_overloads(sqlalchemy.select)))
"""


def test_what_was_replaced_while_it_was_loaded_is_not_kept() -> None:
    """A class with slots is made twice, and the first one of them is in a circle with itself."""
    left = subprocess.run([sys.executable, "-c", LEFT], capture_output=True, text=True, check=True, timeout=60).stdout
    assert int(left) < 200


def test_signatures_that_only_a_type_checker_reads_are_not_kept() -> None:
    left = subprocess.run([sys.executable, "-c", OVERLOADS], capture_output=True, text=True, check=True, timeout=60)
    assert int(left.stdout) == 0


BUILT = """
import sys
from pathlib import Path
from adapters.contract.settings import Section
from gateway.config.reading import load

loaded = load(None, {})

def below(kind):
    return {kind}.union(*map(below, kind.__subclasses__()))

print(*sorted(kind.__name__ for kind in below(Section) if kind.__pydantic_complete__))
"""


def test_the_configuration_is_checked_by_one_validator_and_not_by_one_of_each_section_beside_it() -> None:
    built = subprocess.run([sys.executable, "-c", BUILT], capture_output=True, text=True, check=True, timeout=60).stdout
    assert built.split() == []
