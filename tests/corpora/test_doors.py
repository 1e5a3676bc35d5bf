"""Every HTTP door of a gateway with everything switched on: odd headers, odd bodies, strangers, pages of foreign origins.

Whatever comes, it is answered in words or the connection ends; nothing is a mistake of ours, nothing is in the log as one, and nobody is let in
without the key of that very door.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import hmac
import json
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.serving import served

KEY, OPERATOR, HOOK, SIGNING = (
    "a-key-for-talking-1234567890",
    "a-key-for-operators-098765",
    "word-of-telegram-13579",
    "word-of-slack-24680",
)
TOKEN = "7000000001:AAabcdefghijklmnopqrstuvwxyz0123456"
EVERYTHING = {
    "OUTSPOKEN_SERVER__API_KEY": KEY,
    "OUTSPOKEN_SERVER__OPERATOR_KEY": OPERATOR,
    "TELEGRAM_BOT_TOKEN": TOKEN,
    "OUTSPOKEN_TELEGRAM__API_BASE": "http://127.0.0.1:9",
    "OUTSPOKEN_TELEGRAM__WEBHOOK_URL": "https://chat.example",
    "OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": HOOK,
    "SLACK_BOT_TOKEN": "xoxb-1000000000001-2000000000002-abcdefgh",
    "OUTSPOKEN_SLACK__SIGNING_SECRET": SIGNING,
    "OUTSPOKEN_SLACK__API_BASE": "http://127.0.0.1:9/api/",
}
TELEGRAM = "/telegram/7000000001"


@dataclass(frozen=True)
class Where:
    """A door, and whose key opens it."""

    method: str
    path: str
    key: str
    """``talk``, ``operate``, ``telegram``, ``slack``, or empty: open to everybody."""


DOORS = (
    Where("POST", "/v1/chat/completions", "talk"), Where("GET", "/v1/models", "talk"), Where("GET", "/v1/models/x", "talk"), Where("PUT", "/v1/x", "talk"),
    Where("GET", "/api/about", "talk"), Where("GET", "/api/sessions/abcdefgh/events", "talk"), Where("POST", "/api/sessions/abcdefgh/messages", "talk"),
    Where("POST", "/api/sessions/abcdefgh/stop", "talk"), Where("POST", "/api/sessions/abcdefgh/approvals", "talk"), Where("GET", "/api/turns/t_1/why", "talk"),
    Where("GET", "/status", "operate"), Where("GET", "/api/access", "operate"), Where("POST", "/api/access", "operate"), Where("POST", "/api/send", "operate"),
    Where("GET", "/api/send/1", "operate"), Where("GET", "/metrics", "operate"), Where("GET", "/wellz", "operate"),
    Where("GET", "/console/api/live", "operate"), Where("GET", "/console/api/turns/t_1/live", "operate"), Where("GET", "/console/api/explain/t_1", "operate"),
    Where("POST", "/console/api/outbox/preview", "operate"), Where("POST", "/console/api/outbox/text", "operate"),
    Where("POST", "/console/api/outbox/act", "operate"), Where("POST", TELEGRAM, "telegram"), Where("POST", "/slack/events", "slack"),
    Where("GET", "/", ""), Where("GET", "/static/page.js", ""), Where("GET", "/console", ""), Where("GET", "/healthz", ""), Where("GET", "/readyz", ""),
    Where("GET", "/nowhere", ""), Where("DELETE", "/", ""),
)  # fmt: skip
LOCKED = tuple(door for door in DOORS if door.key)
HEADERS = (
    b"Host: [::1", b"Host: [::1]]", b"Host: evil.example@127.0.0.1", b"Host: \xff", b"Host: a b", b"Host: x:99999999", b"Host: x:-1", b"Host: ", b"Host: a,b",
    b"Host: 127.0.0.1\r\nHost: evil.example", b"Host: %31", b"Host: \xe2\x91\xa0", b"Host: " + b"a" * 4_000, b"Host: [::ffff:127.0.0.1%25x]",
    b"Origin: http://[::1", b"Origin: \xff\xfe", b"Origin: null", b"Origin: http://a@b", b"Origin: nonsense", b"Origin: ", b"Origin: http://",
    b"Origin: http://x:99999999", b"Origin: data:,x", b"Origin: file://", b"Authorization: Bearer \xff", b"Authorization: \xff", b"Authorization: Basic",
    b"Authorization: Bearer", b"Authorization: Bearer \x01", b"Authorization: Basic Ojo=", b"Authorization: Bearer " + b"x" * 6_000,
    b"Authorization: Digest username=\"x", b"X-Telegram-Bot-Api-Secret-Token: \xff", b"X-Telegram-Bot-Api-Secret-Token: ", b"X-Slack-Request-Timestamp: abc",
    b"X-Slack-Request-Timestamp: \xff", b"X-Slack-Request-Timestamp: -1", b"X-Slack-Request-Timestamp: 1e9", b"X-Slack-Request-Timestamp: 99999999999999999999",
    b"X-Slack-Request-Timestamp: \xd9\xa1\xd9\xa2", b"X-Slack-Signature: \xff", b"X-Slack-Signature: v0=", b"X-Slack-Retry-Num: x",
    b"Idempotency-Key: \xff", b"Idempotency-Key: " + b"k" * 5_000, b"X-Request-Id: \xed\xa0\x80", b"X-Outspoken-Session: \xff",
    b"X-Outspoken-Session: " + b"s" * 1_000, b"X-Outspoken-Disconnect: \xff", b"X-Outspoken-Disconnect: sometimes", b"Content-Type: \xff", b"Content-Type: ;;;=",
    b"Content-Type: application/json; charset=punycode", b"Content-Type: multipart/form-data", b"Content-Type: multipart/form-data; boundary=",
    b"Content-Type: text/plain; charset=\xff", b"Content-Encoding: gzip", b"Content-Encoding: br", b"Content-Encoding: nonsense", b"Content-Encoding: gzip, gzip",
    b"Access-Control-Request-Headers: \xff", b"Access-Control-Request-Method: \xff", b"Sec-Fetch-Site: \xff", b"Sec-Fetch-Site: cross-site", b"X-Forwarded-For: \xff",
    b"X-Forwarded-For: " + b"1.1.1.1, " * 500, b"X-Forwarded-Host: evil.example", b"Forwarded: for=\"[::1\"", b"Cookie: \xff", b"Cookie: a=b; c", b"Range: bytes=\xff",
    b"Range: bytes=9-1", b"If-None-Match: \xff", b"If-Modified-Since: x", b"If-Range: \xff", b"Accept: \xff", b"Accept-Encoding: \xff", b"Accept-Language: \xff",
    b"Expect: 100-continue", b"Expect: \xff", b"Expect: something", b"Upgrade: websocket", b"Upgrade: h2c", b"Last-Event-ID: \xff", b"Traceparent: \xff",
    b"Traceparent: 00-zz-1-01", b"Tracestate: \xff", b"Transfer-Encoding: nonsense", b"Transfer-Encoding: chunked, chunked", b"TE: \xff", b"Trailer: x",
    b"X: \x00", b": empty", b"no colon", b" folded", b"X" * 9_000 + b": a", b"X-A: " + b"a" * 9_000,
)  # fmt: skip
DEEP = b"[" * 5_000 + b"]" * 5_000
BODIES = (
    b"", b" ", b"{", b"}", b"[]", b"null", b"true", b"1", b'"x"', b"\xff", b"\xef\xbb\xbf{}", b"{}\x00", b"NaN", b"1e999", b"-", b"[1,]", b'{"a":1,"a":2}',
    DEEP, b'{"a":' * 5_000, b"[" * 255 + b"]" * 255, b'{"messages":' + DEEP + b"}", b'"\\ud800"', b'{"\\ud800":1}', b"1" * 10_000, b"{" + b'"a":1,' * 9_000 + b"}",
    b'{"messages":null}', b'{"messages":{}}', b'{"messages":[]}', b'{"messages":[null]}', b'{"messages":[{}]}', b'{"messages":[{"role":1}]}',
    b'{"messages":[{"role":"user"}]}', b'{"messages":[{"role":"user","content":{}}]}', b'{"messages":[{"role":"user","content":[1]}]}',
    b'{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"\\u0000"}}]}],"model":"none"}',
    b'{"messages":[{"role":"tool","tool_call_id":"x","content":"y"}],"model":"none"}', b'{"messages":[{"role":"user","content":"x"}],"model":1}',
    b'{"messages":[{"role":"user","content":"x"}],"model":"none","tools":[{}]}', b'{"messages":[{"role":"user","content":"x"}],"temperature":1e400}',
    b'{"messages":[{"role":"user","content":"x"}],"model":"none","stream":"yes"}', b'{"messages":[{"role":"user","content":"x"}],"n":true}',
    b'{"messages":[{"role":"user","content":"\\ud800"}],"model":"none"}', b'{"messages":[{"role":"user","content":"x"}],"user":["x"]}',
    b'{"messages":[{"role":"user","content":"x"}],"outspoken":{"session":"\\u0000"}}', b'{"messages":[{"role":"user","content":"x"}],"max_tokens":-1}',
    b'{"id":"abcdefgh","text":1}', b'{"id":"abcdefgh","text":""}', b'{"id":"../../x","text":"x"}', b'{"id":"abcdefgh","text":"x","browser":{}}',
    b'{"turn":{},"call":[],"approve":1}', b'{"verb":"approve"}', b'{"verb":"approve","who":{}}', b'{"verb":"dance","who":"x"}', b'{"verb":"approve","who":"\\u0000"}',
    b'{"to":1,"text":"x"}', b'{"to":"nowhere","text":"x"}', b'{"to":"telegram/1","text":"x","files":[{"name":"../x","data":"eA=="}]}',
    b'{"to":"telegram/1","text":"x","files":[{"name":"x","data":"\\u00ff"}]}', b'{"to":"telegram/\\u0000/1","text":"x"}', b'{"act":"drop","rows":[{}]}',
    b'{"update_id":1}', b'{"update_id":"x"}', b'{"update_id":1,"message":[]}', b'{"update_id":99999999999999999999999}', b'{"update_id":1,"message":{"chat":1}}',
    b'{"type":"url_verification"}', b'{"type":"event_callback"}', b'{"type":"event_callback","event":[]}', b'{"type":1}', b"payload=%7B", b"payload={}",
    b"command=%2Fx&text=%ff", b"ssl_check=1", b"a=b&" * 3_000, gzip.compress(b"{}"), gzip.compress(b"0" * 1_000_000), bytes(range(256)),
)  # fmt: skip


@asynccontextmanager
async def gateway(folder: Path) -> AsyncGenerator[int]:
    async with served(folder, EVERYTHING) as up:
        yield int(up.url.rsplit(":", 1)[1])


async def asked(port: int, request: bytes) -> tuple[int, bytes]:
    """(status, answer) of raw bytes, or (0, what came) if the connection ended without an answer; what goes on is read for a moment."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        async with asyncio.timeout(60):
            head = await reader.readuntil(b"\r\n\r\n")
        body = b""
        try:
            async with asyncio.timeout(0.05):
                body = await reader.read(4_000)
        except (TimeoutError, ConnectionError):
            pass
        return int(head.split(b" ", 2)[1]), head + body
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0, b""
    finally:
        writer.close()


