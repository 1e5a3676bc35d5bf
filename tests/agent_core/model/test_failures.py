"""What providers' refusals mean, in the wordings that are about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.jsonvalue import Json
from agent_core.model.failures import rejection, says_no
from agent_core.model.pauses import asked_pause

CASES: list[tuple[int, Json, BreakCause]] = [
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens.", "code": "context_length_exceeded"}}, BreakCause.CONTEXT_OVERFLOW),
    (400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"}}, BreakCause.CONTEXT_OVERFLOW),
    (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens", "type": "BadRequestError"}, BreakCause.CONTEXT_OVERFLOW),
    (400, {"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}, BreakCause.CONTEXT_OVERFLOW),
    (413, {"error": {"message": "Request too large"}}, BreakCause.TOO_LARGE),
    (400, {"error": {"code": "content_filter", "message": "filtered"}}, BreakCause.REFUSED),
    (400, {"error": {"message": "Unknown parameter: foo"}}, BreakCause.BAD_REQUEST),
    (422, {"detail": "bad"}, BreakCause.BAD_REQUEST),
    (401, {"error": {"message": "Incorrect API key provided: sk-abc"}}, BreakCause.UNAUTHORISED),
    (403, None, BreakCause.FORBIDDEN),
    (402, {"error": {"message": "Insufficient credits"}}, BreakCause.PAYMENT_REQUIRED),
    (404, {"error": {"code": "model_not_found"}}, BreakCause.NOT_FOUND),
    (429, {"error": {"code": "rate_limit_exceeded"}}, BreakCause.RATE_LIMITED),
    (429, {"error": {"code": "insufficient_quota"}}, BreakCause.PAYMENT_REQUIRED),
    (500, "<html>", BreakCause.SERVER_ERROR),
    (529, {"error": {"type": "overloaded_error"}}, BreakCause.SERVER_ERROR),
    (302, None, BreakCause.GARBAGE),
    (0, {"message": "Upstream error", "code": 502}, BreakCause.SERVER_ERROR),
    (0, {"message": "Rate limited", "code": 429}, BreakCause.RATE_LIMITED),
    (0, {"message": "Slow down", "code": "rate_limit_exceeded"}, BreakCause.RATE_LIMITED),
    (0, {"error": {"type": "too_many_requests"}}, BreakCause.RATE_LIMITED),
    (0, {"error": {"code": "invalid_api_key"}}, BreakCause.UNAUTHORISED),
    (0, {"error": {"type": "overloaded_error"}}, BreakCause.SERVER_ERROR),
    (0, {"message": "something odd"}, BreakCause.ERROR_IN_STREAM),
    (0, "plain words", BreakCause.ERROR_IN_STREAM),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "cause"), CASES)
def test_a_refusal_is_understood(status: int, body: Json, cause: BreakCause):
    assert rejection(status, body).cause is cause


@pytest.mark.parametrize(
    ("codes", "cause"),
    [
        ("rate_limit_exceeded rate_limit_error too_many_requests rate_limited resource_exhausted", BreakCause.RATE_LIMITED),
        ("invalid_api_key authentication_error invalid_authentication unauthenticated", BreakCause.UNAUTHORISED),
        ("overloaded_error overloaded service_unavailable unavailable internal_server_error api_error", BreakCause.SERVER_ERROR),
    ],
)  # fmt: skip
@pytest.mark.parametrize("key", ["type", "code"])
def test_an_error_within_a_stream_is_known_by_its_code_alone(codes: str, key: str, cause: BreakCause):
    for code in codes.split():
        assert rejection(0, {"error": {key: code, "message": "no"}}).cause is cause, code


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "x"]), inner, max_size=3)
    ),
)


@given(st.integers(0, 599), json_values)
def test_no_body_is_too_odd(status: int, body: Json):
    found = rejection(status, body)
    assert len(found.detail) <= 300


def test_retry_after_is_read_in_every_form():
    assert asked_pause({"retry-after": "7"}, None, 0) == 7
    assert asked_pause({"retry-after-ms": "1500"}, None, 0) == 1.5
    assert asked_pause({"retry-after": "Thu, 01 Jan 1970 00:01:00 GMT"}, None, 0) == 60
    assert asked_pause({"retry-after": "soon"}, None, 0) == 0
    assert asked_pause({"retry-after": "nan"}, None, 0) == 0
    assert asked_pause({"retry-after": "-5"}, None, 0) == 0
    assert asked_pause({}, None, 0) == 0


@pytest.mark.parametrize(
    ("body", "no"),
    [
        ({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, True),  # MiniMax
        ({"base_resp": {"status_code": 0, "status_msg": ""}}, False),
        # Cloudflare
        (
            {"result": None, "success": False, "errors": [{"code": 10000, "message": "Authentication error"}]},
            True,
        ),
        ({"object": "error", "message": "it failed", "code": 400}, True),  # vLLM
        ({"code": "InvalidParameter", "message": "it failed", "request_id": "x"}, True),  # DashScope
        ({"code": 200, "message": "success"}, False),
        ({"detail": "Not authenticated"}, True),  # FastAPI
        ({"type": "ping"}, False),
        ({"message": "queued"}, False),
        ({"usage": {"prompt_tokens": 1}}, False),
    ],
)
def test_an_object_without_choices_is_a_refusal_if_it_says_so(body: dict[str, Json], no: bool) -> None:
    assert says_no(body) is no


@pytest.mark.parametrize(
    ("status", "body", "detail"),
    [
        (400, {"statusCode": 400, "error": "Bad Request", "message": "max_tokens is too large"}, "max_tokens is too large"),
        (404, {"status": 404, "title": "Not Found", "detail": "Function 'f1': not found for account"}, "Function 'f1': not found for account"),
        (403, {"error": "Forbidden", "message": ["this key may not", "use the model"]}, "use the model"),
        (503, {"error": "Service Unavailable"}, "Service Unavailable"),
    ],
)  # fmt: skip
def test_the_name_of_a_status_says_less_than_what_stands_beside_it(status: int, body: Json, detail: str):
    """Fastify, Nest, Spring and NVIDIA put both into an answer."""
    assert rejection(status, body).detail == detail
