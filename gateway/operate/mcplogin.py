"""``outspoken mcp login``: a person logs in at a server of tools, in a browser on this machine or on any other.

The browser ends at an address of this machine (loopback). If it runs elsewhere it finds nobody there; then the address that it shows is pasted here.
What is kept before stays until the new login has worked.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from agent_core.tools.mcp.calling import CallTrouble
from agent_core.tools.mcp.lifeline import Lifeline
from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.logins import LoginFile, login_words
from agent_core.tools.mcp.server import in_words
from gateway.config.tools.mcp import McpEntry
from gateway.operate.trying import NotTried

LOGIN_SECONDS = 600.0
HEAD_BYTES = 16 * 1024
PAGE = "<!doctype html><meta charset=utf-8><title>outspoken</title><p>That is all here. Go back to the terminal: it says whether the login worked."


async def log_in(
    entry: McpEntry,
    folder: Path,
    port: int,
    say: Callable[[str], None],
    pasted: Callable[[], str],
    now: Callable[[], float],
) -> str:
    """Log in at the server; how the login stands then. `pasted` waits for a line, in a thread. Raises `NotTried`."""
    from agent_core.tools.mcp.oauth import LoginNeeded, StoredLogin
    from agent_core.tools.mcp.session import connection

    if not entry.oauth:
        raise NotTried(f"[mcp.{entry.name}] has no login: write oauth = true there.")
    terms = replace(entry.terms(folder), start_seconds=LOGIN_SECONDS)
    kept = LoginFile.of(folder, entry.name)
    new = LoginFile(kept.path.with_name(f"{kept.path.name}.new"))
    new.forget()
    returned: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def shown(address: str) -> None:
        say(f"Open this address in a browser and log in:\n\n{address}\n")
        say(
            "If the browser runs on another machine, it ends at a page that cannot be loaded: paste the address of that page here."
        )
        _listen_to(pasted, returned)

    async def back() -> str:
        return await returned

    link = McpLink()
    try:
        async with asyncio.timeout(LOGIN_SECONDS), _coming_back(port, returned) as redirect:
            auth = StoredLogin(terms, new, link, redirect, shown, back)
            async with connection(terms, link, Lifeline(), lambda: None, auth) as connected:
                await connected.tools(1)
    except TimeoutError:
        raise NotTried(f"Nobody logged in within {LOGIN_SECONDS / 60:.0f} minutes.") from None
    except (LoginNeeded, CallTrouble, OSError) as error:
        raise NotTried(f"The login at {entry.name} did not work: {error}") from None
    except Exception as error:  # noqa: BLE001 - the border to a library and to somebody else's server
        raise NotTried(f"The login at {entry.name} did not work: {link.why or in_words(error, '')}") from None
    finally:
        if isinstance(new.read().get("tokens"), dict):
            new.path.replace(kept.path)
        new.forget()
    found = kept.read()
    if not isinstance(found.get("tokens"), dict):
        raise NotTried(f"The server {entry.name} asked for no login, so none is kept. Take oauth = true out.")
    return login_words(found, entry.name, now())


@asynccontextmanager
async def _coming_back(port: int, returned: asyncio.Future[str]) -> AsyncGenerator[str]:
    """Listens for the browser at an address of this machine, which it gives."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode("ascii", "replace") if head.count(b" ") > 1 else ""
            if target.startswith("/callback?") and not returned.done():
                returned.set_result(f"http://127.0.0.1{target}")
            body = PAGE.encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\nReferrer-Policy: no-referrer\r\n"
                b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            )
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=HEAD_BYTES)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"
    finally:
        server.close()


def _listen_to(pasted: Callable[[], str], returned: asyncio.Future[str]) -> None:
    """Take a pasted address, if one comes; nobody waits for the thread."""
    loop = asyncio.get_running_loop()

    def take(line: str) -> None:
        if not returned.done():
            returned.set_result(line)

    def wait() -> None:
        while line := pasted():
            if line.strip():
                with suppress(RuntimeError):  # the loop is over
                    loop.call_soon_threadsafe(take, line.strip())
                return

    threading.Thread(target=wait, name="pasted address", daemon=True).start()
