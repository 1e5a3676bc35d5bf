"""How long a provider asks to wait, in whatever form it says so: headers, fields of its error, or words. Pure.

| form | who | source |
|---|---|---|
| ``retry-after-ms: 1500`` | Azure, OpenAI | the `openai` SDK reads it first |
| ``Retry-After: 20``, or a date | most | RFC 9110, 10.2.3 |
| ``"retryDelay": "34s"`` in ``error.details`` | Gemini, Vertex | google.rpc.RetryInfo |
| ``Please try again in 1m26.4s`` / ``in 240ms`` | OpenAI, Groq | the text of their 429 |
| ``Please retry in 12.5s``, ``retry after 7 seconds`` | Gemini; Azure | the same |
| ``"retry_after": 3`` in the error | Discord-like proxies, Together | observed |
| ``"estimated_time": 20.0`` beside "is currently loading" | Hugging Face | huggingface/transformers#23793 |
| ``Loading model``, without a time: `LOADING_SECONDS` | llama.cpp | mostlygeek/llama-swap#146 |
| ``x-ratelimit-reset-requests: 6m0s`` with ``-remaining-requests: 0`` | OpenAI, Groq | platform.openai.com, rate limits |
| ``anthropic-ratelimit-tokens-reset: 2026-01-01T00:00:00Z`` | Anthropic | its documentation of rate limits |
| ``X-RateLimit-Reset: 1741305600000`` | OpenRouter (ms), others (s); also in ``metadata.headers`` of its error | its documentation of limits |
| ``Resets at 2026-08-07T05:00:00Z`` | Z.ai | LionSR/TeXRA #9865 |

The first row that says something counts: what is meant for a retry goes before what tells of a window.
"""

from __future__ import annotations

import datetime
import email.utils
import math
import re
from collections.abc import Mapping

from agent_core.jsonvalue import Json
from agent_core.text.patterns import late

MOST_SECONDS = 31 * 86_400.0
"""A quota of a month. What says to wait for longer is not believed."""
BODY_CHARS = 20_000
_DURATION = late(
    r"(\d{1,12}(?:\.\d{1,12})?)\s{0,4}(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])",
    re.IGNORECASE,
)
_RESETS_AT = late(
    r"(?:reset[s]?|again|retry)(?: \w+){0,2} (?:at|on|after|until):? (\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d))",
    re.IGNORECASE,
)
"""A moment with its time zone; without one nobody knows when it is."""
_LENGTH = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_WORDS = late(
    r"(?:try(?:ing)? again|retry(?:ing)?|available again|wait|reset[s]?)(?: \w+){0,3}? (?:in|after|for)?:? ?",
    re.IGNORECASE,
)
_ONE = r"\d{1,12}(?:\.\d{1,12})?\s{0,4}(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
_SPAN = late(rf"{_ONE}(?:[\s,]{{0,4}}(?:and )?{_ONE}){{0,8}}", re.IGNORECASE)
LOADING_SECONDS = 10.0
"""How long a server is left alone that says its model is not loaded yet. It takes some of these."""
_LOADING = late(
    r"^\W*loading model\W*$|\bmodel\b.{0,120}\bis (?:currently |still )?(?:loading|being loaded|warming up)",
    re.IGNORECASE,
)
_DELAY_KEYS = frozenset(
    {"estimated_time", "retrydelay", "retry_delay", "retry_after", "retryafter", "retry_after_seconds"}
)


def asked_pause(headers: Mapping[str, str], body: Json, now_ms: int) -> float:
    """Seconds that the provider asks to wait; 0 if it does not say. Names of headers in small letters."""
    for found in (
        _number(headers.get("retry-after-ms", ""), 0.001),
        _retry_after(headers.get("retry-after", "").strip(), now_ms),
        _in_body(body, now_ms),
        _window(headers, now_ms),
    ):
        if found is not None and found <= MOST_SECONDS:
            return max(0.0, found)
    return 0.0


def _number(text: str, unit: float = 1.0) -> float | None:
    try:
        value = float(text) * unit
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _retry_after(text: str, now_ms: int) -> float | None:
    if not text:
        return None
    seconds = _number(text)
    if seconds is None:
        seconds = spelt(text)
    if seconds is not None:
        return seconds
    try:
        return email.utils.parsedate_to_datetime(text).timestamp() - now_ms / 1000
    except (ValueError, TypeError, OverflowError):
        return None


def spelt(text: str) -> float | None:
    """A duration as people and providers write it ("1m26.4s", "240ms", "2 minutes"); None if the text is none."""
    text = text.strip()
    if len(text) > 60 or not _SPAN.fullmatch(text):
        return None
    total = 0.0
    for amount, unit in _DURATION.findall(text.lower()):
        key = "ms" if unit.startswith(("ms", "milli")) else unit[:1]
        total += float(amount) * _LENGTH[key]
    return total if math.isfinite(total) else None


def _in_body(body: Json, now_ms: int) -> float | None:
    """What fields or words of an error say."""
    texts: list[str] = []
    open_values: list[Json] = [body]
    looked = 0
    while open_values and looked < 200:
        looked += 1
        value = open_values.pop(0)
        if isinstance(value, dict):
            for key, inner in value.items():
                if key.lower().replace("-", "_") in _DELAY_KEYS:
                    found = _delay(inner)
                    if found is not None:
                        return found
                if key == "headers" and isinstance(inner, dict):
                    found = _window({name.lower(): str(said) for name, said in inner.items()}, now_ms)
                    if found is not None:
                        return found
                open_values.append(inner)
        elif isinstance(value, list):
            open_values += value
        elif isinstance(value, str):
            texts.append(value[:BODY_CHARS])
    found = next((found for text in texts if (found := _in_words(text, now_ms)) is not None), None)
    return LOADING_SECONDS if found is None and any(_LOADING.search(text) for text in texts) else found


def _delay(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value) if abs(value) <= MOST_SECONDS else None  # a number of any length is one in JSON
    if isinstance(value, dict):  # google.protobuf.Duration spelt out
        value = value.get("seconds")
        return _delay(value)
    if isinstance(value, str):
        plain = _number(value)
        return plain if plain is not None else spelt(value)
    return None


def _in_words(text: str, now_ms: int) -> float | None:
    for asked in _WORDS.finditer(text):
        found = _SPAN.match(text, asked.end())
        if found is not None:
            return spelt(found[0])
    moment = _RESETS_AT.search(text)
    return _moment(moment[1], now_ms) if moment else None


def _window(headers: Mapping[str, str], now_ms: int) -> float | None:
    """When the window begins anew whose room is used up; of several, the latest."""
    found: list[float] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        left = _number(headers.get(name.replace("reset", "remaining"), ""))
        if left is not None and left > 0:
            continue
        seconds = _moment(value.strip(), now_ms)
        if seconds is not None:
            found.append(seconds)
    return max(found, default=None)


def _moment(text: str, now_ms: int) -> float | None:
    """A duration, a time since 1970 in seconds or milliseconds, or a date, as seconds from now."""
    duration = spelt(text)
    if duration is not None:
        return duration
    number = _number(text)
    if number is not None:
        if number > 1e11:
            return number / 1000 - now_ms / 1000
        return number - now_ms / 1000 if number > 1e9 else number
    try:
        return datetime.datetime.fromisoformat(text).timestamp() - now_ms / 1000
    except (ValueError, OverflowError):
        return None
