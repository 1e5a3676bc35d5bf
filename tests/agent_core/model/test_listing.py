"""Which model is asked where none is named: the first of its endpoint's list that may answer."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from agent_core.model.client import ModelClient
from agent_core.model.endpoints import Credential, Endpoint, first_to_talk
from agent_core.ports import SystemClock
from agent_core.text.redaction import Redactor


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (["llama3.2:3b", "nomic-embed-text:latest"], "llama3.2:3b"),
        (["nomic-embed-text:latest", "llama3.2:3b"], "llama3.2:3b"),
        (["text-embedding-nomic-embed-text-v1.5", "all-minilm:33m", "BAAI/bge-m3", "bge-reranker-v2-m3", "qwen3:8b"], "qwen3:8b"),
        (["dall-e-3", "whisper-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-transcribe", "gpt-image-1", "omni-moderation-latest", "gpt-5"], "gpt-5"),
        (["mistral-embed", "ministral-8b"], "ministral-8b"),
        (["nomic-embed-text"], "nomic-embed-text"),
        (["", "rehearsal"], "rehearsal"),
        ([], ""),
    ],
)  # fmt: skip
def test_who_only_embeds_hears_or_draws_is_asked_only_where_there_is_nobody_else(names: list[str], first: str) -> None:
    assert first_to_talk(names) == first


async def test_an_endpoint_that_lists_what_embeds_first_is_asked_for_the_first_that_answers() -> None:
    """Ollama lists first what was fetched last (odysseus-dev/odysseus#4487)."""
    listed = orjson.dumps(
        {"object": "list", "data": [{"id": "nomic-embed-text:latest"}, 7, {"id": 7}, {"id": "llama3.2:3b"}]}
    )

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
        writer.write(head % len(listed) + listed)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = ModelClient((Endpoint("up", address, (Credential("k", "s"),), ()),), SystemClock(), Redactor())
        assert await client.model_names() == {"up": "llama3.2:3b"}
        await client.aclose()
