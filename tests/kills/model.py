"""The model for the kills, a process of its own that is never killed: some calls of file tools, then an answer, all of it slowly.

``python -m tests.kills.model PORT LOG`` writes one line of JSON for each request that it gets. What the tools did to the file of a task that is
killed by itself is looked at then, too: who is nobody has a workspace only as long as the turn is open, and while it asks the model it is.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from aiohttp import web

from agent_core.turn.transcript import problems

PAUSE = 0.03
STEPS = 2
PATH = "log.txt"


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return (
        b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode() + b"\n\n"
    )


def _task_of(messages: list[dict[str, Any]]) -> tuple[str, int]:
    """(the task's name, how many of its appends came back)."""
    name, returned = "", 0
    for message in messages:
        found = re.match(r"task (\w+)", str(message.get("content"))) if message["role"] == "user" else None
        if found is not None:
            name, returned = found[1], 0
        returned += message["role"] == "tool"
    return name, returned


def appended(home: Path, name: str) -> list[str]:
    """The lines of a task, wherever its workspace lies; it can go while it is looked at."""
    found: list[str] = []
    for file in home.rglob(PATH):
        with suppress(FileNotFoundError):
            found += [line for line in file.read_text().split() if line.startswith(f"{name}.")]
    return found


def append_calls(name: str) -> list[tuple[str, dict[str, str]]]:
    """What is called for a task of the rounds that are killed one by one."""
    return [("append_file", {"path": PATH, "content": f"{name}.{step}\n"}) for step in range(STEPS)]


def load_calls(name: str) -> list[tuple[str, dict[str, str]]]:
    """What is called for a task under load. The stateless conversations append to one file that they share."""
    file, log = f"{name}.txt", "shared.txt" if name.startswith("shared") else "log.txt"
    return [
        ("write_file", {"path": file, "content": f"alpha {name}\n"}),
        ("append_file", {"path": log, "content": f"{name}.0\n"}),
        ("edit_file", {"path": file, "old": "alpha", "new": "beta"}),
        ("append_file", {"path": log, "content": f"{name}.1\n"}),
    ]


async def chat(request: web.Request, log: Path) -> web.StreamResponse:
    """One reply."""
    body = await request.json()
    name, returned = _task_of(body["messages"])
    loaded = name[:1] in "os"
    line = {"task": name, "returned": returned, "problems": problems(body["messages"])}
    if not loaded:
        line["lines"] = appended(log.parent, name)
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    calls = load_calls(name) if loaded else append_calls(name)
    if returned < len(calls):
        for word in ("Now ", "writing ", f"line {returned} ", f"of {name}."):
            await response.write(_event({"content": word}))
            await asyncio.sleep(PAUSE)
        tool, arguments = calls[returned]
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"{name}_{returned}", "type": "function", "function": function}
        await response.write(_event({"tool_calls": [call]}, "tool_calls") + b"data: [DONE]\n\n")
    else:
        for number in range(8):
            await response.write(_event({"content": f"word{number} "}))
            await asyncio.sleep(PAUSE)
        await response.write(_event({"content": f"finished {name}."}, "stop") + b"data: [DONE]\n\n")
    return response


def main() -> None:
    """Entry point."""
    log = Path(sys.argv[2])
    app = web.Application()

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await chat(request, log)
        except ConnectionError:  # who asked has just been killed
            return web.Response(status=499)

    app.router.add_post("/v1/chat/completions", handle)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
