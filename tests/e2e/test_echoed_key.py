"""A provider repeats the key that it was sent, in all sorts of forms: none of them is shown, logged or stored."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from pathlib import Path

import aiohttp

from tests.agent_core.test_redaction import ALTERATIONS, ELISIONS, longest_piece
from tests.e2e.upstream import Reply, status, upstream
from tests.serving import served

KEY = "sk-proj-" + "Q7fT2kLmZx91VbNcRw83HsYd"
ESCAPED = "\\\\u001b[31m"
"""A control character that is written out; in JSON its backslash is doubled."""
MOST = 7
"""Letters and digits of the key in a row that may stand somewhere by chance or as what is left of its name."""


def forms() -> dict[str, str]:
    elided = {f"with {gap}": f"{KEY[:12]}{gap}{KEY[-8:]}" for gap in ELISIONS}
    steering = {"steering": f"\x1b[31m{KEY}\x1b[0m\x07"}
    return {**{name: alter(KEY) for name, alter in ALTERATIONS.items()}, **elided, **steering}


def scenarios() -> dict[str, tuple[Reply, ...]]:
    made: dict[str, tuple[Reply, ...]] = {}
    for name, form in forms().items():
        for code in (400, 401, 403):
            body = json.dumps({"error": {"message": f"What came was {form} and nothing else.", "code": "x"}})
            made[f"{name} {code}"] = ((status(code, body),),)
    return made


async def answer(http: aiohttp.ClientSession, url: str, name: str) -> str:
    body = {"model": "outspoken", "user": name, "messages": [{"role": "user", "content": f"scenario: {name}"}]}
    async with http.post(f"{url}/v1/chat/completions", json=body) as response:
        return await response.text()


async def test_a_key_that_a_provider_repeats_in_any_form_stays_in(tmp_path: Path):
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    logging.getLogger().addHandler(handler)
    try:
        async with upstream(scenarios()) as model:
            env = {
                "OUTSPOKEN_MODEL__BASE_URL": model.url,
                "OUTSPOKEN_MODEL__NAME": "m",
                "OUTSPOKEN_MODEL__API_KEY": KEY,
            }
            async with served(tmp_path, env) as up, aiohttp.ClientSession() as http:
                limit = asyncio.Semaphore(8)

                async def one(name: str) -> tuple[str, str]:
                    async with limit:
                        return name, await answer(http, up.url, name)

                said = await asyncio.gather(*(one(name) for name in scenarios()))
    finally:
        logging.getLogger().removeHandler(handler)
    shown = [
        f"{name}: {text}"
        for name, text in said
        if longest_piece(KEY, text) > MOST or "\x1b" in text or "u001b[31m" in text.replace(ESCAPED, "")
    ]
    assert shown == []
    assert longest_piece(KEY, written.getvalue()) <= MOST
    for file in tmp_path.rglob("*"):
        if file.is_file():
            stored = file.read_bytes().decode("utf-8", "ignore")
            assert longest_piece(KEY, stored) <= MOST, file
