"""instructor with its default mode: structured answers by a tool, asked again when they do not fit."""

from __future__ import annotations

import instructor
from cases import MODEL, run, seen
from openai import OpenAI
from pydantic import BaseModel


class Person(BaseModel):
    name: str
    age: int


def who(words: str, **more: object) -> dict:
    client = instructor.from_openai(OpenAI(), **more)
    return client.create(response_model=Person, model=MODEL, messages=[{"role": "user", "content": words}]).model_dump()


def partly() -> dict:
    client = instructor.from_openai(OpenAI())
    made = client.create_partial(response_model=Person, model=MODEL, messages=[{"role": "user", "content": "who?"}])
    return list(made)[-1].model_dump()


def _way(**more: object) -> object:
    return lambda words: seen(None, None, who(words, **more))


def _partly(words: str) -> dict:
    made = instructor.from_openai(OpenAI()).create_partial(
        response_model=Person, model=MODEL, messages=[{"role": "user", "content": words}]
    )
    return seen(None, None, list(made)[-1].model_dump())


WAYS = {
    "chat data": _way(),
    "chat data json": _way(mode=instructor.Mode.JSON),
    "chat data stream": _partly,
    "responses data": _way(mode=instructor.Mode.RESPONSES_TOOLS),
}


run(
    WAYS,
    structured=lambda: who("who?"),
    structured_json=lambda: who("who?", mode=instructor.Mode.JSON),
    streamed=partly,
    wrong_key=lambda: who("fail 401"),
)
