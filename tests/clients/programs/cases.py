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


def run(**cases: Callable[[], object | Awaitable[object]]) -> None:
    """Each case gives what a person who uses the program would see; an error is its class, its status and its words."""

    async def all_of_them() -> None:
        wanted = sys.argv[3:] or list(cases)
        for name in wanted:
            began = time.monotonic()
            try:
                found = cases[name]()
                outcome = await found if inspect.isawaitable(found) else found
            except Exception as error:  # noqa: BLE001 - that is what is looked at
                status = getattr(error, "status_code", None)
                outcome = {"error": type(error).__name__, "status": status, "words": str(error)[:400]}
            show(name, outcome, began)

    asyncio.run(all_of_them())
