"""Asks an address whether an outspoken gateway answers there, and how it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, StrEnum, auto

import aiohttp
import orjson

from agent_core.tools.base import Json

MOST_BYTES = 256 * 1024


class Question(StrEnum):
    """What can be asked; `gateway.observe.health` says what each means. A yes is harder to get from one to the next."""

    ALIVE = "alive"
    READY = "ready"
    WELL = "well"

    @property
    def path(self) -> str:
        """Where it is asked."""
        return {Question.ALIVE: "/healthz", Question.READY: "/readyz", Question.WELL: "/wellz"}[self]


@dataclass(frozen=True, slots=True)
class Said:
    """What came of a question."""

    yes: bool
    why: tuple[str, ...] = ()
    """Why it is no, in words."""


async def health(url: str, question: Question, key: str | None, seconds: float) -> Said:
    """Ask one of the health questions; an answer after at most so many seconds, whatever is at the address."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(url + question.path, headers=headers) as response,
        ):
            status = response.status
            body: Json = orjson.loads(await response.content.read(MOST_BYTES))
    except TimeoutError:
        return Said(yes=False, why=(f"{url} does not answer within {seconds:g} s.",))
    except (aiohttp.ClientError, OSError, orjson.JSONDecodeError) as error:
        return Said(yes=False, why=(f"No gateway answers at {url} ({type(error).__name__}).",))
    table = body if isinstance(body, dict) else {}
    problems, error = table.get("problems"), table.get("error")
    why = [str(one) for one in problems] if isinstance(problems, list) else []
    if isinstance(error, dict):
        why.append(str(error.get("message")))
    if status != 200 or "status" not in table:
        return Said(yes=False, why=tuple(why) or (f"What answers at {url} is no gateway (HTTP {status}).",))
    return Said(yes=True)


class Reply(Enum):
    """What came from the address where the gateway should be."""

    GATEWAY = auto()
    SILENT = auto()
    """Somebody took the connection, and said nothing."""
    NOBODY = auto()
    """Nobody listens there, or somebody who is no gateway."""


async def reply_of(url: str, seconds: float = 3.0) -> Reply:
    """What ``/healthz`` at `url` says; asked once, and known after so many seconds."""
    timeout = aiohttp.ClientTimeout(total=seconds)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as http,
            http.get(url + Question.ALIVE.path) as response,
        ):
            body: Json = orjson.loads(await response.content.read(MOST_BYTES))
    except TimeoutError:
        return Reply.SILENT
    except (aiohttp.ClientError, OSError, orjson.JSONDecodeError):
        return Reply.NOBODY
    return Reply.GATEWAY if isinstance(body, dict) and body.get("program") == "outspoken" else Reply.NOBODY
