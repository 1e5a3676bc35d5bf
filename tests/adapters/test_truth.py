"""What a program is told of a turn's end: the status where nothing was produced, content where something was; people get words."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.contract.base import LeftOpen, Queued, Showing, Sight
from adapters.http.api.spoken import Spoken, text_of
from adapters.http.api.truth import errors_as, failure_of, finish_of, is_cut, kind_of, problem_of, produced, status_of
from adapters.http.common import Problem, problem_response
from adapters.http.errorsas import ErrorsAs
from agent_core.failures.exits import EXITS, Answered, Exit, ExitCode, InternalError, NeverStarted, read
from agent_core.failures.notices import ExitClass, NotStarted, for_programs
from agent_core.limits.quotas import Full, QuotaKind, for_person
from agent_core.store.errors import LeaseLost, StorageUnavailable
from agent_core.turn.state import CallItem
from agent_core.turn.view import Bubble, BubbleKind
from gateway.daemon import Serving
from tests.adapters.scripted import ended, example, said, shown, text, tool
from tests.serving import served

# --- the rule ---

codes = st.sampled_from(list(ExitCode))
statuses = st.sampled_from([0, 200, 301, 400, 401, 402, 403, 404, 408, 413, 429, 500, 502, 503, 529])


@given(codes, statuses, st.booleans(), st.booleans(), st.booleans())
def test_a_program_gets_an_error_where_nothing_was_produced_and_nowhere_else(
    code: ExitCode, status: int, said_something: bool, ran: bool, handed: bool
):
    facts: dict[str, Any] = {"tools_done": ["write_file"] if ran else [], "tools_unsure": [], "status": status}
    ending = read({"code": code.value, "facts": {**EXITS[code].example, **facts}})
    bubbles = (text("s0", "Half of"),) if said_something else ()
    found = ended(ending, *bubbles, handed=(CallItem("c", "look", "{}"),) if handed else ())
    problem = problem_of(found, "")
    assert produced(found) == (said_something or ran or handed)
    if problem is None:
        assert produced(found) or status_of(ending) == 200
        return
    assert not produced(found)
    assert 400 <= problem.status < 600
    assert (problem.code, problem.kind) == (code.value, kind_of(problem.status))
    assert problem.message
    if ending.kind is ExitClass.PROVIDER and status >= 400:
        assert problem.status == status, "the provider's own"


def test_what_the_finish_reason_says_alone_is_no_error():
    alone = {code for code in ExitCode if EXITS[code].http == 200}
    assert alone == {
        ExitCode.ANSWERED, ExitCode.HANDED_TO_CLIENT, ExitCode.CUT_BY_LENGTH, ExitCode.TOOL_CALL_CUT_BY_LENGTH,
        ExitCode.REFUSED, ExitCode.REFUSED_MIDWAY,
    }  # fmt: skip


def test_a_program_is_told_when_to_ask_again_and_when_it_would_be_in_vain():
    limited = problem_of(ended(example(ExitCode.RATE_LIMITED, retry_after_seconds=600, tools_done=[])), "")
    assert limited is not None
    assert (limited.status, limited.retry_after, limited.in_vain) == (429, 600, False)
    down = problem_of(ended(example(ExitCode.PROVIDER_DOWN, tools_done=[])), "")
    assert down is not None
    assert (down.status, down.retry_after, down.in_vain) == (503, 0, True), "the gateway has tried it twice itself"
    for ending in (
        example(ExitCode.RATE_LIMITED, retry_after_seconds=0, tools_done=[]),
        example(ExitCode.PAYMENT_REQUIRED, status=429, tools_done=[]),
        example(ExitCode.PROVIDER_DOWN, status=408, tools_done=[]),
        example(ExitCode.PROVIDER_DOWN, status=409, tools_done=[]),
    ):
        problem = problem_of(ended(ending), "")
        assert problem is not None
        assert problem.in_vain, f"SDKs ask again at once for {problem.status}"
    ours = problem_of(ended(example(ExitCode.INTERNAL_ERROR, tools_done=[])), "")
    assert ours is not None
    assert not ours.in_vain, "another time it may go well"


@pytest.mark.parametrize(("wait", "told"), [(0, None), (20, None), (60, None), (61, "false"), (600, "false")])
def test_who_would_have_to_wait_long_is_not_to_ask_again_by_itself(wait: int, told: str | None):
    """SDKs wait a minute at most; told of more, some ask again at once."""
    assert problem_response(Problem(429, "too fast", retry_after=wait)).headers.get("x-should-retry") == told


MOZILLA = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"}


@pytest.mark.parametrize(
    ("headers", "configured", "structured", "told"),
    [
        ({}, ErrorsAs.AUTO, False, ErrorsAs.STATUS),
        ({"User-Agent": "OpenAI/Python 3.52.0"}, ErrorsAs.AUTO, False, ErrorsAs.STATUS),
        ({"User-Agent": "OpenAI/JS 6.9", "Sec-Fetch-Mode": "cors"}, ErrorsAs.AUTO, False, ErrorsAs.STATUS),  # Node
        (MOZILLA, ErrorsAs.AUTO, False, ErrorsAs.WORDS),
        (MOZILLA, ErrorsAs.AUTO, True, ErrorsAs.STATUS),
        (MOZILLA, ErrorsAs.STATUS, False, ErrorsAs.STATUS),
        ({"X-OpenWebUI-Chat-Id": "1", "User-Agent": "Python/3.12 aiohttp/3.14"}, ErrorsAs.AUTO, False, ErrorsAs.WORDS),
        ({"X-Outspoken-Errors": "Words"}, ErrorsAs.STATUS, True, ErrorsAs.WORDS),
        ({"X-Outspoken-Errors": "status", **MOZILLA}, ErrorsAs.WORDS, False, ErrorsAs.STATUS),
        ({"X-Outspoken-Errors": "auto", **MOZILLA}, ErrorsAs.WORDS, False, ErrorsAs.WORDS),
    ],
)
def test_the_header_comes_first_then_what_is_configured_then_what_suits_the_client(
    headers: dict[str, str], configured: ErrorsAs, structured: bool, told: ErrorsAs
):
    assert errors_as(headers, configured, structured=structured) is told


# --- words ---


@pytest.mark.parametrize("code", list(ExitCode))
def test_no_notice_for_programs_names_a_command_of_chats(code: ExitCode):
    notice = example(code).notice()
    words = [for_programs(notice.text)] if notice is not None else []
    words += [for_programs(reason.said(3, detail)) for reason in NotStarted for detail in ("", "why")]
    words += [for_programs(for_person(Full(kind, 10, 10, 1))) for kind in QuotaKind]
    for one in words:
        assert not re.search(r"(?<![\w.])/[a-z]+", one), one


# --- data ---

whole_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), whole_json, max_size=4), st.data())
def test_json_that_ends_before_its_end_is_known_as_cut_and_whole_json_is_not(
    value: dict[str, Any], data: st.DataObject
):
    written = json.dumps(value)
    assert not is_cut(written)
    assert not is_cut(f"Here it is: {written}")
    part = written[: data.draw(st.integers(1, len(written) - 1))]
    assert is_cut(part)


def test_cut_data_ends_with_length_although_the_provider_says_stop():
    last = ended(Answered(), text("s0", '{"a": [1, 2', BubbleKind.ANSWER, final=True))
    assert finish_of(last, '{"a": [1, 2', data=True) == "length"
    assert finish_of(last, '{"a": [1, 2]}', data=True) == "stop"
    assert finish_of(last, '{"a": [1, 2', data=False) == "stop"


@given(st.lists(st.sampled_from(["I look.", '{"a"', '{"a": 1}', " [2"]), min_size=1, max_size=3), st.data())
def test_a_client_that_asked_for_data_is_told_nothing_else(words: list[str], data: st.DataObject):
    """Whatever is said beside tools, by the gateway or by the model, and in whatever pieces it comes."""
    note = Bubble("n", BubbleKind.NOTE, "Something was left out.", final=True)
    answer = '{"answer": 42}'
    spoken, pieces = Spoken(data=True), list[str]()
    before: tuple[Bubble, ...] = ()
    for number, each in enumerate(words):
        if each.lstrip()[0] not in "{[":
            for length in range(1, len(each) + 1):
                pieces += [text_of(spoken.new(shown(*before, text(f"s{number}", each[:length]))))]
            before = (
                *before,
                text(f"s{number}", each, BubbleKind.INTERIM, final=True),
                tool(f"c{number}", "look", "done"),
                note,
            )
    for length in range(1, len(answer) + 1):
        pieces += [text_of(spoken.new(shown(*before, text("last", answer[:length]))))]
    assert "".join(pieces) == answer
    del data


# --- over HTTP, from a script ---

STATUS = {"X-Outspoken-Errors": "status"}
DOOR = "/v1/chat/completions"
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}
DENIED = example(ExitCode.NOT_AUTHORISED, tools_done=[])


@pytest.mark.parametrize("stream", [False, True])
async def test_the_status_is_real_as_long_as_nothing_was_produced(stream: bool):
    waiting = Showing("t_1", shown(Bubble("status", BubbleKind.STATUS, "Waiting", final=False)))
    status, headers, body = await said(
        [Queued(1), waiting, 2.0, ended(DENIED)], DOOR, {**ASKED, "stream": stream}, STATUS
    )
    told = json.loads(body)
    assert (status, headers["content-type"].partition(";")[0]) == (401, "application/json")
    assert told["error"]["code"] == "not_authorised"
    assert told["error"]["type"] == "authentication_error"
    assert (told["outspoken"]["exit"], told["outspoken"]["turn"]) == ("not_authorised", "t_1")


async def test_a_stream_that_has_waited_too_long_begins_with_comments_alone_and_ends_in_an_error_event():
    waiting = Showing("t_1", shown(Bubble("status", BubbleKind.STATUS, "Waiting", final=False)))
    status, _, body = await said(
        [waiting, 11.0, waiting, Queued(1), 4.0, waiting, ended(DENIED)], DOOR, {**ASKED, "stream": True}, STATUS
    )
    events = [line for line in body.decode().split("\n\n") if line and not line.startswith(":")]
    assert status == 200
    assert ": turn t_1" in body.decode()
    assert len(events) == 2
    assert json.loads(events[0].removeprefix("data: "))["error"]["code"] == "not_authorised"
    assert events[1] == "data: [DONE]"


@pytest.mark.parametrize("stream", [False, True])
async def test_words_are_words_whatever_happened(stream: bool):
    status, _, body = await said([ended(DENIED)], DOOR, {**ASKED, "stream": stream}, {"X-Outspoken-Errors": "words"})
    assert status == 200
    assert b"did not accept our key" in body
    assert b'"finish_reason":"length"' in body


@pytest.mark.parametrize("stream", [False, True])
async def test_where_something_was_produced_there_is_content_and_what_is_missing(stream: bool):
    broken = example(ExitCode.BROKEN_IN_TEXT, tools_done=[])
    script: list[Sight | float | BaseException] = [
        Showing("t_1", shown(text("s0", "Half of"))),
        ended(broken, text("s0", "Half of", final=True)),
    ]
    status, _, body = await said(script, DOOR, {**ASKED, "stream": stream}, STATUS)
    assert status == 200
    assert b"Half of" in body
    assert b"The reply above is cut short" in body
    assert b'"finish_reason":"length"' in body


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_a_refusal_and_text_for_those_who_look_at_the_text_alone(stream: bool):
    """LangChain's and litellm's streams, `llm` and Open WebUI have only the text, and showed nothing at all."""
    asked = {**ASKED, "stream": stream}
    status, _, body = await said([ended(example(ExitCode.REFUSED))], DOOR, asked, STATUS)
    assert status == 200
    assert b'"refusal":"The provider\'s content filter refused this request' in body
    assert b'"finish_reason":"content_filter"' in body
    assert b"[outspoken] The provider's content filter refused" in body
    data = {**asked, "response_format": {"type": "json_object"}}
    _, _, body = await said([ended(example(ExitCode.REFUSED))], DOOR, data, STATUS)
    assert b'"refusal":"The provider\'s content filter refused this request' in body
    assert b"[outspoken]" not in body


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_client_that_wants_json_gets_is_json_alone(stream: bool):
    body = {**ASKED, "stream": stream, "response_format": {"type": "json_object"}}
    note = Bubble("n", BubbleKind.NOTE, "Something was left out.", final=True)
    interim = text("s0", "Let me look.", BubbleKind.INTERIM, final=True)
    script: list[Sight | float | BaseException] = [
        Showing("t_1", shown(text("s0", "Let me"))),
        Showing("t_1", shown(interim, tool("c", "look", "done"), note, text("s1", '{"a"'))),
        ended(
            Answered(), interim, tool("c", "look", "done"), note, text("s1", '{"a": 1}', BubbleKind.ANSWER, final=True)
        ),
    ]
    _, _, got = await said(script, DOOR, body)
    if stream:
        chunks = [json.loads(line[6:]) for line in got.decode().split("\n\n") if line.startswith("data: {")]
        content = "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])
        facts = chunks[-1]["outspoken"]
    else:
        content, facts = json.loads(got)["choices"][0]["message"]["content"], json.loads(got)["outspoken"]
    assert content == '{"a": 1}'
    assert facts["notes"] == ["Something was left out."]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_that_goes_on_in_the_next_process_is_to_be_asked_for_again(stream: bool):
    status, headers, body = await said([LeftOpen("t_1", shown())], DOOR, {**ASKED, "stream": stream}, STATUS)
    assert (status, headers["retry-after"]) == (503, "5")
    assert json.loads(body)["error"]["code"] == "left_open"


async def test_what_is_not_known_of_usage_is_left_out():
    last = ended(Answered(), text("s0", "Hi.", BubbleKind.ANSWER, final=True))
    unknown = replace(last, summary=replace(last.summary, input_tokens=0, output_tokens=0))
    _, _, body = await said([unknown], DOOR, ASKED)
    assert "usage" not in json.loads(body)
    _, _, body = await said([unknown], DOOR, {**ASKED, "stream": True, "stream_options": {"include_usage": True}})
    assert b"usage" not in body
    cached = replace(last, summary=replace(last.summary, cached_tokens=20))
    _, _, body = await said([cached], DOOR, ASKED)
    assert json.loads(body)["usage"]["prompt_tokens_details"] == {"cached_tokens": 20}


async def test_a_header_that_says_nothing_known_is_refused():
    status, _, body = await said([], DOOR, ASKED, {"X-Outspoken-Errors": "loudly"})
    assert (status, json.loads(body)["error"]["param"]) == (400, "X-Outspoken-Errors")


def test_a_request_that_never_began_is_an_error_for_everybody():
    problem = failure_of(ended(example(ExitCode.NOT_STARTED)), "", ErrorsAs.WORDS, keyed=False)
    assert problem is not None
    assert (problem.status, problem.code) == (503, "not_started")


ENDS = [
    *(example(code, tools_done=[], tools_unsure=[]) for code in ExitCode),
    *(NeverStarted(reason=reason) for reason in NotStarted),
    InternalError(reason=NotStarted.GONE, detail="no longer kept"),
]
"""Ends of each kind, also those for which no model was ever asked or of which nothing is left."""


@given(st.sampled_from(ENDS), st.sampled_from([ErrorsAs.WORDS, ErrorsAs.STATUS]), st.booleans())
def test_each_error_that_ends_a_request_names_its_exit_and_under_its_key_is_not_to_be_asked_for_again(
    ending: Exit, errors: ErrorsAs, keyed: bool
):
    last = ended(ending)
    once = replace(last, summary=replace(last.summary, attempts=1))
    problem = failure_of(once, "s", errors, keyed=keyed)
    if problem is None:
        return
    assert (problem.facts["exit"], problem.facts["session"]) == (ending.code.value, "s")
    if keyed:  # the same key has the same end, for ever: who waits for another waits in vain
        assert problem.in_vain


# --- the whole gateway, and the real SDK ---


@pytest.fixture
async def up(tmp_path: Path) -> AsyncGenerator[Serving]:
    async with served(tmp_path, {"OUTSPOKEN_SERVER__ERRORS": "auto"}) as serving:
        yield serving


@pytest.fixture
async def client(up: Serving) -> AsyncGenerator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0) as made:
        yield made


FAULTS: dict[str, tuple[type[openai.APIStatusError], str, str]] = {
    "unauthorised": (openai.AuthenticationError, "not_authorised", "invalid_api_key"),
    "payment required": (openai.APIStatusError, "payment_required", "insufficient_quota"),
    "model not found": (openai.NotFoundError, "model_not_found", ""),
    "bad request": (openai.BadRequestError, "bad_request", ""),
    "long rate limit": (openai.RateLimitError, "rate_limited", "rate_limit_exceeded"),
    "context overflow": (openai.BadRequestError, "context_overflow", "context_length_exceeded"),
    "server error": (openai.InternalServerError, "provider_down", ""),
}


@pytest.mark.parametrize("fault", list(FAULTS))
async def test_the_sdk_raises_what_the_provider_said(client: openai.AsyncOpenAI, fault: str):
    kind, code, known_as = FAULTS[fault]
    words: list[Any] = [{"role": "user", "content": f"rehearse {fault} forever"}]
    for stream in (False, True):
        with pytest.raises(kind) as raised:
            await client.chat.completions.create(model="outspoken", messages=words, stream=stream)
        error = raised.value
        assert error.code == code
        assert known_as in str(error)
        if code == "rate_limited":
            assert int(error.response.headers["retry-after"]) > 0


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("a mistake"), "internal_error"), (StorageUnavailable("away"), "storage_unavailable"),
        (LeaseLost("lost"), "storage_unavailable"),
    ],
)  # fmt: skip
async def test_what_fails_after_white_space_has_gone_out_is_told_in_the_one_body(
    path: str, error: Exception, code: str
) -> None:
    asked = {"messages": [{"role": "user", "content": "x"}]} if "chat" in path else {"input": "x"}
    status, headers, body = await said([60.0, 60.0, error], path, asked)
    assert (status, headers["content-type"]) == (200, "application/json")
    assert body.startswith(b" ")
    assert json.loads(body)["error"]["code"] == code
    assert b"HTTP/" not in body
