"""Which models an endpoint has: its list, asked for by the `openai` SDK. Only endpoints without a configured model are asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import cast

import httpx2
import openai
import orjson
from typing_extensions import override

from agent_core.jsonvalue import Json
from agent_core.model.endpoints import Endpoint, first_to_talk
from agent_core.model.reach import Theirs
from agent_core.model.stream.bodies import ERROR, PACKED, WHOLE, bounded
from agent_core.model.transport import trusted

SECONDS = 5.0


async def first_model(endpoint: Endpoint) -> str:
    """The first model of its list that may answer in words; empty if the list is none. Raises `TransportBroke`, `openai.APIStatusError`, `orjson.JSONDecodeError`."""
    with Theirs(openai.APIStatusError):
        http = openai.DefaultAioHttpClient(
            timeout=SECONDS, follow_redirects=False, verify=trusted(), event_hooks={"response": [_bound]}
        )
        sdk = openai.AsyncOpenAI(
            api_key=endpoint.credentials[0].secret,
            base_url=endpoint.base_url,
            max_retries=0,
            default_headers=dict(endpoint.headers),
            http_client=http,
        )
        async with sdk:
            page = await sdk.models.with_raw_response.list(
                timeout=SECONDS, extra_headers={"Accept-Encoding": "identity", "User-Agent": "outspoken"}
            )
    body: Json = orjson.loads(page.content)
    data = body.get("data") if isinstance(body, dict) else None
    found = [one.get("id") for one in data if isinstance(one, dict)] if isinstance(data, list) else []
    return first_to_talk(name for name in found if isinstance(name, str))


async def _bound(response: httpx2.Response) -> None:
    """A hook of the SDK's client, called when the head is there: it reads bodies whole, and this one may never end."""
    packed = response.headers.get("content-encoding", "").strip().lower() in PACKED
    response.headers.pop("content-encoding", None)  # what is handed on is not packed
    response.stream = _Body(cast("httpx2.AsyncByteStream", response.stream), success=response.is_success, packed=packed)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, *, success: bool, packed: bool) -> None:
        self._stream = stream
        self._limits = WHOLE if success else ERROR
        self._packed = packed

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in bounded(aiter(self._stream), self._limits, packed=self._packed):
            yield piece

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()
