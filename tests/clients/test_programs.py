"""Programs of others, from their packages and with their defaults, against a running gateway: what a person who uses each of them sees.

They live in an environment of their own, `.venv/clients`, as their requirements are not ours (`make test` makes it once).
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.clients.faults import FAULTS
from tests.clients.matrix import ADA, HELLO, WEATHER, few, judged, outcomes, rig

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
        "structured": ADA, "structured_json": ADA, "streamed": ADA, "wrong_key": "InstructorRetryException 401",
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


def seen(outcome: object, wanted: object) -> object:
    """As much of it as is wanted."""
    if isinstance(outcome, dict):
        facts = cast("dict[str, object]", outcome)
        return f"{facts['error']} {facts['status']}" if "error" in facts else facts
    if isinstance(outcome, str) and isinstance(wanted, str):
        return outcome[: len(wanted)]
    return outcome


@pytest.mark.parametrize("program", WANTED)
async def test_a_program_of_others_works_with_its_defaults_and_is_told_the_truth_of_faults(
    program: str, tmp_path: Path
) -> None:
    """A few of its ways to meet faults; `python -m tests.clients.matrix` has all of them meet all (`make soak`)."""
    wanted, faults = WANTED[program], few(program)
    async with rig(tmp_path) as up:
        lines = await outcomes(program, up.url, [*wanted], faults)
        found = {case: lines[case]["outcome"] for case in wanted}
        assert {case: seen(found[case], wanted[case]) for case in wanted} == wanted, found
        untrue = {str(case): said for case, (said, _) in judged(up, faults, lines).items() if said}
    assert not untrue, lines


def test_every_fault_is_met_by_some_program() -> None:
    assert {case.fault for program in WANTED for case in few(program)} == set(FAULTS)
