"""Programs of others, from their packages and with their defaults, against a running gateway: what a person who uses each of them sees.

They live in an environment of their own, `.venv/clients`, as their requirements are not ours (`make test` makes it once).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import cast

import pytest

from tests.clients.provider import provider
from tests.serving import served

PROGRAMS = Path(__file__).with_name("programs")
PYTHON = Path(sys.prefix) / "clients" / "bin" / "python"
HELLO, WEATHER, ADA = "Hello, you.", "It is sunny in Paris.", {"name": "Ada", "age": 36}
WANTED: dict[str, dict[str, object]] = {
    "openai_sdk": {
        "plain": HELLO, "streamed": HELLO, "tools": WEATHER, "structured": ADA,
        "wrong_key": "AuthenticationError 401", "too_fast": "RateLimitError 429", "broken": "InternalServerError 500",
        "responses": HELLO, "responses_streamed": HELLO, "in_a_namespace": [["crew", "close"]], "cut": "The first half, and\n\n[outspoken] The reply above is cut short",
    },
    "agents_sdk": {
        "plain": HELLO, "streamed": HELLO, "tools": WEATHER, "structured": ADA,
        "wrong_key": "AuthenticationError 401", "broken": "InternalServerError 500",
    },
    "pydantic_ai_agent": {
        "plain": HELLO, "streamed": HELLO, "tools": WEATHER, "structured": ADA, "plain_chat": HELLO, "streamed_chat": HELLO, "tools_chat": WEATHER, "structured_chat": ADA,
        "wrong_key": "ModelHTTPError 401", "broken": "ModelHTTPError 500",
    },
    "langchain_chat": {
        "plain": HELLO, "streamed": HELLO, "tools": WEATHER, "structured": ADA, "falls_back": "from the second",
        "plain_responses": HELLO, "streamed_responses": HELLO, "tools_responses": WEATHER, "structured_responses": ADA,
    },
    "instructor_client": {
        "structured": ADA, "structured_json": ADA, "streamed": ADA, "wrong_key": "InstructorRetryException None",
    },
    "litellm_client": {
        "plain": HELLO, "streamed": HELLO, "tools": WEATHER, "responses": HELLO, "wrong_key": "AuthenticationError 401", "falls_back": "from the second",
    },
    "llm_command": {
        "plain": HELLO, "streamed": HELLO, "structured": '{"name": "Ada", "age": 36}', "goes_on": HELLO,
        "wrong_key": "Error: Error code: 401",
    },
}  # fmt: skip
"""What is seen of each case: an answer, its beginning, or the class and the status of an error."""


async def outcomes(program: str, url: str, *cases: str) -> dict[str, object]:
    """What came of each case."""
    quiet = {name: value for name, value in os.environ.items() if not name.endswith("_PROXY")}
    process = await asyncio.create_subprocess_exec(
        PYTHON, PROGRAMS / f"{program}.py", url, "served", *cases,
        env=quiet | {"PYTHONDONTWRITEBYTECODE": "", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(300):
            said, complained = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = [json.loads(line) for line in said.decode().splitlines() if line.startswith('{"case"')]
    assert process.returncode == 0, complained.decode()[-3000:]
    return {line["case"]: line["outcome"] for line in lines}


def seen(outcome: object, wanted: object) -> object:
    """As much of it as is wanted."""
    if isinstance(outcome, dict):
        facts = cast("dict[str, object]", outcome)
        return f"{facts['error']} {facts['status']}" if "error" in facts else facts
    if isinstance(outcome, str) and isinstance(wanted, str):
        return outcome[: len(wanted)]
    return outcome


@pytest.mark.parametrize("program", WANTED)
async def test_a_program_of_others_works_with_its_defaults(program: str, tmp_path: Path) -> None:
    wanted = WANTED[program]
    async with provider() as upstream:
        env = {
            "OUTSPOKEN_MODEL__BASE_URL": upstream.url,
            "OUTSPOKEN_MODEL__API_KEY": "k",
            "OUTSPOKEN_MODEL__NAME": "served",
            "OUTSPOKEN_SERVER__ERRORS": "auto",
        }
        async with served(tmp_path, env) as up:
            found = await outcomes(program, f"{up.url}/v1", *wanted)
    assert {case: seen(found[case], wanted[case]) for case in wanted} == wanted, found
