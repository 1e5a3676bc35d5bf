"""How hosted providers send calls of tools otherwise than one expects."""

from __future__ import annotations

import json
from typing import Any

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.playing import AFTER, CALLS, DONE, HALF, WRITE, Fault
from tests.e2e.upstream import HEAD, Act, Reply, Wait, call, delta, end, event, status, text

CUTS = (WRITE[:9], WRITE[9:20], WRITE[20:])
RAN = ("write_file",)


def piece(
    index: int | None = 0, call_id: str | None = None, name: str | None = None, arguments: Any = None, **more: Any
) -> dict[str, Any]:
    """A piece of a call with the fields that are given, and no others."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry = {"index": index, "id": call_id, "type": "function", **more}
    return {**{key: value for key, value in entry.items() if value is not None}, "function": function}


def sends(*pieces: dict[str, Any]) -> bytes:
    return delta(tool_calls=list(pieces))


def fault(name: str, source: str, *steps: Any, ran: tuple[str, ...] = RAN, most: int = 2, then: Reply = AFTER) -> Fault:
    """A call that is to be read at once, and what the model says to its result."""
    return Fault(name, source, ((HEAD, *steps), then), DONE, other_says=DONE, ran=ran, most=most)


def failed(message: str, code: str = "tool_use_failed", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, **more}}


FAILED = "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details."

CALLED: tuple[Fault, ...] = (
    fault("a call has no index", "AstrBotDevs/AstrBot#6692", sends(piece(None, "c1", "write_file", "")), *[sends(piece(None, arguments=cut)) for cut in CUTS], end("tool_calls")),
    fault("two calls side by side have no index, and ids", "jin-bo/agentao#117", sends(piece(None, "c1", "write_file", WRITE[:9])), sends(piece(None, arguments=WRITE[9:])), sends(piece(None, "c2", "list_files", "{}")), end("tool_calls"), ran=("write_file", "list_files")),
    fault("calls have no index, and their pieces come under their ids in turn", "AtomicBot-ai/atomic-agent#268", sends(piece(None, "c1", "write_file", WRITE[:9])), sends(piece(None, "c2", "list_files", "{")), sends(piece(None, "c1", arguments=WRITE[9:])), sends(piece(None, "c2", arguments="}")), end("tool_calls"), ran=("write_file", "list_files")),
    fault("arguments come before the name, without an index", "vercel/ai#15879", sends(piece(None, "c1", arguments=WRITE[:9])), sends(piece(None, "c1", "write_file", WRITE[9:])), end("tool_calls")),
    fault("a call has an index and no id", "continuedev/continue#13225", sends(piece(0, name="write_file", arguments=WRITE)), end("tool_calls")),
    fault("the first call has the index 1", "pipecat-ai/pipecat#5342", text(""), sends(piece(1, "c1", "write_file", WRITE)), end("tool_calls")),
    fault("the only call always has the index 1", "microsoft/foundry-local#372", sends(piece(1, "c1", "write_file", "")), *[sends(piece(1, arguments=cut)) for cut in CUTS], end("tool_calls")),
    fault("one chunk holds two pieces of one call", "openai/openai-python#3201", sends(piece(0, "functions.write_file:0", "write_file"), piece(0, arguments=WRITE[:2])), sends(piece(0, arguments=WRITE[2:])), end("tool_calls")),
    fault("the name comes with every piece, and the id with the first", "NousResearch/hermes-agent#8094", sends(piece(0, "c1", "write_file", CUTS[0])), *[sends(piece(0, name="write_file", arguments=cut)) for cut in CUTS[1:]], end("tool_calls")),
    fault("the name comes with every piece, and nothing else tells them apart", "NousResearch/hermes-agent#12230", *[sends(piece(None, name="write_file", arguments=cut)) for cut in CUTS], end("tool_calls")),
    fault("two whole calls of one tool have the index 0", "su-kaka/gcli2api#406", *[sends(piece(0, f"c{key}", "recall", json.dumps({"query": key}))) for key in "ab"], end("tool_calls"), ran=("recall", "recall")),
    fault("pieces of two calls come in turn, under their index alone", "QwenLM/Qwen-Agent#943", sends(piece(0, "c1", "write_file", WRITE[:9])), sends(piece(1, "c2", "recall", '{"que')), sends(piece(0, arguments=WRITE[9:])), sends(piece(1, arguments='ry": "a"}')), end("tool_calls"), ran=("write_file", "recall")),
    fault("the name is empty at first", "jjang-ai/vmlx#244", sends(piece(0, "c1", "", "")), sends(piece(0, "c1", "write_file", WRITE)), end("tool_calls")),
    fault("the name is empty in every piece but the first", "agno-agi/agno#6757", sends(piece(0, "c1", "write_file", "")), *[sends(piece(0, "", "", cut)) for cut in CUTS], end("tool_calls")),
    fault("an empty object stands before the arguments", "BerriAI/litellm#4537", sends(piece(0, "c1", "write_file", "{}")), *[sends(piece(0, arguments=cut)) for cut in CUTS], end("tool_calls")),
    fault("two calls of one tool come as one", "open-webui/open-webui#22235", sends(piece(0, "c1", "list_files", "{}")), sends(piece(0, "c1", "list_files", '{"path": "."}')), end("tool_calls"), ran=("list_files", "list_files")),
    fault("every piece of two calls has the index 0", "LibreChat-AI/agents#260", sends(piece(0, "c1", "list_files", "{}")), sends(piece(0, "c2", "write_file", "")), *[sends(piece(0, arguments=cut)) for cut in CUTS], end("tool_calls"), ran=("list_files", "write_file")),
    fault("all arguments come once more at the end", "open-webui/open-webui#22177", *[sends(piece(0, "c1" if not n else None, "write_file" if not n else None, cut)) for n, cut in enumerate(CUTS)], sends(piece(0, "c1", "write_file", WRITE)), end("tool_calls")),
    fault("the arguments are an object, not a text", "huggingface/text-generation-inference#2136", sends(piece(0, "c1", "write_file", json.loads(WRITE))), end("tool_calls")),
    fault("the arguments are a text in a text", "openclaw/openclaw#39366", sends(piece(0, "c1", "write_file", json.dumps(WRITE))), end("tool_calls")),
    fault("the arguments are nothing for a tool that needs none", "simonw/llm#1164", sends(piece(0, "c1", "list_files", "")), end("tool_calls"), ran=("list_files",)),
    fault("the call comes with stop", "googleapis/python-genai#2868", sends(piece(0, "c1", "write_file", WRITE)), end("stop")),
    fault("the call and its end come in one chunk", "su-kaka/gcli2api#407", delta("tool_calls", tool_calls=[piece(0, "c1", "write_file", WRITE)]) + event(b"[DONE]")),
    fault("text and call come as two choices", "HKUDS/nanobot#1555", event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}, "finish_reason": "tool_calls"}, {"index": 1, "delta": {"tool_calls": [piece(0, "c1", "write_file", WRITE)]}, "finish_reason": "tool_calls"}]}) + event(b"[DONE]")),
    fault("a call is followed by an empty list of calls", "vercel/ai#15879", sends(piece(0, "c1", "write_file", WRITE)), delta(tool_calls=[]), delta(content="", tool_calls=None), end("tool_calls")),
    fault("two calls have one id", "editor-code-assistant/eca#233", sends(piece(0, "c1", "write_file", WRITE)), sends(piece(1, "c1", "list_files", "{}")), end("tool_calls"), ran=("write_file", "list_files")),
    fault("an id is longer than anybody takes it back", "mnfst/llm-gateway#1182", sends(piece(0, "call_" + "x" * 400, "write_file", WRITE)), end("tool_calls")),
    fault("all pieces of the arguments come a second time", "anomalyco/opencode#33064", sends(piece(0, "c1", "write_file", "")), *[sends(piece(0, arguments=cut)) for cut in CUTS * 2], end("tool_calls")),
    fault("the old form of a call", "openai/openai-openapi#88", delta(function_call={"name": "write_file", "arguments": CUTS[0]}), delta(function_call={"arguments": "".join(CUTS[1:])}), end("function_call")),
)  # fmt: skip

UNDONE: tuple[Fault, ...] = (
    Fault("a function could not be called, as a 400", "groq/groq-typescript#28", ((status(400, json.dumps(failed(FAILED, failed_generation='```\n{"tool_calls": [{"id": "pending"'))),), CALLS, AFTER), DONE, ran=RAN, most=3, other_says=DONE),
    Fault("a function could not be called, as an event", "anomalyco/opencode#1018", ((HEAD, b"event: error\n" + event(failed(FAILED, failed_generation="Tool use failed: JSON does not match the expected schema for tool calls", status_code=400))), CALLS, AFTER), DONE, ran=RAN, most=3, other_says=DONE),
    Fault("a function could not be called behind a text", "langchain4j/langchain4j#2585", ((HEAD, text("I will write it."), b"event: error\n" + event(failed(FAILED, status_code=400))), (HEAD, text(" Done."), end()))  , "I will write it. Done.", most=3),
    Fault("the arguments of a call do not fit, says the provider", "HunorLaczko/ha-groq-cloud-api#20", ((status(400, json.dumps(failed("tool call validation failed: parameters for tool write_file did not match schema: errors: [`/path`: expected string, but got array]"))),), CALLS, AFTER), DONE, ran=RAN, most=3, other_says=DONE),
    Fault("a tool is called that the request does not have, says the provider", "https://console.groq.com/docs/errors", ((status(400, json.dumps(failed("tool call validation failed: attempted to call tool 'brave_search' which was not request.tools"))),), CALLS, AFTER), DONE, ran=RAN, most=3, other_says=DONE),
    Fault("a function could never be called", "pydantic/pydantic-ai#4354", ((status(400, json.dumps(failed(FAILED))),),), "cannot be read", ExitCode.BROKEN_BEFORE_TEXT),
    Fault("the model produced an invalid call", "strands-agents/harness-sdk#649", ((status(424, json.dumps({"message": "Model produced invalid sequence as part of ToolUse. Please refer to the model tool use troubleshooting guide."})),), CALLS, AFTER), DONE, ran=RAN, most=3, other_says=DONE),
    Fault("a call stops in the middle and stop is said", "BerriAI/litellm#19028", ((HEAD, call("write_file", HALF), end("stop")), CALLS, AFTER), DONE, ran=RAN),
    Fault("tools are said and none is there", "fr0ster/llm-agent#119", ((HEAD, end("tool_calls")), CALLS, AFTER), DONE, ran=RAN),
    Fault("a call stalls in its arguments", "MiniMax-AI/MiniMax-M2#109", ((HEAD, call("write_file", HALF), Act.HANG), CALLS, AFTER), DONE, ran=RAN),
    Fault("an error comes in the middle of a call", "https://openrouter.ai/docs/api/reference/errors-and-debugging", ((HEAD, call("write_file", HALF), event({"error": {"code": 502, "message": "Provider returned error"}})), CALLS, AFTER), DONE, ran=RAN),
    Fault("an error comes behind a whole call that was ended", "diegosouzapw/OmniRoute#10029", ((HEAD, call("write_file", WRITE), delta("tool_calls"), event({"error": {"message": "terminated", "type": "stream_error"}})), AFTER), DONE, ran=RAN, most=2),
    Fault("a call takes long from piece to piece under a stop", "BerriAI/litellm#2195", ((HEAD, *[step for cut in ("", *CUTS) for step in (delta("stop", tool_calls=[piece(0, None if cut else "c1", None if cut else "write_file", cut)]), Wait(0.8))], event(b"[DONE]")), AFTER), DONE, ran=RAN, most=2),
)  # fmt: skip

HOSTED_CALLS: tuple[Fault, ...] = (*CALLED, *UNDONE)
