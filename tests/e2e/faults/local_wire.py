"""What comes over the wire of local servers and through what stands before them: events, chunks, headers, encodings."""

from __future__ import annotations

import gzip
import json
import zlib

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.local import AFTER, FINE, WRITE, chunked, local
from tests.e2e.faults.playing import Fault
from tests.e2e.upstream import HEAD, Act, Wait, delta, end, event, status, text

_LITELLM, _OMNI, _SUB2API = "BerriAI/litellm", "diegosouzapw/OmniRoute", "Wei-Shaw/sub2api"
_SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"
SHEEP = " ".join(f"{n} sheep." for n in range(900))
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


EVENTS: tuple[Fault, ...] = (
    local("vLLM sends usage in each piece", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html",
          ((HEAD, *(event({"choices": [{"index": 0, "delta": {"content": w}, "finish_reason": None}], "usage": {"prompt_tokens": 9, "completion_tokens": n}}) for n, w in enumerate(("All is ", "well."))), end()),), asked=1),
    local("usage comes before everything else", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html", ((HEAD, usage(choices=[]), WELL),), asked=1),
    local("usage comes behind the end", f"{_LITELLM}#12481", ((HEAD, text("All is well."), delta("stop"), usage(choices=[]), DONE, usage(choices=[])),), asked=1),
    local("LocalAI gives a role in each piece and no [DONE]", "mudler/LocalAI#340",
          ((HEAD, *(delta(role="assistant", content=w) for w in ("All is ", "well.")), delta("stop", role="assistant", content="")),), asked=1),
    local("LocalAI leaves the finish reason out of all pieces but the last", "mudler/LocalAI#1744",
          ((HEAD, *(event({"choices": [{"index": 0, "delta": {"content": w}}], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}) for w in ("All is ", "well.")), end()),), asked=1),
    local("Ollama's pieces have an empty finish reason", "ollama/ollama#4357",
          ((HEAD, *(delta("", role="assistant", content=w) for w in ("All is ", "well.")), end()),), asked=1),
    local("content is null in all pieces but two", "sgl-project/sglang#4700",
          ((HEAD, delta(role="assistant", content=None), text("All is "), delta(content=None), text("well."), delta("stop", content=None), DONE),), asked=1),
    local("content is a list of parts", "https://docs.mistral.ai/capabilities/reasoning/",
          ((HEAD, delta(content=[{"type": "text", "text": "All is "}]), delta(content=[{"type": "text", "text": "well."}]), end()),), asked=1),
    local("llama-cpp-python's pieces have text in place of a delta", "abetlen/llama-cpp-python#372",
          ((HEAD, *(event({"choices": [{"index": 0, "text": w, "finish_reason": None}]}) for w in ("All is ", "well.")), end()),), asked=1),
    local("[DONE] comes twice", f"{_OMNI}#7800", ((HEAD, WELL, DONE),), asked=1),
    local("text comes behind [DONE]", _SSE, ((HEAD, WELL, text(" And more.")),), asked=1),
    local("OmniRoute ends all replies with [DONE] and no reason", f"{_OMNI}#7800", ((HEAD, text("All is "), text("well."), DONE),)),
    local("vllm-mlx never gives stop as a reason", "waybarrios/vllm-mlx#628", ((HEAD, text("All is "), text("well."), delta(None), DONE),)),
    local("9router ends a stream with neither a reason nor [DONE]", "decolua/9router#4080", ((HEAD, text("All is ")), (HEAD, text("well."), end()))),
    local("OmniRoute closes a stream after some content", f"{_OMNI}#10475", ((HEAD, text("All is "), text("not")), (HEAD, text(" lost."), end())), says="All is not lost."),
    local("data has no blank behind its colon", _SSE, ((HEAD, WELL.replace(b"data: ", b"data:")),), asked=1),
    local("lines end in carriage returns", _SSE, ((HEAD, WELL.replace(b"\n", b"\r\n")),), asked=1),
    local("lines end in a carriage return alone", _SSE, ((HEAD, WELL.replace(b"\n", b"\r")),), asked=1),
    local("a byte order mark begins the stream", _SSE, ((HEAD, b"\xef\xbb\xbf" + WELL),), asked=1),
    local("comments come between the events", "https://openrouter.ai/docs/api-reference/streaming", ((HEAD, b": OPENROUTER PROCESSING\n\n", text("All is "), b": ping\n\n", text("well."), b":\n\n", end()),), asked=1),
    local("events have ids, times and names", _SSE, ((HEAD, WELL.replace(b"data: ", b"id: 7\nretry: 3000\nevent: message\ndata: ")),), asked=1),
    local("an empty object comes as a heartbeat", "graze-social/cocore#139", ((HEAD, event({}), text("All is "), event({"choices": []}), text("well."), end()),), asked=1),
    local("one event of many is broken JSON", f"{_LITELLM}#40404", ((HEAD, text("All is "), b'data: {"choices": [{"delta": {"content": "we\n\n', text("well."), end()), (HEAD, text("well."), end()))),
    local("one event is spread over several data lines", _SSE, ((HEAD, b'data: {"choices": [{"index": 0,\ndata: "delta": {"content": "All is well."}}]}\n\n', end()),), asked=1),
    local("events have one line end between them", "langgenius/dify#4120", ((HEAD, WELL.replace(b"\n\n", b"\n")),), asked=1),
    local("a whole reply comes where a stream was asked for", "tinyhumansai/tinyagents#56", ((status(200, whole()),), ), asked=1),
    local("a whole reply comes as one event", f"{_OMNI}#3708", ((HEAD, event(json.loads(whole())), DONE),), asked=1),
    local("a whole reply with a call comes where a stream was asked for", "lmstudio-ai/lmstudio-bug-tracker#2115",
          ((status(200, whole("", "tool_calls", tool_calls=[{"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": WRITE}}])),), FINE), read=(WRITE,), asked=2),
    local("an error event names its error in a text", "huggingface/text-generation-inference#2668", ((HEAD, event({"error": "Model is overloaded", "error_type": "overloaded"})), FINE), asked=2),
    local("an error event carries words about the window", "vercel/ai#13506", ((HEAD, text("All is "), event({"error": {"message": "Context length exceeded", "code": "CONTEXT_LENGTH_EXCEEDED"}})),), ends=ExitCode.BROKEN_IN_TEXT),
    local("vLLM's engine dies while it writes", "vllm-project/vllm#27194",
          ((HEAD, text("All is "), event({"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", "type": "InternalServerError", "param": None, "code": 500}}), DONE), (HEAD, text("well."), end()))),
    local("an error comes as a bare line of JSON behind the text", "ollama/ollama#8258", ((HEAD, text("All is "), b'{"error":{"message":"an error was encountered while running the model: unexpected EOF","type":"api_error"}}\n'), (HEAD, text("well."), end()))),
    local("a bare line of JSON says that the window is full", "ollama/ollama#8258", ((HEAD, b'{"error":"the input length exceeds the context length"}\n'),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("a relay changes accounts and begins the text anew", f"{_SUB2API}#991", ((HEAD, text("All is not "), event({"type": "error", "error": {"type": "rate_limit_error", "message": "429"}}), text("All is well."), end()), (HEAD, text("lost."), end())), says="All is not lost."),
    local("Xinference repeats the role and an empty list in each piece", "xorbitsai/inference#1215",
          ((HEAD, *(event({"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": w, "tool_calls": []}, "finish_reason": None}]}) for w in ("", "All is ", "well.")), delta("stop", content="", tool_calls=[]), DONE),), asked=1),
    local("vLLM aborts a request and says abort and [DONE]", "vllm-project/vllm#57082", ((HEAD, text("All is "), delta("abort"), DONE), (HEAD, text("well."), end()))),
    local("text-generation-inference ends with eos_token", "https://huggingface.github.io/text-generation-inference/", ((HEAD, text("All is "), text("well."), delta("eos_token")),), asked=1),
    local("LocalAI calls in the older form", "https://localai.io/features/openai-functions/", ((HEAD, delta(function_call={"name": "write_file", "arguments": ""}), *(delta(function_call={"arguments": part}) for part in (WRITE[:9], WRITE[9:])), delta("function_call"), DONE), AFTER), read=(WRITE,), asked=2),
    local("an event without data comes as a heartbeat", _SSE, ((HEAD, b"data:\n\n", text("All is "), b"data: \n\n", b"event: ping\ndata:\n\n", text("well."), end()),), asked=1),
    local("a word comes as a heartbeat", f"{_SUB2API}#4308", ((HEAD, b"event: ping\ndata: ping\n\n", text("All is "), b"event: ping\ndata: {\"type\": \"ping\"}\n\n", text("well."), end()),), asked=1),
    local("events are JSON lines without data", "langgenius/dify#4120", ((HEAD, WELL.replace(b"data: ", b"").replace(b"\n\n", b"\n")),), asked=1),
    local("events are JSON lines and say so", "langgenius/dify#4120", ((head("Connection: close", kind="application/x-ndjson"), WELL.replace(b"data: ", b"").replace(b"\n\n", b"\n").replace(b"[DONE]\n", b"")),), asked=1),
    local("a gateway says of a stream that it is JSON", "openclaw/openclaw#97454", ((head("Connection: close", kind="application/json"), WELL),), asked=1),
    local("vLLM's proxy says that a stream is JSON, and the reply takes its time", "vllm-project/vllm-ascend#6985",
          ((head("Connection: close", kind="application/json"), text("All "), Wait(0.7), text("is "), Wait(0.7), text("so "), Wait(0.7), text("very "), Wait(0.7), text("well."), end()),), says="All is so very well.", asked=1),
    local("a whole reply says that it is a stream", "shuv1337/oc-web#143", ((status(200, whole(), kind="text/event-stream"),), ), asked=1),
    local("a long whole reply says that it is text", "tinyhumansai/tinyagents#56", ((status(200, whole("All is well. " + SHEEP), kind="text/plain"),), ), says="All is well. " + SHEEP, asked=1),
    local("a whole reply has no type at all", "tinyhumansai/tinyagents#56", ((head("Connection: close", kind="") + whole().encode(),), ), asked=1),
    local("an error event carries words and no error", f"{_OMNI}#3612", ((HEAD, b'event: error\ndata: {"message": "Stream ended before producing useful content", "code": "STREAM_EARLY_EOF"}\n\n'),), ends=ExitCode.BROKEN_BEFORE_TEXT, says="Stream ended before producing useful content"),
    local("an old vLLM's error event has no error key", "vllm-project/vllm#2964", ((HEAD, event({"object": "error", "message": "This model's maximum context length is 4096 tokens.", "type": "BadRequestError", "param": None, "code": 400}), DONE),), ends=ExitCode.CONTEXT_OVERFLOW),
    local(
        "a finish reason comes early, and the arguments take their time",
        "BerriAI/litellm#31634",
        ((HEAD, delta("tool_calls", tool_calls=[{"index": 0, "id": "c", "function": {"name": "write_file", "arguments": WRITE[:9]}}]),
          *(step for part in (WRITE[9:14], WRITE[14:20], WRITE[20:26], WRITE[26:31], WRITE[31:]) for step in (Wait(0.8), delta(tool_calls=[{"index": 0, "function": {"arguments": part}}]))), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local("LM Studio's error event has its words twice", "https://lmstudio.ai/docs/app/api/endpoints/openai", ((HEAD, b'event: error\ndata: {"error":{"message":"The model has crashed without additional information. (Exit code: null)"},"message":"The model has crashed without additional information. (Exit code: null)"}\n\n'), FINE), asked=2),
)  # fmt: skip


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
    local("a header has ten thousand characters", "aio-libs/aiohttp#2304", ((head("Connection: close", "Content-Security-Policy: " + "x" * 10_000), WELL),), ends=ExitCode.PROVIDER_GARBAGE, or_ends=ExitCode.BROKEN_BEFORE_TEXT),
    local("a port speaks gRPC", "https://www.rfc-editor.org/rfc/rfc9113#section-3.4", ((b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00@\x00\x00\x00\x00\x08",),), ends=ExitCode.PROVIDER_GARBAGE, or_ends=ExitCode.BROKEN_BEFORE_TEXT),
    local("a port speaks another language", "https://redis.io/docs/latest/develop/reference/protocol-spec/", ((b"-ERR unknown command 'POST', with args beginning with:\r\n",),), ends=ExitCode.PROVIDER_GARBAGE, or_ends=ExitCode.BROKEN_BEFORE_TEXT),
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
