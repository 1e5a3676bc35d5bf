"""How long a provider asks to wait, in whatever form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.jsonvalue import Json
from agent_core.model.pauses import LOADING_SECONDS, MOST_SECONDS, asked_pause

NOW = 1_700_000_000_000
FORMS: list[tuple[dict[str, str], Json, float]] = [
    ({"retry-after": "20"}, None, 20),
    ({"retry-after": "1m30s"}, None, 90),
    ({"retry-after-ms": "1500", "retry-after": "9"}, None, 1.5),
    ({"retry-after": "Tue, 14 Nov 2023 22:14:20 GMT"}, None, 60),
    ({}, {"error": {"message": "Rate limit reached for gpt-4 in organization org on tokens per min (TPM): Limit 10000, Used 9500. Please try again in 1m26.4s."}}, 86.4),
    ({}, {"error": {"message": "Please try again in 240ms. Visit https://platform.openai.com"}}, 0.24),
    ({}, [{"error": {"code": 429, "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}], 34),
    ({}, {"error": {"message": "You exceeded your current quota. Please retry in 12.54s."}}, 12.54),
    ({}, {"error": {"message": "Requests to the API have exceeded the limit. Please retry after 7 seconds."}}, 7),
    ({}, {"error": {"message": "Please wait 2 minutes and 5 seconds before the next request"}}, 125),
    ({}, {"retry_after": 3.5, "message": "slow down"}, 3.5),
    ({}, {"error": {"metadata": {"headers": {"Retry-After": "8"}}}}, 8),
    ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "9m", "x-ratelimit-remaining-tokens": "100"}, None, 360),
    ({"x-ratelimit-reset-tokens": "9m", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-requests": "6m", "x-ratelimit-remaining-requests": "0"}, None, 540),
    ({"x-ratelimit-reset-requests": "6m0s", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-tokens": "9m", "x-ratelimit-remaining-tokens": "1"}, None, 360),
    ({"x-ratelimit-reset": "1700000030000", "x-ratelimit-remaining": "0"}, None, 30),
    ({"x-ratelimit-reset": "1700000040"}, None, 40),
    ({"anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:20Z", "anthropic-ratelimit-tokens-remaining": "0"}, None, 60),
    ({}, {"error": {"message": "Rate limit exceeded: free-models-per-day", "metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000030000"}}}}, 30),
    ({}, {"error": {"code": "1316", "message": "Usage limit reached for 5 hour. Resets at 2023-11-14T22:14:20Z"}}, 60),
    ({}, {"error": {"code": "1308", "message": "Your limit will reset at 2023-11-14 22:14:20"}}, 0),
    ({"retry-after": "soon"}, {"error": {"message": "try again in 5s"}}, 5),
    ({}, {"error": {"message": "The model took 30 seconds and failed"}}, 0),
    ({}, {"error": {"message": "Try again later"}}, 0),
    ({}, {"error": "Model meta-llama/Llama-2-13b-chat is currently loading", "estimated_time": 20.0}, 20),
    ({}, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}}, LOADING_SECONDS),
    ({}, {"error": {"message": "The model is still loading, try again in 3 seconds"}}, 3),
    ({}, {"error": {"message": "llama-server process has terminated: error loading model: no such file"}}, 0),
    ({"retry-after": "nan"}, None, 0),
    ({"retry-after-ms": "inf"}, None, 0),
    ({"retry-after": "1e300"}, None, 0),
    ({"retry-after": "Thu, 01 Jan 2099 00:00:00 GMT"}, {"error": {"message": "try again in 5s"}}, 5),
    ({"retry-after": "-3"}, None, 0),
    ({}, {"retry_after": float("nan"), "error": "x"}, 0),
    ({}, {"retry_after": True}, 0),
    ({}, {"retry_after": 10**400, "message": "try again in 5s"}, 5),
    ({}, {"retry_after": -(10**400)}, 0),
]  # fmt: skip


@pytest.mark.parametrize(("headers", "body", "seconds"), FORMS)
def test_every_form_is_read(headers: dict[str, str], body: Json, seconds: float) -> None:
    assert asked_pause(headers, body, NOW) == pytest.approx(seconds)


JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["error", "retry_after", "retryDelay", "x"]), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-remaining"]),
        st.text(max_size=30) | st.floats().map(str),
    ),
    JSON,
)
def test_whatever_is_said_it_is_a_length_of_time(headers: dict[str, str], body: Json) -> None:
    assert 0 <= asked_pause(headers, body, NOW) <= MOST_SECONDS
