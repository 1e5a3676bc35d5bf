"""How hosted providers' streams go wrong, or come otherwise than one expects: framing, finish reasons, thoughts, usage."""

from __future__ import annotations

import gzip
import json
from typing import Any

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.playing import AFTER, CALLS, DONE, FINE, THOUGHT, WELL, Fault
from tests.e2e.upstream import HEAD, Act, Drip, Wait, delta, end, event, status, text

OPENROUTER = "https://openrouter.ai/docs/api/reference/errors-and-debugging"
OPENROUTER_STREAMS = "https://openrouter.ai/docs/api/reference/streaming"
REST = (HEAD, text("well."), end())
"""What a model goes on with behind "All is "."""
BEGUN = (HEAD, text("All is "))
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def chunk(choice: Any, **more: Any) -> bytes:
    return event(
        {"id": "gen-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}
    )


def finish(reason: str | None, native: str | None = None, **inner: Any) -> bytes:
    return chunk({"index": 0, "delta": inner, "finish_reason": reason, "native_finish_reason": native}) + event(
        b"[DONE]"
    )


def whole(content: Any = WELL, reason: str = "stop", **message: Any) -> Any:
    return {
        "id": "x",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": reason}
        ],
        "usage": USAGE,
    }


def head(kind: str, *headers: str) -> bytes:
    return "\r\n".join(["HTTP/1.1 200 OK", f"Content-Type: {kind}", "Connection: close", *headers, "", ""]).encode()


def thinks(*fields: dict[str, Any]) -> list[bytes]:
    return [delta(**field) for field in fields]


_SSE = b"".join([text("All is "), text("well."), end()])
_ZIPPED = gzip.compress(_SSE)

