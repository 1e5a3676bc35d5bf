"""The entrance: whatever bytes a request's headers and body hold, it is answered in words, and never with a traceback."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict
from structlog.testing import capture_logs

from adapters.http.entrance import MOST_DEPTH, USED, NotJson, authority_ok, client_of, json_of, proofs, unreadable
from agent_core.jsonvalue import Json
from agent_core.text.wellformed import well_formed
from gateway.daemon import Serving
from tests.serving import served

KEY = "k" * 20
ROUTES = (
    ("GET", "/"), ("GET", "/static/page.js"), ("GET", "/api/about"), ("GET", "/api/turns/t_1/why"),
    ("POST", "/api/sessions/abcdefgh/messages"), ("POST", "/api/sessions/abcdefgh/stop"), ("POST", "/api/sessions/abcdefgh/approvals"),
    ("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/v1/models/x"), ("OPTIONS", "/v1/models"), ("GET", "/v1/nothing"),
    ("GET", "/status"), ("GET", "/api/access"), ("POST", "/api/access"), ("POST", "/api/send"), ("GET", "/console"),
    ("GET", "/console/api/explain/t_1"), ("POST", "/console/api/outbox/act"), ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"),
    ("POST", "/telegram/x"), ("POST", "/slack/events"), ("GET", "/nowhere"),
)  # fmt: skip
NASTY = (
    b"Host: [::1", b"Host: evil.example@127.0.0.1", b"Host: \xff", b"Host: a b", b"Host: x:99999999", b"Host: ",
    b"Origin: http://[::1", b"Origin: \xff\xfe", b"Origin: null", b"Origin: http://a@b", b"Origin: nonsense", b"Authorization: Bearer \xff",
    b"Authorization: \xff", b"Authorization: Basic", b"X-Telegram-Bot-Api-Secret-Token: \xff", b"X-Slack-Request-Timestamp: abc",
    b"X-Slack-Request-Timestamp: \xff", b"X-Slack-Signature: \xff", b"Idempotency-Key: \xff", b"X-Request-Id: \xed\xa0\x80",
    b"X-Outspoken-Session: \xff", b"X-Outspoken-Disconnect: \xff", b"Content-Type: \xff", b"Content-Type: application/json; charset=punycode",
    b"Access-Control-Request-Headers: \xff", b"Sec-Fetch-Site: \xff", b"X-Forwarded-For: \xff", b"Content-Encoding: gzip",
    b"Content-Encoding: br", b"Content-Encoding: nonsense", b"Cookie: \xff", b"Range: bytes=\xff", b"If-None-Match: \xff", b"If-Modified-Since: x",
    b"Expect: 100-continue", b"Expect: \xff", b"Upgrade: websocket", b"Transfer-Encoding: nonsense",
)  # fmt: skip


# --- pure ---


@given(st.dictionaries(st.sampled_from([*USED, *proofs()]), st.binary(max_size=60), max_size=4))
def test_any_bytes_in_any_header_are_read_or_refused(values: dict[str, bytes]) -> None:
    headers = CIMultiDict({name: value.decode("utf-8", "surrogateescape") for name, value in values.items()})
    problem = unreadable(headers)
    if problem is None:
        for value in headers.values():
            value.encode()
        assert authority_ok(headers.get("Host", ""))
    else:
        assert problem.status in (400, 401, 403)
        assert problem.message.isprintable()


@pytest.mark.parametrize(
    "good", ["", "localhost", "127.0.0.1:8787", "[::1]", "[::1]:80", "chat.example.org", "a_b.example:1"]
)
def test_a_host_that_is_one_is_taken(good: str) -> None:
    assert authority_ok(good)


@pytest.mark.parametrize(
    "bad", ["[::1", "evil.example@127.0.0.1", "a b", "x:99999999", "x:y", "a/b", "a?b", "a#b", "\udcff", "[x]", "a\\b"]
)
def test_a_host_that_is_none_is_not(bad: str) -> None:
    assert not authority_ok(bad)


@given(st.integers(1, 1_500), st.sampled_from([b"[", b'{"a":']))
def test_json_is_read_up_to_a_depth_and_refused_in_words_beyond_it(depth: int, opening: bytes) -> None:
    raw = opening * depth + b"1" + (b"]" if opening == b"[" else b"}") * depth
    if depth <= MOST_DEPTH:
        assert orjson.dumps(json_of(raw)) == raw
    else:
        with pytest.raises(NotJson, match="nested deeper than 100 levels"):
            json_of(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_refused(raw: bytes) -> None:
    try:
        value = json_of(raw)
    except NotJson:
        return
    assert value == orjson.loads(raw)


@given(st.recursive(st.text(max_size=4) | st.integers(0, 9), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=8), st.booleans())  # fmt: skip
@example({"content": "half a smile \ud83d"}, True)
@example({"\ude00": ["a \ud83d\ude00"]}, True)
def test_half_characters_are_json(value: Json, spelt: bool) -> None:
    """JavaScript cuts texts in the middle of a character, and spells the half that is left; RFC 8259 lets it. Nothing after it takes that half."""
    raw = json.dumps(value, ensure_ascii=spelt).encode("utf-8", "surrogatepass")
    if not spelt and b"\xed" in raw:
        return
    assert json_of(raw) == json.loads(well_formed(json.dumps(value, ensure_ascii=False)))


def test_what_is_wrong_beside_half_characters_is_refused() -> None:
    for raw in (b'["\\ud83d", NaN]', b'["\\ud83d",]', b'["\\ud83d"', b'"\\ud83d' + b"[" * 5_000):
        with pytest.raises(NotJson):
            json_of(raw)
    with pytest.raises(NotJson, match="nested deeper"):
        json_of(b"[" * 500 + b'"\\ud83d"' + b"]" * 500)


def test_brackets_in_words_are_no_depth() -> None:
    assert json_of(orjson.dumps(["[{" * 5_000])) == ["[{" * 5_000]


def test_a_proxy_is_believed_only_if_it_is_trusted() -> None:
    ours = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]
    assert client_of("10.0.0.1", "6.6.6.6, 1.2.3.4, 10.0.0.2", ours) == "1.2.3.4"
    assert client_of("::ffff:10.0.0.1", "1.2.3.4", ours) == "1.2.3.4"
    assert client_of("8.8.8.8", "1.2.3.4", ours) == "8.8.8.8"
    assert client_of("10.0.0.1", "", ours) == "10.0.0.1"


# --- the server ---


@asynccontextmanager
async def up(folder: Path) -> AsyncGenerator[Serving]:
    async with served(folder, {"OUTSPOKEN_SERVER__API_KEY": KEY}) as serving:
        yield serving


async def asked(port: int, request: bytes) -> bytes:
    """The answer to raw bytes; as much of it as comes within a moment (streams go on)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(60):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    finally:
        writer.close()


