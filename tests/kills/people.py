"""Sixteen conversations at once, in a process of their own that is never killed: each asks for one task after the other.

``python -m tests.kills.people PORT LOG COUNT STOP`` writes a line of JSON for each task, each first word, each refusal that is no end, once, and each
end that it hears. Whoever loses the connection asks again, with the same key, until there is an end. When the file STOP is there, nobody asks for
anything new.

Half of them are sessions with a workspace each; the others are stateless requests of one `user`, and share a workspace and the file that they
append to.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

AGAIN_SECONDS = 0.05
PATIENCE_SECONDS = 60.0


class Conversation:
    """One of them."""

    def __init__(self, number: int, port: int, log: Path) -> None:
        self.number = number
        self._url = f"http://127.0.0.1:{port}/v1/chat/completions"
        self._log = log
        self._asked = 0
        self._told = ""

    async def run(self, client: aiohttp.ClientSession, stop: Path) -> None:
        """Task after task."""
        while not stop.exists():
            kind = "own" if self.number % 2 else "shared"
            name = f"{kind}{self.number}x{self._asked}"
            self._asked += 1
            self._note(what="begin", task=name)
            code = said = ""
            tries = 0
            while not code:
                tries += 1
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    code, said = await self._ask(client, name)
                if not code:
                    await asyncio.sleep(AGAIN_SECONDS)
            self._note(what="end", task=name, exit=code, said=said, tries=tries)

    async def _ask(self, client: aiohttp.ClientSession, name: str) -> tuple[str, str]:
        """(how it ended, what was said); no end if the connection broke before there was one."""
        headers = {"Idempotency-Key": name}
        if self.number % 2:
            headers["X-Outspoken-Session"] = f"s{self.number}"
        body: dict[str, Any] = {"stream": True, "messages": [{"role": "user", "content": f"task {name}"}]}
        if not self.number % 2:
            body["user"] = "everybody"
        code, said = "", ""
        async with client.post(self._url, json=body, headers=headers) as response:
            if response.status != 200:  # not ready yet; or that is how it ended, see docs/api.md
                told: dict[str, Any] = await response.json()
                ended: dict[str, Any] = told.get("outspoken", {})
                said = f"{name}: {response.status} {told}"
                if not ended and said != self._told:
                    self._told = said
                    self._note(what="told", task=name, said=said)
                return ended.get("exit", ""), ended.get("notice", "")
            async for line in response.content:
                if not line.startswith(b"data: {"):
                    continue
                chunk: dict[str, Any] = json.loads(line[6:])
                words = "".join(choice["delta"].get("content") or "" for choice in chunk.get("choices", ()))
                if words and not said:
                    self._note(what="word", task=name)
                said += words
                code = chunk.get("outspoken", {}).get("exit", code)
        return code, said

    def _note(self, **fields: Any) -> None:
        with self._log.open("a") as file:
            file.write(json.dumps({"at": time.time(), **fields}) + "\n")


async def main() -> None:
    """Entry point."""
    port, log, count, stop = int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    timeout = aiohttp.ClientTimeout(total=PATIENCE_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as client, asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(Conversation(number, port, log).run(client, stop))


if __name__ == "__main__":
    asyncio.run(main())
