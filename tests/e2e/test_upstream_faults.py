"""Some seventy ways in which a provider fails, through the whole gateway: none silent, none hung, no ``stop`` on an unfinished
turn, no secret shown, and what can be recovered is recovered."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.upstream import HEAD, Act, Drip, Reply, call, delta, end, event, status, text, upstream
from tests.serving import served

SECRET = "sk-proj-doNotShowMe123456"
FINE: Reply = (HEAD, text("All is "), text("well."), end())
AFTER: Reply = (HEAD, text("The work is done."), end())
HALF = '{"path": "a.txt", "content": "hel'
WRITE = '{"path": "a.txt", "content": "hello"}'
STALL_CALL: Reply = (HEAD, text("Writing."), call("write_file", HALF), Act.HANG)
ERROR = json.dumps({"error": {"message": f"bad key {SECRET}", "code": "x"}})
HERMES = '<tool_call>\n{"name": "write_file", "arguments": ' + WRITE + "}\n</tool_call>"

_PATH, _CONTENT = json.loads(WRITE)["path"], json.loads(WRITE)["content"]
FORMS = {
    "Kimi": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.write_file:0<|tool_call_argument_begin|>{WRITE}<|tool_call_end|>",
    "Qwen3-Coder": f"<tool_call>\n<function=write_file>\n<parameter=path>\n{_PATH}\n</parameter>\n<parameter=content>\n{_CONTENT}\n"
    "</parameter>\n</function>\n</tool_call>",
    "MiniMax": f'<minimax:tool_call>\n<invoke name="write_file">\n<parameter name="path">{_PATH}</parameter>\n'
    f'<parameter name="content">{_CONTENT}</parameter>\n</invoke>\n</minimax:tool_call>',
    "Mistral": f"[TOOL_CALLS]write_file[ARGS]{WRITE}",
    "DeepSeek": f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_file<｜tool▁sep｜>{WRITE}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "gpt-oss": "<|channel|>analysis<|message|>A file.<|end|><|start|>assistant<|channel|>commentary to=functions.write_file "
    f"<|constrain|>json<|message|>{WRITE}<|call|>",
    "Llama": f'{{"name": "write_file", "parameters": {WRITE}}}',
}


def tool(then: Reply, name: str = "write_file", arguments: str = WRITE, words: str = "Writing.") -> Sequence[Reply]:
    return ((HEAD, text(words), call(name, arguments), end("tool_calls")), then)


def overflow(words: str) -> bytes:
    return status(400, json.dumps({"error": {"message": words, "type": "invalid_request_error"}}))


RECOVERED: dict[str, Sequence[Reply]] = {
    "stall before text": ((HEAD, Act.HANG), FINE),
    "headers never come": ((Act.HANG,), FINE),
    "pings only": ((HEAD, Act.PINGS), FINE),
    "role and then silence": ((HEAD, delta(role="assistant", content=""), Act.HANG), FINE),
    "reset before headers": ((Act.RESET,), FINE),
    "reset before text": ((HEAD, Act.RESET), FINE),
    "clean eof before text": ((HEAD,), FINE),
    "empty answer": ((status(200),), FINE),
    "a bare error as an event": ((HEAD, b'event: error\ndata: {"message": "overloaded", "type": "overloaded_error"}\n\n'), FINE),
    "done and nothing else": ((HEAD, event(b"[DONE]")), FINE),
    "html": ((status(200, "<html>hi</html>", kind="text/html"),), FINE),
    "json without choices": ((status(200, '{"ok": true}'),), FINE),
    "malformed chunk": ((HEAD, b"data: {nonsense\n\n"), FINE),
    "error object first": ((HEAD, event({"error": {"message": "overloaded", "code": 503}})), FINE),
    "error body in a 200": ((status(200, '{"error": {"message": "busy", "code": 503}}'),), FINE),
    "429": ((status(429, ERROR, "Retry-After: 1"),), FINE),
    "429 without a time": ((status(429, ERROR),), FINE),
    "500": ((status(500, ERROR),), FINE),
    "502 page": ((status(502, "<html>", kind="text/html"),), FINE),
    "503": ((status(503),), FINE),
    "529": ((status(529, ERROR),), FINE),
    "stall in text": ((HEAD, text("All is "), Act.HANG), (HEAD, text("well."), end())),
    "reset in text": ((HEAD, text("All is "), Act.RESET), (HEAD, text("well."), end())),
    "clean eof in text": ((HEAD, text("All is ")), (HEAD, text("well."), end())),
    "eof in text and it starts again": ((HEAD, text("All is not yet as "),), (HEAD, text("All is not yet as it should be."), end())),
    "error in text": ((HEAD, text("All is "), event({"error": {"message": "boom"}})), (HEAD, text("well."), end())),
    "malformed in text": ((HEAD, text("All is "), b"data: {{{\n\n"), (HEAD, text("well."), end())),
    "finish reason error": ((HEAD, text("All is "), end("error")), (HEAD, text("well."), end())),
    "stall in tool call": (STALL_CALL, *tool(AFTER)),
    "stall twice in tool call": (STALL_CALL, STALL_CALL, *tool(AFTER)),
    "reset in tool call": ((HEAD, call("write_file", HALF), Act.RESET), *tool(AFTER)),
    "eof in tool call": ((HEAD, call("write_file", HALF)), *tool(AFTER)),
    "eof after a whole tool call": ((HEAD, call("write_file", WRITE)), *tool(AFTER)),
    "stop with half a tool call": ((HEAD, call("write_file", HALF), end("stop")), *tool(AFTER)),
    "tool_calls with half a tool call": ((HEAD, call("write_file", HALF), end("tool_calls")), *tool(AFTER)),
    "tool_calls without a call": ((HEAD, text("Calling."), end("tool_calls")), *tool(AFTER)),
    "stop with a whole tool call": ((HEAD, call("write_file", WRITE), end("stop")), AFTER),
    "stall between text and tool": ((HEAD, text("I will look."), Act.HANG), *tool(AFTER, words="")),
    "stall after a tool": (*tool((HEAD, Act.HANG)), AFTER),
    "500 after a tool": (*tool((status(500),)), AFTER),
    "empty": ((HEAD, end()), FINE),
    "empty twice": ((HEAD, end()), (HEAD, end()), FINE),
    "white space only": ((HEAD, text("  \n"), end()), FINE),
    "empty after a tool": (*tool((HEAD, end())), AFTER),
    "reasoning only": ((HEAD, delta(reasoning_content="hmm"), end()), FINE),
    "think tag only": ((HEAD, text("<think>hmm</think>"), end()), FINE),
    "promise": ((HEAD, text("Now dispatching task 5:"), end()), *tool(AFTER)),
    "length in text": ((HEAD, text("All is "), end("length")), (HEAD, text("well."), end())),
    "length in tool call": ((HEAD, call("write_file", HALF), end("length")), *tool(AFTER)),
    "unknown tool": (*tool(AFTER, "write_fil"),),
    "arguments that do not fit": (*tool(AFTER, "write_file", '{"file": 1}'),),
    "arguments that do not parse": (*tool(AFTER, "write_file", "{'path': nope}"),),
    "overflow once": ((overflow("This model's maximum context length is 8192 tokens"),), FINE),
    "413 once": ((status(413, ERROR),), FINE),
    "text tool call": ((HEAD, *(text(piece) for piece in HERMES), end()), AFTER),
    "text tool call cut": ((HEAD, text(HERMES[:60])), (HEAD, text(HERMES), end()), AFTER),
    "text tool call without its end tag": ((HEAD, text(HERMES.removesuffix("</tool_call>")), end()), AFTER),
    "text tool call that cannot be read": ((HEAD, text(HERMES.replace(": {", ": [{", 1)), end()), (HEAD, text(HERMES), end()), AFTER),
    **{f"text tool call of {name}": ((HEAD, *(text(piece) for piece in re.split("(?<=[>|n])", said)), end()), AFTER) for name, said in FORMS.items()},
    "thinks aloud and ends it": ((HEAD, text("They want to know how it is.\n"), text("</thi"), text("nk>\n\nAll is well."), end()),),
    "housekeeping and nothing": tool((HEAD, end()), "todo", "{}", "All is done."),
    "no finish chunk but usage": ((HEAD, text("All is well."), event({"choices": [], "usage": {"prompt_tokens": 1}})), (HEAD, text(" Indeed."), end())),
    **{
        f"a drip of {name}": ((HEAD, Drip(piece)), FINE)
        for name, piece in {
            "blanks": text(" "), "line breaks": text("\n"), "zero-width characters": text("\u200b"), "one sentence": text("Still at it. "),
            "one thought": delta(reasoning_content="Let me think about it again. "), "dots": text("."), "empty arguments": call("write_file", ""),
        }.items()
    },
    "a drip in the text": ((HEAD, text("All is "), Drip(text(" \n"))), (HEAD, text("well."), end())),
    "a drip in a call": ((HEAD, call("write_file", HALF), Drip(call("write_file", " "))), *tool(AFTER)),
    "a loop in the text": ((HEAD, text("All is as it was. "), *[text("And so it goes on and on. ") * 200] * 5), (HEAD, text("All is well."), end())),
    "a loop in the thoughts": ((HEAD, *[delta(reasoning_content="The the the ") * 200] * 6), FINE),
    "a loop in a call": ((HEAD, call("write_file", '{"content": "'), *[call("write_file", "and then once more ") * 200] * 5), *tool(AFTER)),
    "a loop up to the limit": ((HEAD, text("All is as it was. "), *[text("court ") * 100] * 4, end("length")), (HEAD, text("All is well."), end())),
    "the whole again as a message": ((HEAD, text("All is "), text("well."), event({"choices": [{"delta": {}, "message": {"content": "All is well."}, "finish_reason": "stop"}]})),),
    "all so far in each delta": ((HEAD, text("All"), text("All is"), text("All is well."), end()),),
    "a finish that nobody knows": ((HEAD, text("All is "), end("fin")), (HEAD, text("well."), end())),
    "MAX_TOKENS": ((HEAD, text("All is "), end("MAX_TOKENS")), (HEAD, text("well."), end())),
    "STOP": ((HEAD, text("All is well."), end("STOP")),),
    "a malformed call": ((HEAD, end("MALFORMED_FUNCTION_CALL")), *tool(AFTER)),
    "a tool with a prefix": tool(AFTER, "default_api:write_file"),
    "a tool with a token behind it": tool(AFTER, "write_file<|channel|>commentary"),
    "a promise beside housekeeping": (*tool((HEAD, end()), "todo", "{}", "Now dispatching task 5 (UI):"), AFTER),
    "seven calls that fail together": (
        (HEAD, *(call("read_file", json.dumps({"path": f"no{n}.txt"}), n, f"c{n}") for n in range(7)), end("tool_calls")), AFTER,
    ),
    "a pause in words": ((status(429, json.dumps({"error": {"message": "Rate limit reached. Please try again in 20ms."}})),), FINE),
    "a field is refused": ((status(400, json.dumps({"error": {"message": "Unrecognized request argument supplied: stream_options"}})),), FINE),
    "half characters everywhere": (
        (HEAD, b'data: {"choices": [{"delta": {"reasoning_content": "\\ud83d"}}]}\n\ndata: {"choices": [{"delta": {"reasoning_content": "\\ude00"}}]}\n\n',
         b'data: {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "\\ud83d", "function": {"name": "read_file\\ud83d", "arguments": "{}"}}]}}]}\n\n', end("tool_calls")),
        AFTER,
    ),
    "NUL everywhere": (
        (HEAD, b'data: {"choices": [{"delta": {"content": "a\\u0000", "tool_calls": [{"index": 0, "id": "\\u0000", "function": {"name": "read\\u0000file", "arguments": "{\\u0000}"}}]}}]}\n\n',
         end("tool_calls")),
        AFTER,
    ),
    "a name of 100 000 characters": ((HEAD, call("n" * 100_000, "{}"), end("tool_calls")), AFTER),
    "numbers that are none": (
        (HEAD, text("All is well."), b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": -5, "completion_tokens": NaN, "prompt_tokens_details": {"cached_tokens": 1e400}}}\n\n', event(b"[DONE]")),
    ),
    "the end is lost and nothing is to be added": ((HEAD, text("All is well.")), (HEAD, end())),
    "the end is lost and the model says so": ((HEAD, text("All is well."), Act.RESET), (HEAD, text("DO"), text("NE"), end())),
    "a reset behind the text and all of it again": ((HEAD, text("All is well."), Act.RESET),),
    "the limit behind a whole text": ((HEAD, text("All is well."), end("length")), (HEAD, end())),
    "a reason of calls behind a text": ((HEAD, text("All is well."), end("tool_calls")),),
    "a reason of calls behind a text and then nothing": ((HEAD, text("All is well."), end("function_call")), (HEAD, end())),
    "a reason that nobody knows behind each text": ((HEAD, text("All is well."), end("fin")),),
    "no reason behind any text": ((HEAD, text("All is well."), event(b"[DONE]")),),
    "silence behind the finish": ((HEAD, text("All is well."), delta("stop"), Act.HANG),),
    "crlf and split utf-8": ((HEAD, "data: {\"choices\":[{\"delta\":{\"content\":\"é".encode()[:-1], "é\"}}]}\r\n\r\n".encode()[1:], b"data: " + json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}).encode() + b"\r\n\r\n"),),
}  # fmt: skip

TOLD: dict[str, tuple[Any, str]] = {
    "always a loop": (((HEAD, text("All is as it was. "), *[text("And so it goes on and on. ") * 200] * 5),), "broken_in_text"),
    "always a drip": (((HEAD, Drip(text(" "))),), "broken_before_text"),
    "always stalls before text": (((HEAD, Act.HANG),), "broken_before_text"),
    "always stalls in text": (((HEAD, text("half "), Act.HANG),), "broken_in_text"),
    "always stalls in tool call": ((STALL_CALL,), "broken_in_tool_call"),
    "always empty": (((HEAD, end()),), "empty_reply"),
    "always empty after a tool": (tool((HEAD, end())), "empty_after_tools"),
    "always thinks": (((HEAD, delta(reasoning="hmm"), end()),), "thinking_only"),
    "always promises": (((HEAD, text("Now dispatching task 5:"), end()),), "promised_without_acting"),
    "always cut": (((HEAD, text("more "), end("length")),), "cut_by_length"),
    "always cut in a call": (((HEAD, call("write_file", HALF), end("length")),), "tool_call_cut_by_length"),
    "filtered": (((HEAD, end("content_filter")),), "refused"),
    "filtered midway": (((HEAD, text("Well, "), end("content_filter")),), "refused_midway"),
    "400": (((status(400, ERROR),)), "bad_request"),
    "400 filter": (((status(400, '{"error": {"code": "content_filter", "message": "no"}}'),)), "refused"),
    "401": (((status(401, ERROR),)), "not_authorised"),
    "402": (((status(402, ERROR),)), "payment_required"),
    "403": (((status(403, ERROR),)), "not_authorised"),
    "404": (((status(404, ERROR),)), "model_not_found"),
    "422": (((status(422, ERROR),)), "bad_request"),
    "always 429": (((status(429, ERROR),)), "rate_limited"),
    "429 for an hour": (((status(429, ERROR, "Retry-After: 3600"),)), "rate_limited"),
    "quota": (((status(429, '{"error": {"code": "insufficient_quota", "message": "pay"}}'),)), "payment_required"),
    "always 500": (((status(500, ERROR),)), "provider_down"),
    "redirect": (((status(302, "", "Location: http://127.0.0.1:1/"),)), "model_not_found"),
    "always html": (((status(200, "<html>", kind="text/html"),)), "provider_garbage"),
    "always Ollama's own API": (((status(200, '{"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": true}\n', kind="application/x-ndjson"),)), "provider_garbage"),
    "always events of another API": (((HEAD, b'event: response.created\ndata: {"type": "response.created", "response": {"id": "r"}}\n\n'),), "provider_garbage"),
    "always overflows": (((overflow("prompt is too long: 9 > 8"),)), "context_overflow"),
    "always unknown tool": (((HEAD, call("nope", "{}"), end("tool_calls")),), "unknown_tool"),
    "always unreadable": (((HEAD, call("read_file", "{]"), end("tool_calls")),), "unreadable_arguments"),
    "always fails": (((HEAD, call("read_file", '{"path": "no.txt"}'), end("tool_calls")),), "repeating_failing_call"),
    "no progress": (((HEAD, call("recall", "{}"), end("tool_calls")),), "no_progress"),
    "text call cut for ever": (((HEAD, text(HERMES[:60]), end()),), "broken_in_tool_call"),
}  # fmt: skip


def scenarios() -> Mapping[str, Sequence[Reply]]:
    # A bare tuple of steps is one reply; a tuple of tuples is one reply an attempt.
    def replies(value: Any) -> Sequence[Reply]:
        return value if isinstance(value[0], tuple) else (value,)

    return {
        **{n: replies(r) for n, r in RECOVERED.items()},
        **{n: replies(r) for n, (r, _) in TOLD.items()},
        "unnamed": (FINE,),
    }


async def ask(http: aiohttp.ClientSession, url: str, name: str) -> tuple[str, str, str]:
    """(text, finish reason, exit)."""
    body = {
        "model": "outspoken",
        "stream": True,
        "user": name,
        "messages": [{"role": "user", "content": f"scenario: {name}"}],
    }
    said, finish, code = "", "", ""
    async with asyncio.timeout(60), http.post(f"{url}/v1/chat/completions", json=body) as response:
        assert response.status == 200, await response.text()
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            code = chunk.get("outspoken", {}).get("exit") or code
            for choice in chunk["choices"]:
                said += choice["delta"].get("content") or ""
                finish = choice["finish_reason"] or finish
    return said, finish, code


async def test_no_failure_of_a_provider_is_silent_hangs_lies_or_shows_a_secret(tmp_path: Path):
    async with upstream(scenarios()) as model:
        env = {"OUTSPOKEN_MODEL__BASE_URL": model.url, "OUTSPOKEN_MODEL__NAME": "m", "OUTSPOKEN_MODEL__API_KEY": SECRET}
        async with served(tmp_path, env) as up, aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
            limit = asyncio.Semaphore(12)

            async def one(name: str) -> tuple[str, str, str, str]:
                async with limit:
                    return name, *await ask(http, up.url, name)

            found = await asyncio.gather(*(one(name) for name in (*RECOVERED, *TOLD)))
        complaints: list[str] = []
        for name, said, finish, code in found:
            wanted = "answered" if name in RECOVERED else TOLD[name][1]
            if code != wanted:
                complaints.append(f"{name}: {code} instead of {wanted}: {said!r}")
            if not said.strip():
                complaints.append(f"{name}: silent")
            if (finish == "stop") != (code == "answered"):
                complaints.append(f"{name}: finish reason {finish} for {code}")
            if said.count("And so it goes on") > 12:
                complaints.append(f"{name}: shows a loop")
            if SECRET in said or "tool_call>" in said:
                complaints.append(f"{name}: shows what must not be shown: {said!r}")
        assert complaints == []
        assert model.violations == []
        assert model.hung_up > 0
        print(f"\n{len(found)} ways to fail: {len(RECOVERED)} recovered, {len(TOLD)} told")
