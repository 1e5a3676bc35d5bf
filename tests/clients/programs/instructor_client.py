"""instructor with its default mode: structured answers by a tool, asked again when they do not fit."""

from __future__ import annotations

import instructor
from cases import MODEL, run
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


run(
    structured=lambda: who("who?"),
    structured_json=lambda: who("who?", mode=instructor.Mode.JSON),
    streamed=partly,
    wrong_key=lambda: who("fail 401"),
)