FRAMES: tuple[Fault, ...] = (
    Fault("comments are sent while a provider waits for its model", OPENROUTER_STREAMS, ((HEAD, b": OPENROUTER PROCESSING\n\n" * 3, text("All is "), b": OPENROUTER PROCESSING\n\n", text("well."), end()),)),
    Fault("comments alone never end", OPENROUTER_STREAMS, ((HEAD, Drip(b": OPENROUTER PROCESSING\n\n")), FINE)),
    Fault("empty data lines are a heartbeat", "netease-lcap/wave-agent#1326", ((HEAD, b"data:\n\n", text("All is "), b"data: \n\n", text("well."), b"data:\n\n", end()),), most=1),
    Fault("an empty data line stands before the first event", "Growth-Circle/cadis#362", ((HEAD, b"data:\n\ndata: " + json.dumps({"choices": [{"delta": {"content": WELL}}]}).encode() + b"\n\n", end()),)),
    Fault("a heartbeat is an event of its own kind with a word as data", "aaif-goose/goose#11816", ((HEAD, b"event: ping\ndata: ping\n\n", text("All is "), b"event: keepalive\ndata: keep-alive\n\n", text("well."), end()),)),
    Fault("a heartbeat is an event without data", "diegosouzapw/OmniRoute#1146", ((HEAD, b"event: keepalive\n\n", text("All is "), b"event: keepalive\n\n", text("well."), end()),)),
    Fault("pings as objects come between the pieces", "caozhiyuan/copilot-api#88", ((HEAD, event({"type": "ping"}), text("All is "), event({"type": "ping"}), text("well."), end()),)),
    Fault("pings as objects alone never end", "aaif-goose/goose#11816", ((HEAD, Drip(event({"type": "ping"}))), FINE)),
    Fault("each event has an id and a retry time", "theopenco/llmgateway#2334", ((HEAD, b"id: 1\nretry: 3000\n" + text("All is "), b": ping\n\n", b"id: 2\n" + text("well."), end()),)),
    Fault("a stream says that it is JSON", "openclaw/openclaw#97454", ((head("application/json"), *BEGUN[1:], text("well."), end()),)),
    Fault("a stream says nothing of its kind", "Wei-Shaw/sub2api#2826", ((b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", text("All is "), text("well."), end()),)),
    Fault("a stream that says that it is JSON stalls", "openclaw/openclaw#97773", ((head("application/json"), text("All is "), Act.HANG), REST)),
    Fault("the whole answer comes as JSON in spite of stream", "tinyhumansai/tinyagents#56", ((status(200, json.dumps(whole())),),), tokens=(11, 7)),
    Fault("the whole answer comes as JSON and says that it is a stream", "tinyhumansai/tinyagents#56", ((status(200, json.dumps(whole()), kind="text/event-stream"),),), tokens=(11, 7)),
    Fault("the whole answer comes as JSON in many lines and says that it is text", "tinyhumansai/tinyagents#56", ((status(200, json.dumps(whole(), indent=2), kind="text/plain"),),)),
    Fault("empty lines are sent until the answer comes as JSON", "https://api-docs.deepseek.com/quick_start/rate_limit", ((head("application/json"), b"\n", b"\n\n", json.dumps(whole()).encode()),)),
    Fault("comments are sent until the model begins", "https://api-docs.deepseek.com/quick_start/rate_limit", ((HEAD, b": keep-alive\n\n" * 5, text("All is "), text("well."), end()),)),
    Fault("after ten minutes the provider hangs up before it began", "https://api-docs.deepseek.com/quick_start/rate_limit", ((HEAD, b": keep-alive\n\n" * 5), FINE)),
    Fault("a stream comes packed although it was not asked for", "https://developers.cloudflare.com/speed/optimization/content/compression/", ((head("text/event-stream", "Content-Encoding: gzip", f"Content-Length: {len(_ZIPPED)}"), _ZIPPED),)),
    Fault("the body ends in the middle of a transfer chunk", "https://www.rfc-editor.org/rfc/rfc9112#section-8", ((head("text/event-stream", "Transfer-Encoding: chunked"), b"%x\r\n" % (len(text("All is ")) + 40), text("All is ")), REST)),
    Fault("the body is shorter than it says", "https://www.rfc-editor.org/rfc/rfc9112#section-8", ((head("text/event-stream", "Content-Length: 90000"), text("All is ")), REST)),
    Fault("done is said twice", "songquanpeng/one-api#1628", ((HEAD, text("All is "), text("well."), end(), event(b"[DONE]")),)),
    Fault("a chunk with the filter's findings on the prompt comes first, without a choice", "AbanteAI/archive-old-cli-mentat#429", ((HEAD, event({"id": "", "object": "", "model": "", "choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}}}]}), text("All is "), text("well."), end()),)),
    Fault("findings of the filter come behind the text, without a delta", "langchain-ai/langchain#18977", ((HEAD, text("All is "), text("well."), chunk({"index": 0, "finish_reason": None, "content_filter_offsets": {"check_offset": 44, "start_offset": 44, "end_offset": 198}, "content_filter_results": {"hate": {"filtered": False}}}), end()),)),
    Fault("every chunk carries padding", "https://platform.openai.com/docs/api-reference/chat/create", ((HEAD, chunk({"index": 0, "delta": {"content": "All is "}, "finish_reason": None}, obfuscation="a8Xz"), chunk({"index": 0, "delta": {"content": "well."}, "finish_reason": None}, obfuscation="q"), end()),)),
    Fault("every chunk has the whole message so far beside its delta", "https://docs.perplexity.ai/guides/streaming-responses", ((HEAD, *[chunk({"index": 0, "delta": {"content": new}, "message": {"role": "assistant", "content": sofar}, "finish_reason": reason}, citations=["https://example.org"], usage=USAGE) for new, sofar, reason in (("All ", "All ", None), ("is ", "All is ", None), ("well.", WELL, None), ("", WELL, "stop"))]),), tokens=(11, 7)),
)  # fmt: skip

FINISHES: tuple[Fault, ...] = (
    Fault("an error breaks off a reply in the middle", OPENROUTER, ((*BEGUN, chunk({"index": 0, "delta": {"content": ""}, "finish_reason": "error"}, provider="openai", error={"code": "server_error", "message": "Provider disconnected unexpectedly"})), REST)),
    Fault("a bad gateway breaks off a reply in the middle", "anomalyco/opencode#22448", ((*BEGUN, event({"error": {"code": 502, "message": "Network connection lost.", "metadata": {"provider_name": "X", "error_type": "provider_unavailable"}}})), REST)),
    Fault("an error of the one choice breaks off a reply", OPENROUTER, ((*BEGUN, chunk({"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": {"code": 502, "message": "Upstream idle timeout exceeded"}})), REST)),
    Fault("a stream ends without a finish reason", "diegosouzapw/OmniRoute#7285", ((*BEGUN, event(b"[DONE]")), REST)),
    Fault("a stream ends behind the role", "diegosouzapw/OmniRoute#7285", ((HEAD, delta(role="assistant", content="")), FINE)),
    Fault("a stream is cut off without a word", "anomalyco/opencode#40061", ((*BEGUN,), REST)),
    Fault("the reason stands under another name", "jakobdylanc/llmcord#84", ((HEAD, text("All is "), chunk({"index": 0, "delta": {"content": "well."}, "finish_reason": None, "finishReason": "stop"}), event(b"[DONE]")),), most=1),
    Fault("every chunk says stop", "BerriAI/litellm#2195", ((HEAD, *[delta("stop", content=word) for word in ("All ", "is ", "well.")], event(b"[DONE]")),), most=1),
    Fault("every chunk says stop and the reply takes its time", "BerriAI/litellm#2195", ((HEAD, *[step for word in ("All ", "is ", "w", "e", "l", "l", ".") for step in (delta("stop", content=word), Wait(0.5))], event(b"[DONE]")),), most=4),
    Fault("every chunk says stop and the reply stalls", "BerriAI/litellm#2195", ((HEAD, delta("stop", content="All "), delta("stop", content="is "), Act.HANG), REST)),
    Fault("stop is said beside the thoughts already", "open-webui/open-webui#16377", ((HEAD, delta("stop", reasoning_content=THOUGHT), Wait(0.3), text("All is "), text("well."), end()),), most=1),
    Fault("stop is said and the connection breaks afterwards", OPENROUTER_STREAMS, ((HEAD, text(WELL), delta("stop"), Act.RESET),), most=1),
    Fault("an error comes behind the finished reply", "diegosouzapw/OmniRoute#10029", ((HEAD, text(WELL), delta("stop"), event({"error": {"message": "terminated", "type": "stream_error", "code": "stream_terminated"}})),), most=1),
    Fault("something unreadable comes behind the finished reply", "SamSaffron/term-llm#448", ((HEAD, text(WELL), delta("stop"), b"data: {oops\n\n"),), most=1),
    Fault("a call that the provider could not read, in Google's own word", "https://ai.google.dev/api/generate-content#FinishReason", ((HEAD, end("MALFORMED_FUNCTION_CALL")), FINE)),
    Fault("a call that the provider could not read, in the words of Google's compatible API", "NousResearch/hermes-agent#83886", ((HEAD, end("function_call_filter: MALFORMED_FUNCTION_CALL")), CALLS, AFTER), DONE, ran=("write_file",)),
    Fault("a call that was not expected, in the words of Google's compatible API", "theopenco/llmgateway#2218", ((HEAD, end("function_call_filter: UNEXPECTED_TOOL_CALL")), FINE)),
    Fault("text stands beside a call that the provider could not read", "mozilla-ai/any-llm#1202", ((HEAD, text("print(default_api.write_file(path='a.txt'))"), end("function_call_filter: MALFORMED_FUNCTION_CALL")), CALLS, AFTER), f"print(default_api.write_file(path='a.txt'))\n\n{DONE}", ran=("write_file",)),
    Fault("a filter in the words of Google's compatible API", "HKUDS/Vibe-Trading#308", ((HEAD, end("content_filter: PROHIBITED_CONTENT")),), "filter", ExitCode.REFUSED),
    Fault("a filter cuts a reply in the words of Google's compatible API", "HKUDS/Vibe-Trading#308", ((*BEGUN, end("content_filter: RECITATION")),), "filter", ExitCode.REFUSED_MIDWAY, other=ExitCode.REFUSED_MIDWAY),
    Fault("a filter for pictures", "BerriAI/litellm#20357", ((HEAD, end("IMAGE_PROHIBITED_CONTENT")),), "filter", ExitCode.REFUSED),
    Fault("stop is said, and the native reason is a filter's", OPENROUTER, ((HEAD, finish("stop", "SAFETY")),), "filter", ExitCode.REFUSED),
    Fault("stop is said, and the native reason is a refusal", "https://docs.anthropic.com/en/docs/test-and-evaluate/strengthen-guardrails/handle-streaming-refusals", ((*BEGUN, finish("stop", "refusal")),), "filter", ExitCode.REFUSED_MIDWAY, other=ExitCode.REFUSED_MIDWAY),
    Fault("stop is said, and the native reason is a call that cannot be read", "NousResearch/hermes-agent#83882", ((HEAD, finish("stop", "MALFORMED_FUNCTION_CALL")), CALLS, AFTER), DONE, ran=("write_file",)),
    Fault("stop is said, and the native reason is the limit", OPENROUTER, ((*BEGUN, finish("stop", "MAX_TOKENS")), REST)),
    Fault("no reason is said but the native one", "https://openrouter.ai/docs/api/reference/overview", ((HEAD, text(WELL), finish(None, "STOP")),), most=1),
    Fault("the reason is error, and the native one says nothing", OPENROUTER, ((*BEGUN, finish("error", None)), REST)),
    Fault("the reason is error, and the native one is a call that cannot be read", "BerriAI/litellm#23366", ((HEAD, finish("error", "MALFORMED_FUNCTION_CALL")), CALLS, AFTER), DONE, ran=("write_file",)),
    Fault("the provider has no room in the middle of a reply", "https://api-docs.deepseek.com/api/create-chat-completion", ((*BEGUN, end("insufficient_system_resource")), REST)),
    Fault("the network of the provider breaks a reply", "https://docs.z.ai/api-reference/llm/chat-completion", ((*BEGUN, end("network_error")), REST)),
    Fault("a reply is called sensitive", "https://docs.z.ai/api-reference/llm/chat-completion", ((*BEGUN, end("sensitive")),), "filter", ExitCode.REFUSED_MIDWAY, other=ExitCode.REFUSED_MIDWAY),
    Fault("the model's window is full", "https://docs.anthropic.com/en/api/handling-stop-reasons", ((*BEGUN, end("model_context_window_exceeded")), REST)),
    Fault("the turn is paused", "https://docs.anthropic.com/en/api/handling-stop-reasons", ((*BEGUN, end("pause_turn")), REST)),
    Fault("the provider's own word for an error ends a reply", "ranxianglei/billion-context-pi#169", ((HEAD, event({"message": "Too many tokens, please wait before trying again."}), end("error_finish")), FINE)),
    Fault("the limit is met before a word, because the thoughts took it all", "https://platform.openai.com/docs/guides/reasoning#controlling-costs", ((HEAD, delta(reasoning_content=THOUGHT), end("length")), FINE)),
    Fault("the model refuses in a field of its own", "https://platform.openai.com/docs/guides/structured-outputs#refusals", ((HEAD, delta(refusal="I cannot "), delta(refusal="help with that."), end()),), "I cannot help with that."),
    Fault("tools are said, and the answer is a text", "googleapis/python-genai#2868", ((HEAD, text(WELL), end("tool_calls")), (HEAD, text(WELL), end())), WELL),
)  # fmt: skip

THOUGHTS: tuple[Fault, ...] = (
    Fault("thoughts come in details alone, longer than a silence may last", "MiniMax-AI/MiniMax-M2#95", ((HEAD, *[step for number in range(8) for step in (delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": f"{THOUGHT} {number}: another side of it. "}]), Wait(0.4))], text("All is "), text("well."), end()),), most=1),
    Fault("thoughts in details repeat all that was thought so far", "archestra-ai/archestra#6834", ((HEAD, *[step for number in range(1, 8) for step in (delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": " ".join(f"{THOUGHT} {n}." for n in range(number))}]), Wait(0.4))], text("All is "), text("well."), end()),), most=1),
    Fault("thoughts come in the text and beside it", "can1357/oh-my-pi#2434", ((HEAD, *[delta(content=f"<think>{THOUGHT} one" if not n else f" {THOUGHT} {n}", reasoning_content=f"{THOUGHT} {n}") for n in range(3)], text("</think>\n\nAll is "), text("well."), end()),)),
    Fault("thoughts come under the name of a proxy", "BerriAI/litellm#35021", ((HEAD, *[step for number in range(8) for step in (delta(reasoning_text=f"{THOUGHT} {number}: one more point. "), Wait(0.4))], text("All is "), text("well."), end()),), most=1),
    Fault("thoughts come as parts of the content", "https://docs.mistral.ai/capabilities/reasoning/", ((HEAD, delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}]), delta(content=[{"type": "text", "text": "All is "}]), text("well."), end()),)),
    Fault("thoughts come encrypted, and then a text", "https://openrouter.ai/docs/use-cases/reasoning-tokens", ((HEAD, delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "eyJlbmNyeXB0ZWQi", "index": 0}]), text(WELL), end()),)),
    Fault("Google's thoughts stand in the text in marks of their own", "https://ai.google.dev/gemini-api/docs/openai#thinking", ((HEAD, delta(content=f"<thought>{THOUGHT}", extra_content={"google": {"thought": True}}), delta(content="</thought>All is "), text("well."), end()),)),
    Fault("the same is thought twice under two names", "https://openrouter.ai/docs/use-cases/reasoning-tokens", ((HEAD, delta(reasoning=THOUGHT, reasoning_content=THOUGHT, reasoning_details=[{"type": "reasoning.text", "text": THOUGHT}]), text(WELL), end()),)),
    Fault("a model thinks and says nothing", "https://api-docs.deepseek.com/guides/reasoning_model", ((HEAD, delta(reasoning_content=THOUGHT), end()),), "thought", ExitCode.THINKING_ONLY),
)  # fmt: skip

USAGES: tuple[Fault, ...] = (
    Fault("usage stands in the last choice", "earendil-works/pi#2017", ((HEAD, text(WELL), chunk({"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE}), event(b"[DONE]")),), tokens=(11, 7)),
    Fault("usage stands in a field of the provider", "https://console.groq.com/docs/api-reference#chat-create", ((HEAD, text(WELL), chunk({"index": 0, "delta": {}, "finish_reason": "stop"}, x_groq={"id": "req_1", "usage": USAGE}), event(b"[DONE]")),), tokens=(11, 7)),
    Fault("the thoughts are in the total and not in what was written", "https://docs.x.ai/docs/guides/reasoning", ((HEAD, text(WELL), delta("stop"), event({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 118, "completion_tokens_details": {"reasoning_tokens": 100}}}), event(b"[DONE]")),), tokens=(11, 107)),
    Fault("the thoughts are in the total alone", "mozilla-ai/any-llm#1290", ((HEAD, text(WELL), chunk({"index": 0, "delta": {}, "finish_reason": "stop"}, usage={"prompt_tokens": 20, "completion_tokens": 198, "total_tokens": 623}), event(b"[DONE]")),), tokens=(20, 603)),
    Fault("the thoughts are all there is, and nothing was written", "router-for-me/CLIProxyAPI#5733", ((HEAD, text(WELL), chunk({"index": 0, "delta": {}, "finish_reason": "stop"}, usage={"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81, "completion_tokens_details": {"reasoning_tokens": 60}}), event(b"[DONE]")),), tokens=(21, 60)),
    Fault("usage is null in every chunk and comes last without choices", "https://platform.openai.com/docs/api-reference/chat/create#chat-create-stream_options", ((HEAD, chunk({"index": 0, "delta": {"content": WELL}, "finish_reason": None}, usage=None), delta("stop"), event({"choices": [], "usage": USAGE}), event(b"[DONE]")),), tokens=(11, 7)),
    Fault("usage grows in every chunk", "https://docs.perplexity.ai/guides/streaming-responses", ((HEAD, chunk({"index": 0, "delta": {"content": "All is "}}, usage={**USAGE, "completion_tokens": 2}), chunk({"index": 0, "delta": {"content": "well."}}, usage=USAGE), end()),), tokens=(11, 7)),
    Fault("the thoughts are in what was written, beside counts that are null", "openai/openai-python#2641", ((HEAD, text(WELL), chunk({"index": 0, "delta": {}, "finish_reason": "stop"}, usage={"prompt_tokens": 12, "completion_tokens": 1994, "total_tokens": 2006, "completion_tokens_details": {"accepted_prediction_tokens": None, "audio_tokens": None, "reasoning_tokens": 1269}}), event(b"[DONE]")),), tokens=(12, 1994)),
    Fault("the reason is empty in every piece but the last", "adolfousier/opencrabs#1499", ((HEAD, *[delta("", content=word) for word in ("All ", "is ", "well.")], end()),), most=1),
)  # fmt: skip

STREAMS: tuple[Fault, ...] = (*FRAMES, *FINISHES, *THOUGHTS, *USAGES)