def request_of(method: str, path: str, header: bytes, body: bytes = b"{}") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\n".encode()
    if not header.lower().startswith(b"host:"):
        head += b"Host: 127.0.0.1\r\n"
    if not header.lower().startswith(b"content-type:"):
        head += b"Content-Type: application/json\r\n"
    if not header.lower().startswith(b"authorization:"):
        head += f"Authorization: Bearer {KEY}\r\n".encode()
    return head + header + b"\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


async def test_no_header_of_any_route_is_answered_with_a_mistake_of_ours(tmp_path: Path) -> None:
    async with up(tmp_path) as serving:
        port = int(serving.url.rsplit(":", 1)[1])
        with capture_logs() as logs:
            for method, path in ROUTES:
                answers = await asyncio.gather(*(asked(port, request_of(method, path, header)) for header in NASTY))
                for header, answer in zip(NASTY, answers, strict=True):
                    assert answer.startswith(b"HTTP/1."), (method, path, header, answer)
                    assert status_of(answer) != 500, (method, path, header, answer)
        assert [
            line for line in logs if line["log_level"] in ("error", "critical") and line.get("path", "") != ""
        ] == []


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Host: [::1", 400),
        (b"Host: evil.example@127.0.0.1", 400),
        (b"Origin: http://[::1", 400),
        (b"Authorization: Bearer \xff", 401),
        (b"X-Telegram-Bot-Api-Secret-Token: \xff", 403),
        (b"X-Slack-Request-Timestamp: abc", 401),
    ],
)
async def test_what_cannot_be_read_is_refused_by_its_kind(header: bytes, status: int, tmp_path: Path) -> None:
    async with up(tmp_path) as serving:
        port = int(serving.url.rsplit(":", 1)[1])
        answer = await asked(port, request_of("GET", "/v1/models", header))
        assert status_of(answer) == status, answer