def right_key(door: Where, body: bytes) -> list[bytes]:
    """The headers that open a door."""
    match door.key:
        case "talk":
            return [b"Authorization: Bearer " + KEY.encode()]
        case "operate":
            return [b"Authorization: Bearer " + OPERATOR.encode()]
        case "telegram":
            return [b"X-Telegram-Bot-Api-Secret-Token: " + HOOK.encode()]
        case "slack":
            stamp = str(int(time.time()))
            mark = hmac.new(SIGNING.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
            return [f"X-Slack-Request-Timestamp: {stamp}".encode(), f"X-Slack-Signature: v0={mark}".encode()]
        case _:
            return []


def request(door: Where, headers: Sequence[bytes], body: bytes = b"{}") -> bytes:
    """A request with these headers, which stand in the place of those that every request has."""
    given = {header.partition(b":")[0].lower() for header in headers}
    plain = [
        b"Host: 127.0.0.1",
        b"Content-Type: application/json",
        b"Connection: close",
        b"Content-Length: %d" % len(body),
    ]
    kept = [header for header in plain if header.partition(b":")[0].lower() not in given]
    return b"\r\n".join([f"{door.method} {door.path} HTTP/1.1".encode(), *kept, *headers, b"", b""]) + body


def with_key(door: Where, header: bytes, body: bytes = b"{}") -> bytes:
    name = header.partition(b":")[0].lower()
    return request(
        door, [*(one for one in right_key(door, body) if one.partition(b":")[0].lower() != name), header], body
    )


def mistakes(logs: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Lines of the log that say that something of ours went wrong: the platforms cannot be reached here, which is none."""
    ours = ("http.failed", "api.failed", "api.stream_failed", "lane.failed", "invariant.broken")
    return [line for line in logs if line.get("event") in ours or "exc_info" in line]


def fine(door: Where, status: int) -> bool:
    """A platform cannot be reached here, which is said to whoever asks for it, or how things are."""
    away = door.key in ("telegram", "slack") or door.path in ("/api/send", "/readyz", "/wellz")
    return status < 500 or (away and status in (502, 503))


def test_there_are_enough_of_each():
    assert len(set(HEADERS)) == len(HEADERS) >= 60
    assert len(set(BODIES)) == len(BODIES) >= 60
    assert len(LOCKED) >= 20


async def test_no_header_at_any_door_is_answered_with_a_mistake_of_ours(tmp_path: Path):
    async with gateway(tmp_path) as port:
        with capture_logs() as logs:
            for door in DOORS:
                for start in range(0, len(HEADERS), 25):
                    some = HEADERS[start : start + 25]
                    for header, (status, answer) in zip(
                        some, await asyncio.gather(*(asked(port, with_key(door, h)) for h in some)), strict=True
                    ):
                        assert fine(door, status), (door, header, answer)
                        assert b"Traceback" not in answer
        assert mistakes(logs) == []


async def test_no_body_at_any_door_is_answered_with_a_mistake_of_ours(tmp_path: Path):
    """With the right key: what nobody can read comes from whoever may come in as well."""
    kinds = (b"application/json", b"application/x-www-form-urlencoded", b"text/plain")
    async with gateway(tmp_path) as port:
        with capture_logs() as logs:
            for door in (one for one in DOORS if one.method == "POST"):
                for number, body in enumerate(BODIES):
                    kind = kinds[number % 3] if door.key == "slack" else kinds[0]
                    status, answer = await asked(
                        port, request(door, [*right_key(door, body), b"Content-Type: " + kind], body)
                    )
                    assert fine(door, status), (door, body[:80], answer)
                    assert b"Traceback" not in answer
        assert mistakes(logs) == []


WRONG: tuple[tuple[bytes, ...], ...] = (
    (), (b"Authorization: Bearer ",), (b"Authorization: Bearer wrong",), (b"Authorization: Bearer " + KEY[:-1].encode(),), (b"Authorization: Basic " + KEY.encode(),),
    (b"Authorization: " + KEY.encode(),), (b"Authorization: Bearer " + KEY.encode() + b"x",), (b"Authorization: Bearer " + KEY.upper().encode(),),
    (b"Authorization: Bearer wrong, Bearer " + KEY.encode(),), (b"Proxy-Authorization: Bearer " + KEY.encode(),), (b"Cookie: key=" + KEY.encode(),),
    (b"X-Api-Key: " + KEY.encode(),), (b"Authorization: Bearer null",), (b"Authorization: Bearer none",), (b"Authorization: Bearer \xe2\x80\x8b" + KEY.encode(),),
    (b"X-Forwarded-For: 127.0.0.1",), (b"X-Real-IP: 127.0.0.1",), (b"Forwarded: for=127.0.0.1",), (b"Host: localhost",), (b"Host: [::1]",),
    (b"X-Original-URL: /healthz",), (b"X-HTTP-Method-Override: OPTIONS",), (b"X-Telegram-Bot-Api-Secret-Token: wrong",), (b"X-Telegram-Bot-Api-Secret-Token: ",),
    (b"X-Slack-Signature: v0=00", b"X-Slack-Request-Timestamp: 1700000000"), (b"Sec-Fetch-Site: same-origin",), (b"Origin: http://127.0.0.1",),
)  # fmt: skip


async def test_no_stranger_comes_in_at_any_door_nor_does_one_doors_key_open_another(tmp_path: Path):
    keys = {door.key: right_key(door, b"{}") for door in LOCKED if door.key != "slack"}
    async with gateway(tmp_path) as port:
        for door in LOCKED:
            others = [tuple(headers) for key, headers in keys.items() if key != door.key]
            for headers in (*WRONG, *others):
                status, answer = await asked(port, request(door, headers))
                assert status in (401, 403), (door, headers, answer)
                for secret in (KEY, OPERATOR, HOOK, SIGNING, TOKEN):
                    assert secret.encode() not in answer
        old = str(int(time.time()) - 3_600)
        mark = hmac.new(SIGNING.encode(), f"v0:{old}:{{}}".encode(), hashlib.sha256).hexdigest()
        slack = next(door for door in LOCKED if door.key == "slack")
        for signature in (mark, mark.upper(), f"{mark}0", ""):
            late = [f"X-Slack-Request-Timestamp: {old}".encode(), f"X-Slack-Signature: v0={signature}".encode()]
            assert (await asked(port, request(slack, late)))[0] in (401, 403)


async def test_spellings_of_a_path_lead_round_no_key(tmp_path: Path):
    async with gateway(tmp_path) as port:
        for door in LOCKED:
            plain = door.path
            for path in (f"/{plain}", f"{plain}/", plain.replace("/", "//", 1), f"/.{plain}", f"/healthz/..{plain}", f"/healthz/%2e%2e{plain}", plain.upper(), f"{plain}%00",
                         f"{plain};x", f"{plain}?x", f"{plain}#x", f"http://127.0.0.1{plain}", f"/static/..{plain}", f"/static/%2e%2e{plain}", plain.replace("/", "/%2f"),
                         "".join(f"%{ord(c):02x}" if c.isalpha() else c for c in plain)):  # fmt: skip
                for method in (door.method, "HEAD", "OPTIONS", "TRACE", "PROPFIND"):
                    status, answer = await asked(port, request(Where(method, path, door.key), []))
                    body = answer.partition(b"\r\n\r\n")[2]
                    assert status in (0, 204, 400, 401, 403, 404, 405, 411, 501), (method, path, answer)
                    assert b"outspoken_" not in body, (method, path)
                    assert b'"version"' not in body, (method, path)


FOREIGN = (
    b"http://evil.example", b"https://evil.example", b"null", b"http://127.0.0.1.evil.example", b"http://evil.example:80", b"http://localhost:1", b"https://127.0.0.1",
    b"http://127.0.0.1:1", b"file://", b"http://[::1]", b"chrome-extension://abcdefgh", b"http://127.0.0.1@evil.example", b"http://LOCALHOST.evil.example", b"app://x",
)  # fmt: skip
SIMPLE = (b"text/plain", b"application/x-www-form-urlencoded", b"multipart/form-data; boundary=x", b"")
"""What a page may send anywhere without asking first."""


@pytest.mark.parametrize("keyed", [True, False], ids=["with keys", "without"])
async def test_no_page_of_a_foreign_origin_uses_a_door_through_a_visitors_browser(tmp_path: Path, keyed: bool):
    """The visitor's browser knows no key, but without one the gateway believes whoever is on this machine."""
    pages = [door for door in DOORS if door.key in ("talk", "operate")]
    async with served(tmp_path, EVERYTHING if keyed else None) as up:
        port = int(up.url.rsplit(":", 1)[1])
        here = b"Host: 127.0.0.1:%d" % port
        for door in pages:
            for origin in FOREIGN:
                for kind in SIMPLE if door.method == "POST" else SIMPLE[:1]:
                    more = right_key(door, b"{}") if keyed else []
                    status, answer = await asked(
                        port, request(door, [here, b"Origin: " + origin, b"Content-Type: " + kind, *more])
                    )
                    assert status in (400, 403), (door, origin, kind, answer)
                    assert b"access-control-allow-origin" not in answer.lower(), (door, origin)
            preflight = [
                b"Origin: http://evil.example",
                b"Access-Control-Request-Method: POST",
                b"Access-Control-Request-Headers: authorization",
            ]
            status, answer = await asked(port, request(Where("OPTIONS", door.path, ""), preflight))
            assert b"access-control-allow-origin" not in answer.lower(), (door, answer)
            upgrade = [
                b"Origin: http://evil.example",
                b"Connection: Upgrade",
                b"Upgrade: websocket",
                b"Sec-WebSocket-Version: 13",
                b"Sec-WebSocket-Key: dGhlIHNhbXBsZQ==",
            ]
            status, answer = await asked(port, request(Where("GET", door.path, ""), upgrade))
            assert status not in (101, 200), (door, answer)


NAMES = (
    b"evil.example", b"127.0.0.1.evil.example", b"localhost.evil.example", b"rebind.evil.example:8787", b"10.0.0.1", b"0.0.0.0", b"0", b"127.1", b"2130706433", b"[::]",
    b"localhost.", b"169.254.169.254", b"a.localhost", b"[::ffff:127.0.0.1]",
)  # fmt: skip


async def test_without_a_key_no_name_that_was_made_to_point_here_is_answered(tmp_path: Path):
    async with served(tmp_path) as up:
        port = int(up.url.rsplit(":", 1)[1])
        for door in (one for one in DOORS if one.key in ("talk", "operate")):
            for name in NAMES:
                for more in ([], [b"Origin: http://" + name]):
                    status, answer = await asked(port, request(door, [b"Host: " + name, *more]))
                    assert status in (400, 401, 403), (door, name, answer)


async def test_without_a_key_what_came_through_a_proxy_operates_nothing(tmp_path: Path):
    """A proxy on this machine looks like this machine, also if it says another `Host` than it was asked for."""
    async with served(tmp_path) as up:
        port = int(up.url.rsplit(":", 1)[1])
        for door in (one for one in DOORS if one.key == "operate"):
            for mark in (b"X-Forwarded-For: 203.0.113.7", b"Forwarded: for=203.0.113.7", b"Via: 1.1 proxy"):
                status, answer = await asked(port, request(door, [mark]))
                assert status == 403, (door, mark, answer)


async def test_a_page_that_is_allowed_can_and_any_other_still_cannot(tmp_path: Path):
    allowed = {**EVERYTHING, "OUTSPOKEN_SERVER__CORS_ORIGINS": json.dumps(["https://chat.example"])}
    async with served(tmp_path, allowed) as up:
        port = int(up.url.rsplit(":", 1)[1])
        door = next(one for one in DOORS if one.path == "/v1/models")
        for origin, wanted in (
            (b"https://chat.example", 200),
            (b"https://chat.example.evil.example", 403),
            (b"http://chat.example", 403),
        ):
            status, answer = await asked(port, request(door, [b"Origin: " + origin, *right_key(door, b"")]))
            assert status == wanted, origin
            assert (b"access-control-allow-origin" in answer.lower()) == (wanted == 200)
            assert b"access-control-allow-credentials" not in answer.lower()
