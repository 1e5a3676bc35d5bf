"""The model of claims, lease and send, with two incarnations; `make soak` has three."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.model.run import MISSING, MODEL, QUESTIONS, Question, can_check, check

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not can_check(), reason=MISSING)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: "-".join(one.defined))
def test_the_model_comes_out_as_the_page_says(question: Question) -> None:
    found = check([*question.defined, "NODES=2"])
    assert found.sound == question.sound, found.said


def test_what_the_model_names_is_in_the_code() -> None:
    names = re.findall(r"`(\w+)\.(\w+)`", MODEL.read_text().partition("*/")[0])
    source = "\n".join(
        path.read_text() for top in ("agent_core", "gateway", "adapters") for path in (ROOT / top).rglob("*.py")
    )
    missing = [f"{one}.{other}" for one, other in names if f"def {other}(" not in source or f"{one}" not in source]
    assert not missing
