"""What comes over the wire of local servers and through what stands before them: events, chunks, headers, encodings."""

from __future__ import annotations

import gzip
import json
import zlib

from agent_core.turn.exits import ExitCode
from tests.e2e.faults.local import FINE, chunked, local
from tests.e2e.faults.playing import Fault
from tests.e2e.upstream import HEAD, Act, Wait, delta, end, event, status, text

_LITELLM, _OMNI, _SUB2API = "BerriAI/litellm", "diegosouzapw/OmniRoute", "Wei-Shaw/sub2api"
_SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"
WELL = text("All is ") + text("well.") + end()
DONE = event(b"[DONE]")


def whole(words: str = "All is well.", finish: str = "stop", **more: object) -> str:
    message = {"role": "assistant", "content": words, **more}
    return json.dumps(
        {
            "id": "c",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        }
    )


def head(*headers: str, version: str = "1.1", kind: str = "text/event-stream", first: str = "200 OK") -> bytes:
    return "\r\n".join(
        (f"HTTP/{version} {first}", *([f"Content-Type: {kind}"] if kind else ()), *headers, "", "")
    ).encode()


def usage(**more: object) -> bytes:
    return event(
        {
            "id": "c",
            "object": "chat.completion.chunk",
            "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
            **more,
        }
    )


def packed(*parts: bytes, bits: int = 31) -> list[bytes]:
    """The parts compressed one by one, as a proxy does that flushes behind each event."""
    squeezer = zlib.compressobj(wbits=bits)
    return [*(squeezer.compress(part) + squeezer.flush(zlib.Z_SYNC_FLUSH) for part in parts), squeezer.flush()]


