"""The SDK is loaded without what nobody asks for, and is whole for whoever does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
BEGIN = """
import sys
from agent_core.model.sdk import lighten
lighten(); lighten()
import openai
client = openai.AsyncOpenAI(api_key="none", base_url="http://127.0.0.1:9/v1", http_client=openai.DefaultAioHttpClient())
client.models, client.post
"""
MOST = 200
"""Of the SDK's modules; without more ado they are more than five hundred."""


def said(words: str) -> str:
    ran = subprocess.run([sys.executable, "-c", BEGIN + words], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


def test_a_client_is_made_of_a_part_of_the_sdk() -> None:
    count = int(said("print(sum(name.partition('.')[0] == 'openai' for name in sys.modules))"))
    assert 50 < count < MOST


def test_whatever_is_asked_of_it_is_there() -> None:
    words = """
from openai.types.chat import ChatCompletion
from openai.types.responses import Response
from openai.types import Completion
import openai.types.beta.threads
assert openai.types.CompletionUsage and openai.types.chat.ChatCompletionChunk and openai.resources.Chat
assert client.chat.completions.create and client.with_raw_response.models.list
kinds = [openai.types, openai.types.chat, openai.types.responses, openai.resources]
print(ChatCompletion.model_validate({"id": "a", "choices": [], "created": 1, "model": "m", "object": "chat.completion"}).id,
      {type(kind).__name__ for kind in kinds}, openai.types.chat.__all__ if hasattr(openai.types.chat, "__all__") else "")
"""
    assert said(words).startswith("a {'module'}")


def test_what_is_not_there_is_told_as_ever() -> None:
    words = """
try:
    openai.types.nothing_of_the_kind
except AttributeError as error:
    print(error)
"""
    assert "nothing_of_the_kind" in said(words)
