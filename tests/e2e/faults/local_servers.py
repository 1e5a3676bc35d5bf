"""What local model servers do, by their documentation and their users' reports; the source of each stands beside it."""

from __future__ import annotations

import json

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.local import AFTER, FINE, HALF, WRITE, calls, local, refuse, tool
from tests.e2e.faults.playing import Fault
from tests.e2e.upstream import HEAD, call, delta, end, event, text

_OLLAMA, _VLLM, _SGLANG = "ollama/ollama", "vllm-project/vllm", "sgl-project/sglang"
_LLAMA, _LMSTUDIO, _MLX = "ggml-org/llama.cpp", "lmstudio-ai/lmstudio-bug-tracker", "ml-explore/mlx-lm"
OTHER = '{"path": "b.txt", "content": "bye"}'


def piece(
    arguments: str | None = None,
    *,
    name: str | None = None,
    index: int | None = 0,
    call_id: str | None = None,
    **more: object,
) -> bytes:
    """A piece of a call with nothing but what is named; None where a server writes null."""
    entry: dict[str, object] = {"function": {"name": name, "arguments": arguments}, "id": call_id, **more}
    return delta(tool_calls=[entry if index is None else {"index": index, **entry}])


CALLS: tuple[Fault, ...] = (
    local(
        "Ollama numbers all calls of a reply zero",
        f"{_OLLAMA}#15457",
        ((HEAD, call("write_file", WRITE, 0, "call_a"), call("write_file", OTHER, 0, "call_b"), end("tool_calls")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "Ollama numbers no call",
        f"{_OLLAMA}#7881",
        ((HEAD, piece(WRITE, name="write_file", index=None, call_id="call_a"), piece(OTHER, name="write_file", index=None, call_id="call_b"), end("stop")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "Ollama gives the first piece of a call no id",
        "continuedev/continue#13235",
        ((HEAD, delta(tool_calls=[{"index": 0, "function": {"name": "write_file"}}]), piece(WRITE), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "SGLang gives no id to calls behind the first",
        f"{_SGLANG}#7048",
        ((HEAD, call("write_file", "", 0, "call_a"), piece(WRITE), piece("", name="write_file", index=1), piece(OTHER, index=1), end("tool_calls")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "SGLang writes null for id and name in each further piece",
        f"{_SGLANG}#35542",
        ((HEAD, call("write_file", "", 0, "call_a"), *(piece(part, type=None) for part in (WRITE[:9], WRITE[9:20], WRITE[20:])), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "SGLang names a call with an empty text in each further piece",
        f"{_SGLANG}#4700",
        ((HEAD, call("write_file", "", 0, "0"), *(piece(part, name="", call_id="0") for part in (WRITE[:9], WRITE[9:20], WRITE[20:])), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "SGLang's calls have no index and a number as id",
        f"{_SGLANG}#5661",
        ((HEAD, piece(WRITE, name="write_file", index=None, call_id="0"), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "LMDeploy numbers all calls zero and tells them apart by id",
        "InternLM/lmdeploy#3412",
        ((HEAD, *(p for n, a in enumerate((WRITE, OTHER)) for p in (piece("", name="write_file", call_id=str(n)), piece(a, call_id=str(n)))), end("tool_calls")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "LMDeploy's further pieces have an empty id",
        "InternLM/lmdeploy#3412",
        ((HEAD, *(p for n, a in enumerate((WRITE, OTHER)) for p in (piece("", name="write_file", call_id=f"call_{n}"), piece(a, call_id=""))), end("tool_calls")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "mlx-openai-server gives each piece of a call another id",
        "cubist38/mlx-openai-server#216",
        ((HEAD, call("write_file", "", 0, "call_1"), piece(WRITE[:20], call_id="call_2"), piece(WRITE[20:], call_id="call_3"), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "NVIDIA NIM repeats the name in each piece of a call",
        "NousResearch/hermes-agent#11984",
        ((HEAD, *(piece(part, name="write_file", call_id="call_a") for part in (WRITE[:9], WRITE[9:20], WRITE[20:])), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "a name comes in two pieces",
        "continuedev/continue#5849",
        ((HEAD, piece(None, name="write_", call_id="call_a"), piece(None, name="file"), piece(WRITE), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "a name comes in two pieces, the id in both",
        "openclaw/openclaw#130537",
        ((HEAD, piece("", name="write", call_id="call_a"), piece("", name="_file", call_id="call_a"), piece(WRITE), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "whole arguments come twice under one call",
        "open-webui/open-webui#22235",
        ((HEAD, call("write_file", WRITE, 0, "call_a"), piece(WRITE, name="write_file", call_id="call_a"), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "two whole argument objects come under one call",
        "open-webui/open-webui#22235",
        ((HEAD, call("write_file", WRITE, 0, "call_a"), piece(OTHER, call_id="call_a"), end("tool_calls")), AFTER),
        read=(WRITE, OTHER), asked=2,
    ),
    local(
        "llama.cpp gives arguments as an object",
        f"{_LLAMA}#20198",
        ((HEAD, delta(tool_calls=[{"index": 0, "id": "c1", "type": "function", "function": {"name": "write_file", "arguments": json.loads(WRITE)}}]), end("tool_calls")), AFTER),
        asked=2,
    ),
    local(
        "vLLM's Hermes parser writes arguments as JSON in JSON",
        f"{_VLLM}#25729",
        ((HEAD, call("write_file", json.dumps(WRITE)), end("tool_calls")), AFTER),
        asked=2,
    ),
    local(
        "OpenVINO's Hermes parser leaves a brace behind the arguments",
        "openvinotoolkit/model_server#3838",
        ((HEAD, call("write_file", WRITE), piece("}"), end("tool_calls")), *tool(AFTER)),
    ),
    local(
        "vLLM drops the last piece of the arguments",
        f"{_VLLM}#10781",
        ((HEAD, call("write_file", WRITE[:-2]), end("tool_calls")), *tool(AFTER)),
    ),
    local(
        "vLLM loses the name of a call",
        f"{_VLLM}#31451",
        ((HEAD, piece(WRITE), end("tool_calls")), *tool(AFTER)),
    ),
    local(
        "vLLM's Step parser loses the arguments",
        f"{_VLLM}#55082",
        ((HEAD, call("write_file", ""), end("tool_calls")), *tool(AFTER)), ran=2,
    ),
    local(
        "vLLM says tool_calls of a call that the output limit cut",
        f"{_VLLM}#53269",
        ((HEAD, call("write_file", HALF), end("tool_calls")), *tool(AFTER)),
    ),
    local(
        "mlx-lm ends a call with tool_call",
        f"{_MLX}#782",
        ((HEAD, call("write_file", WRITE), end("tool_call")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "mlx-vlm ends a call with stop",
        "Blaizzy/mlx-vlm#990",
        ((HEAD, call("write_file", WRITE), end("stop")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "mlx-serve loses a call and ends with stop and nothing",
        "ddalcu/mlx-serve#287",
        ((HEAD, delta(role="assistant", content=""), end("stop")), *tool(AFTER)),
    ),
    local(
        "NIM ends calls with neither a finish reason nor [DONE]",
        "earendil-works/pi#6225",
        ((HEAD, call("write_file", WRITE)), *tool(AFTER)),
    ),
    local(
        "a relay ends calls with [DONE] and no finish reason",
        "openclaw/openclaw#98575",
        ((HEAD, call("write_file", WRITE), event(b"[DONE]")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "LM Studio sends an empty list of calls beside its text",
        f"{_LMSTUDIO}#1318",
        ((HEAD, delta(content="All is ", tool_calls=[]), delta(content="well.", tool_calls=[]), end()),),
        asked=1,
    ),
    local(
        "vMLX says that it is making a call, and sends none for a while",
        "jjang-ai/vmlx#219",
        ((HEAD, *[delta(tool_call_generating=True)] * 5, call("write_file", WRITE), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "a finish reason stands in each piece of a call",
        "BerriAI/litellm#31634",
        ((HEAD, *(delta("tool_calls", tool_calls=[{"index": 0, "id": "c", "function": {"name": "write_file" if not n else None, "arguments": part}}]) for n, part in enumerate((WRITE[:9], WRITE[9:20], WRITE[20:]))), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "a relay that changes accounts appends a second reply to half a call",
        "Wei-Shaw/sub2api#991",
        ((HEAD, call("write_file", HALF, 0, "call_a"), delta(role="assistant"), call("write_file", WRITE, 0, "call_b"), end("tool_calls")), *tool(AFTER)),
    ),
    local(
        "SGLang's reasoning parser swallows a call into the thoughts",
        f"{_SGLANG}#11764",
        ((HEAD, delta(reasoning_content='I write it.\n<tool_call>\n{"name": "write_file", '), delta(reasoning_content='"arguments": ' + WRITE + "}\n</tool_call>"), end("stop")), AFTER),
        read=(WRITE,), asked=2,
    ),
    local(
        "vLLM's reasoning parser swallows a call of Qwen's",
        f"{_VLLM}#39056",
        ((HEAD, delta(reasoning="A file.\n<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>\n"), end("stop")), AFTER),
        ran=1, asked=2,
    ),
    local(
        "a model thinks about a call and does not make it",
        f"{_VLLM}#55759",
        ((HEAD, delta(reasoning_content='I could send <tool_call>\n{"name": "write_file", "arguments": ' + WRITE + "}\n</tool_call>"), text("All is well."), end("stop")),),
        asked=1,
    ),
    local(
        "vLLM's parser routes the whole answer into the thoughts",
        f"{_VLLM}#48645",
        ((HEAD, delta(reasoning_content="All is well.<｜end▁of▁sentence｜>"), end("stop")), FINE),
    ),
    local(
        "MTPLX says the arguments of a call as text too",
        "youssofal/MTPLX#249",
        ((HEAD, text("hello"), call("write_file", WRITE), end("tool_calls")), AFTER),
        read=(WRITE,), asked=2, says="hello\n\nThe work is done.",
    ),
    local(
        "Ollama cannot read a call of gpt-oss, and says 500",
        f"{_OLLAMA}#12064",
        ((refuse(500, "error parsing tool call: raw='{\"path\":\"a.txt\",\"content\":\"...\"]', err=invalid character ']' after object key:value pair", "api_error"),), *tool(AFTER)),
    ),
    local(
        "Ollama can never read a call of gpt-oss",
        f"{_OLLAMA}#12884",
        ((refuse(500, "error parsing tool call: raw='{\"path\":\"a.txt\"]', err=invalid character ']'", "api_error"),),),
        ends=ExitCode.PROVIDER_DOWN,
    ),
    local(
        "llama.cpp cannot read a call, and says so in the stream",
        f"{_LLAMA}#24644",
        ((HEAD, text("Writing."), event({"error": {"code": 500, "message": "Failed to parse input at pos 12: <tool_call>\n<function=write_file>\n<parameter=path>\na.txt", "type": "server_error"}})), *tool(AFTER)), says="Writing.\n\nThe work is done.",
    ),
    local(
        "llama.cpp can never read a call of LFM2",
        f"{_LLAMA}#23838",
        ((HEAD, event({"error": {"code": 500, "message": "Failed to parse input at pos 395: <|tool_call_start|>[write_file(path='a.txt')]<|tool_call_end|>", "type": "server_error"}})),),
        ends=ExitCode.PROVIDER_DOWN,
    ),
    local(
        "llama.cpp refuses a conversation with arguments that are no JSON",
        "am17an/llama.cpp#43",
        ((HEAD, call("write_file", '{"path": nope}'), end("tool_calls")), *tool(AFTER)), ran=2,
        rule=lambda body: refuse(500, "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1", "server_error") if any(not _is_object(c) for c in calls(body)) else None,
    ),
)  # fmt: skip


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