async def test_json_of_any_depth_gets_an_answer_on_every_route_that_reads_some(tmp_path: Path) -> None:
    async with up(tmp_path) as serving:
        port = int(serving.url.rsplit(":", 1)[1])
        for depth in (99, 101, 255, 500, 1_000, 1_023, 1_024, 5_000):
            deep = b"[" * depth + b"]" * depth
            for method, path in [route for route in ROUTES if route[0] == "POST"]:
                for body in (
                    deep,
                    b'{"messages":[{"role":"user","content":"x"}],"tools":%b,"model":"outspoken"}' % deep,
                ):
                    status = status_of(await asked(port, request_of(method, path, b"X-A: b", body)))
                    assert 200 <= status < 500, (depth, path, status)


POSTED = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n".encode()
NOT_HTTP = (
    b"nonsense\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /v1/models HTTP/x\r\n\r\n",
    b"GET /v1/" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"a" * 20_000 + b"\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nno colon\r\n\r\n",
    b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: a\x00b\r\n\r\n",
    POSTED + b"Content-Length: many\r\n\r\n{}",
    POSTED + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    POSTED + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    POSTED + b"Transfer-Encoding: nonsense\r\n\r\n{}",
    b"GET http://[/v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /v1/%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET /v1/models/%ff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    POSTED + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
)


async def test_what_is_no_http_is_refused_as_everything_else_is(port: int) -> None:
    """Of a body that is never whole, no more is waited for."""
    for sent in NOT_HTTP:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            size = re.search(rb"(?i)content-length: (\d+)", head)
            assert size is not None, head
            body = await reader.readexactly(int(size[1]))
        writer.close()
        assert 400 <= status_of(head) < 500, (sent[:60], head)
        assert b"application/json" in head, (sent[:60], head, body[:200])
        error = orjson.loads(body)["error"]
        assert "b'" not in error["message"], (sent[:60], error)
        assert set(error) == {"message", "type", "param", "code"}
        assert len(body) < 500, (sent[:60], body)


@pytest.fixture
async def port(tmp_path: Path) -> AsyncGenerator[int]:
    """Of one gateway for all examples: a start takes longer than twenty requests."""
    async with up(tmp_path) as serving:
        yield int(serving.url.rsplit(":", 1)[1])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(ROUTES), st.sampled_from([*USED, *proofs()]), st.binary(max_size=30)),
        min_size=1, max_size=20,
    )
)  # fmt: skip
async def test_any_bytes_in_any_header_of_any_route_get_an_answer(
    port: int, sent: list[tuple[tuple[str, str], str, bytes]]
) -> None:
    for (method, path), name, value in sent:
        clean = value.translate(None, b"\r\n\0")
        answer = await asked(port, request_of(method, path, name.encode() + b": " + clean))
        assert answer.startswith(b"HTTP/1."), (method, path, name, value, answer)
        assert status_of(answer) != 500, (method, path, name, value, answer)
