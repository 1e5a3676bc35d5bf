"""Runs the cases of one program and prints what came of each, as a line of JSON. Every program is called with the address of the API and a model."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable

URL, MODEL = (sys.argv[1], sys.argv[2]) if len(sys.argv) > 2 else ("", "")
KEY = "sk-of-the-test"
os.environ |= {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": URL, "OPENAI_API_BASE": URL}

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def weather(city: str) -> str:
    return f"sunny in {city}"


def show(name: str, outcome: object, began: float) -> None:
    print(json.dumps({"case": name, "outcome": outcome, "seconds": round(time.monotonic() - began, 2)}), flush=True)


def seen(text: object = None, finish: object = None, data: object = None, refusal: object = None) -> dict[str, object]:
    """What whoever uses a program has in hand, whatever the program calls it."""
    return {"text": text, "finish": finish, "data": data, "refusal": refusal}


def failed(error: BaseException) -> dict[str, object]:
    """The same of an error; of those that wrap others the status of the innermost that has one."""
    status, at = None, error
    while status is None and at is not None:
        status = getattr(at, "status_code", None) or getattr(at, "code", None)
        at = at.__cause__ or at.__context__
    return {"error": type(error).__name__, "status": status, "words": str(error)[:400]}


Way = Callable[[str], object | Awaitable[object]]


def run(ways: dict[str, Way] | None = None, /, **cases: Callable[[], object | Awaitable[object]]) -> None:
    """Each case gives what a person who uses the program would see; an error is its class, its status and its words.

    The case `-` is to read lines of `[WAY, WORDS]` and do them in the ways that there are, eight at a time.
    """

    async def all_of_them() -> None:
        for name in sys.argv[3:] or list(cases):
            if name == "-":
                await matrix(ways or {}, [json.loads(line) for line in sys.stdin])
                continue
            began = time.monotonic()
            show(name, await outcome_of(cases[name]), began)

    asyncio.run(all_of_them())


async def outcome_of(case: Callable[[], object | Awaitable[object]], *, apart: bool = False) -> object:
    try:
        found = await asyncio.to_thread(case) if apart else case()
        return await found if inspect.isawaitable(found) else found
    except Exception as error:  # noqa: BLE001 - that is what is looked at
        return failed(error)


async def matrix(ways: dict[str, Way], asked: list[list[str]]) -> None:
    places = asyncio.Semaphore(8)

    async def one(way: str, words: str) -> None:
        async with places:
            began = time.monotonic()
            show(f"{way}|{words}", await outcome_of(lambda: ways[way](words), apart=True), began)

    await asyncio.gather(*(one(way, words) for way, words in asked))