HTTP: tuple[Fault, ...] = (
    local("a server speaks HTTP/1.0", "https://www.rfc-editor.org/rfc/rfc1945", ((head(version="1.0"), WELL),), asked=1),
    local("a stream has neither a length nor chunks, and ends with the connection", "https://www.rfc-editor.org/rfc/rfc9112#section-6.3", ((head("Connection: close"), text("All is "), text("well."), delta("stop")),), asked=1),
    local("a chunk ends inside an event", "https://www.rfc-editor.org/rfc/rfc9112#section-7.1", ((head("Transfer-Encoding: chunked"), chunked(WELL[:25], WELL[25:31], WELL[31:])),), asked=1),
    local("each byte is a chunk", "https://www.rfc-editor.org/rfc/rfc9112#section-7.1", ((head("Transfer-Encoding: chunked"), chunked(*(WELL[n : n + 1] for n in range(len(WELL))))),), asked=1),
    local("chunks have extensions and a trailer", "https://www.rfc-editor.org/rfc/rfc9112#section-7.1.1", ((head("Transfer-Encoding: chunked"), b"%x;name=value\r\n%b\r\n0\r\nServer-Timing: total;dur=3\r\n\r\n" % (len(WELL), WELL)),), asked=1),
    local("the last chunk never comes", f"{_LITELLM}#40404", ((head("Transfer-Encoding: chunked"), chunked(text("All is "), text("well."), delta("stop"), last=b"")),), asked=1),
    local("chunks break off in the text", f"{_LITELLM}#40404", ((head("Transfer-Encoding: chunked"), chunked(text("All is "), last=b"")), (HEAD, text("well."), end()))),
    local("Cloudflare cuts a stream that is still going", "pydantic/logfire#1882", ((head("Transfer-Encoding: chunked"), chunked(text("All is "), text("as "), last=b"1a\r\ndata: {"), Act.RESET), (HEAD, text("it should be."), end())), says="All is as it should be."),
    local("a stream has a length and ends before it", "https://www.rfc-editor.org/rfc/rfc9112#section-8", ((head("Content-Length: 5000"), text("All is ")), (HEAD, text("well."), end()))),
    local("a length is too short for its body", "https://www.rfc-editor.org/rfc/rfc9112#section-6.3", ((head(f"Content-Length: {len(text('All is '))}"), WELL), (HEAD, text("well."), end()))),
    local("early hints come before the answer", "https://www.rfc-editor.org/rfc/rfc8297", ((b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HEAD, WELL),), asked=1),
    local("the status line has no reason", "https://www.rfc-editor.org/rfc/rfc9112#section-4", ((head("Connection: close", first="200 "), WELL),), asked=1),
    local("a header has ten thousand characters", "aio-libs/aiohttp#2304", ((head("Connection: close", "Content-Security-Policy: " + "x" * 10_000), WELL),), ends=ExitCode.PROVIDER_GARBAGE),
    local("a port speaks gRPC", "https://www.rfc-editor.org/rfc/rfc9113#section-3.4", ((b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00\x00\x00\x00\x08",),), ends=ExitCode.PROVIDER_GARBAGE),
    local("a port speaks another language", "https://redis.io/docs/latest/develop/reference/protocol-spec/", ((b"-ERR unknown command 'POST', with args beginning with:\r\n",),), ends=ExitCode.PROVIDER_GARBAGE),
    local("a header has a character that is none", "aio-libs/aiohttp#5603", ((b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Model: \xe9\xff\r\nConnection: close\r\n\r\n", WELL),), asked=1),
    local("a proxy compresses the stream, event by event", "https://nginx.org/en/docs/http/ngx_http_gzip_module.html", ((head("Content-Encoding: gzip", "Connection: close"), *packed(text("All is "), text("well."), end())),), asked=1),
    local("a proxy deflates the stream", "https://www.rfc-editor.org/rfc/rfc9110#section-8.4.1.2", ((head("Content-Encoding: deflate", "Connection: close"), *packed(text("All is "), text("well."), end(), bits=15)),), asked=1),
    local("a compressed stream breaks off", "https://nginx.org/en/docs/http/ngx_http_gzip_module.html", ((head("Content-Encoding: gzip", "Connection: close"), packed(text("All is "))[0]), (HEAD, text("well."), end()))),
    local("a proxy says gzip of a plain stream", "https://nginx.org/en/docs/http/ngx_http_gzip_module.html", ((head("Content-Encoding: gzip", "Connection: close"), WELL), FINE)),
    local("a refusal is compressed", "https://nginx.org/en/docs/http/ngx_http_gzip_module.html",
          ((b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(b'{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":4096}}'),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("a character is cut between two reads", "ollama/ollama-js#255", ((HEAD, *(lambda b: (b[:45], b[45:46], b[46:47], b[47:]))(event({"choices": [{"delta": {"content": "Всё 🙂 хорошо"}}]}).replace(b"\\u", b"\\u")), end()),), says="Всё 🙂 хорошо", asked=1),
    local("raw characters are cut between chunks", f"{_OMNI}#11921",
          ((head("Transfer-Encoding: chunked"), *(lambda b: (chunked(b[:40], b[40:41], b[41:42], b[42:44], b[44:], last=b""),))('data: {"choices":[{"delta":{"content":"Всё 🙂 хорошо"}}]}\n\n'.encode()), chunked(end())),), says="Всё 🙂 хорошо", asked=1),
    local("bytes are no UTF-8", "mybigday/llama.rn#361", ((HEAD, b'data: {"choices":[{"delta":{"content":"All is w\xff\xfeell."}}]}\n\n', end()),), says="All is w\ufffd\ufffdell.", asked=1),
    local("a stream says that it is Latin-1 and is UTF-8", "https://www.rfc-editor.org/rfc/rfc8259#section-8.1", ((head("Connection: close", kind="text/event-stream; charset=iso-8859-1"), 'data: {"choices":[{"delta":{"content":"Schön."}}]}\n\n'.encode(), end()),), says="Schön.", asked=1),
    local("a refusal names a charset that nobody knows", "https://www.rfc-editor.org/rfc/rfc8259#section-8.1", ((status(400, json.dumps({"error": {"message": "prompt is too long: 9 > 8"}}), kind="application/json; charset=utf8mb4"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("a refusal is written in Chinese of an older encoding", "https://www.rfc-editor.org/rfc/rfc8259#section-8.1", ((b"HTTP/1.1 503 X\r\nContent-Type: application/json; charset=gbk\r\nConnection: close\r\n\r\n" + '{"error":{"message":"当前分组上游负载已饱和，请稍后再试"}}'.encode("gbk"),), FINE)),
    local("a server closes the connection as the next request comes", "https://www.rfc-editor.org/rfc/rfc9112#section-9.5", ((Act.RESET,), FINE)),
    local("a server keeps the connection and says nothing behind the end", "https://www.rfc-editor.org/rfc/rfc9112#section-9.3", ((head("Transfer-Encoding: chunked", "Connection: keep-alive"), chunked(WELL, last=b""), Act.HANG),), asked=1),
    local("a proxy holds the stream back and sends all at once", "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering", ((Wait(1.2), head("Connection: close") + WELL),), asked=1),
)  # fmt: skip
