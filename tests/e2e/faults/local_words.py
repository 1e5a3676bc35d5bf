"""Refusals of local servers in their own words: templates, windows, tools, pictures, loading; and marks that models leave in their text."""

from __future__ import annotations

import json

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.local import AFTER, FINE, WRITE, Body, local, refuse, roles, tool
from tests.e2e.faults.playing import WELL, Fault
from tests.e2e.upstream import HEAD, Reply, call, delta, end, status, text


def toolless(model: str) -> str:
    """A whole answer of a model that had no tools."""
    return f"[outspoken] The provider takes no tools for {model} with this request: what follows was said without them.\n\n{WELL}"


_LLAMA, _VLLM, _OLLAMA, _SGLANG, _MLX = (
    "ggml-org/llama.cpp",
    "vllm-project/vllm",
    "ollama/ollama",
    "sgl-project/sglang",
    "ml-explore/mlx-lm",
)


def jinja(words: str) -> str:
    """What llama.cpp says of a template's exception."""
    return f'\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...% 2 == 0) -%}}↵        {{{{ raise_exception("{words[:20]}...\n                                           ^\nError: Jinja Exception: {words}'


def vllm(words: str, code: int = 400) -> bytes:
    return status(
        code, json.dumps({"object": "error", "message": words, "type": "BadRequestError", "param": None, "code": code})
    )


def has_system(body: Body) -> bool:
    return "system" in roles(body)


def knows_no_tools(body: Body) -> bool:
    """A template of Gemma 2 or Mistral 7B: a person and a model, turn by turn."""
    said = [role for role in roles(body) if role != "system"]
    return any(role != ("user", "assistant")[n % 2] for n, role in enumerate(said))


def several_calls(body: Body) -> bool:
    return any(len(message.get("tool_calls") or ()) > 1 for message in body["messages"])


def odd_ids(body: Body) -> bool:
    ids = [c["id"] for message in body["messages"] for c in message.get("tool_calls") or ()]
    results = [m["tool_call_id"] for m in body["messages"] if m["role"] == "tool"]
    return any(len(each) != 9 or not each.isalnum() for each in ids + results)


def thinks_and_speaks(body: Body) -> bool:
    return any(m.get("tool_calls") and m.get("content") and m.get("reasoning_content") for m in body["messages"])


TWO: Reply = (
    HEAD,
    call("write_file", WRITE, 0, "a"),
    call("read_file", '{"path": "a.txt"}', 1, "b"),
    end("tool_calls"),
)
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
DEVSTRAL = "After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results."

TEMPLATES: tuple[Fault, ...] = (
    local("Gemma's template on vLLM knows no system role", f"{_VLLM}#2964", (FINE,), rule=lambda b: vllm("System role not supported") if has_system(b) else None, asked=1),
    local("Gemma's template on SGLang knows no system role, and that is a 500", f"{_SGLANG}#892", ((status(500, "Internal Server Error", kind="text/plain"),),), ends=ExitCode.PROVIDER_DOWN),
    local("Gemma's template on llama.cpp knows no system role, and that is a 500", f"{_LLAMA}#21879", (FINE,), rule=lambda b: refuse(500, jinja("System role not supported"), "server_error") if has_system(b) else None, asked=1),
    local("Gemma's template on mlx-lm knows no system role, and that is a 404", "OoriData/Toolio#1", (FINE,), rule=lambda b: status(404, json.dumps({"error": "System role not supported"})) if has_system(b) else None, asked=1),
    local("llama.cpp's template wants roles that alternate, also behind tools", "idiap/sdialog#122", tool(AFTER), rule=lambda b: refuse(500, jinja(ALTERNATE), "server_error") if knows_no_tools(b) else None, ran=0),
    local("vLLM's template wants roles that alternate, also behind tools", "kubeai-project/kubeai#499", tool(AFTER), rule=lambda b: vllm(ALTERNATE) if knows_no_tools(b) else None, ran=0),
    local("a template takes neither a system role nor tools", "kubeai-project/kubeai#499", tool(AFTER), rule=lambda b: vllm("System role not supported") if has_system(b) else vllm(ALTERNATE) if knows_no_tools(b) else None, ran=0),
    local("Devstral's template on llama.cpp complains whatever it gets", f"{_LLAMA}#19851", ((refuse(500, jinja(DEVSTRAL), "server_error"),),), ends=ExitCode.BAD_REQUEST, says="conversation roles must alternate"),
    local("Llama's template takes one call at once", "unslothai/unsloth#7426", (TWO, AFTER), rule=lambda b: refuse(500, jinja("This model only supports single tool-calls at once!"), "server_error") if several_calls(b) else None, ran=("write_file", "read_file")),
    local("Databricks' gpt-oss takes one call at once", "natefleming/dao-ai#94", (TWO, AFTER), rule=lambda b: refuse(400, "Multiple tool calls are not supported.") if several_calls(b) else None, ran=("write_file", "read_file")),
    local("Mistral's template on vLLM wants ids of nine characters", f"{_VLLM}#9019", tool(AFTER), rule=lambda b: vllm("Tool call IDs should be alphanumeric strings with length 9!") if odd_ids(b) else None),
    local("oMLX wants ids of nine characters, and that is a 500", "jundot/omlx#1997", tool(AFTER), rule=lambda b: refuse(500, "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9", "server_error") if odd_ids(b) else None),
    local("mlx-lm wants ids of nine characters, and that is a 404", f"{_MLX}#1375", (TWO, AFTER), rule=lambda b: status(404, json.dumps({"error": "Tool call IDs should be alphanumeric strings with length 9!"})) if odd_ids(b) else None, ran=("write_file", "read_file")),
    local("gpt-oss on llama.cpp takes words or thoughts beside a call, not both", f"{_LLAMA}#17040",
          ((HEAD, delta(reasoning_content="I write it."), text("Writing."), call("write_file", WRITE), end("tool_calls")), AFTER),
          rule=lambda b: refuse(500, "Cannot pass both content and thinking in an assistant message with tool calls! Put the analysis message in one or the other, but not both. at row 290, column 178", "server_error") if thinks_and_speaks(b) else None, says="Writing.\n\nThe work is done."),
    local("llama.cpp cannot make a grammar of the tools", f"{_LLAMA}#25746", (FINE,), rule=lambda b: refuse(400, "Failed to initialize samplers: failed to parse grammar") if b.get("tools") else None, says=toolless("llama.cpp cannot make a grammar of the tools"), asked=1),
    local("llama.cpp cannot make a grammar of a pattern", f"{_LLAMA}#26930", (FINE,), rule=lambda b: refuse(400, "JSON schema conversion failed:\nPattern must start with '^' and end with '$'") if b.get("tools") else None, says=toolless("llama.cpp cannot make a grammar of a pattern"), asked=1),
    local("vLLM has no parser for calls", "https://docs.vllm.ai/en/latest/features/tool_calling.html", (FINE,), rule=lambda b: vllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set') if b.get("tools") else None, says=toolless("vLLM has no parser for calls"), asked=1),
    local("Ollama's model takes no tools", "louisho5/picobot#6", (FINE,), rule=lambda b: refuse(400, "registry.ollama.ai/library/gemma3:4b does not support tools", "api_error") if b.get("tools") else None, says=toolless("Ollama's model takes no tools"), asked=1),
    local("llama.cpp was not started for tools", f"{_LLAMA}#12279", (FINE,), rule=lambda b: refuse(500, "tools param requires --jinja flag", "server_error") if b.get("tools") else None, says=toolless("llama.cpp was not started for tools"), asked=1),
)  # fmt: skip

WORDS: tuple[Fault, ...] = (
    local("SGLang's input is longer than the window", "QwenLM/Qwen3#1321", ((vllm("The input (61709 tokens) is longer than the model's context length (40960 tokens)."),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("TensorRT-LLM's prompt exceeds the length of a sequence", "triton-inference-server/tensorrtllm_backend#141", ((refuse(500, "Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)", "internal_error"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("TensorRT-LLM's prompt exceeds the length of an input", "triton-inference-server/tensorrtllm_backend#565", ((refuse(400, "Encountered an error when fetching new request: Prompt length (200) exceeds maximum input length (1)"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("ik_llama.cpp's prompt is too big for its cache", "ikawrakow/ik_llama.cpp#1619", ((refuse(500, "Input prompt is too big compared to KV size. Please try increasing KV size.", "server_error"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("llama-box's prompt is too big for its cache", "gpustack/llama-box#25", ((refuse(500, "input prompt is too big compared to KV size, please increase KV size", "server_error"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("vLLM's prompt is longer than the model's length", f"{_VLLM}#20409", ((vllm("The decoder prompt (length 33000) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens."),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("llama.cpp says in a 200 that the window is full", f"{_LLAMA}#19774", ((status(200, json.dumps({"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}})),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("LocalAI passes on what its backend says of the window", "https://localai.io/basics/troubleshooting/", ((refuse(500, "rpc error: code = Unknown desc = the request exceeds the available context size, try increasing it", ""),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("LiteLLM wraps what llama.cpp says of the window", "vxcontrol/pentagi#313", ((refuse(400, "litellm.BadRequestError: OpenAIException - the request exceeds the available context size, try increasing it. Received Model Group=local\nAvailable Model Group Fallbacks=None", "", code="400"),),), ends=ExitCode.CONTEXT_OVERFLOW),
    local("Hugging Face is loading the model", "huggingface/transformers#23793", ((status(503, json.dumps({"error": "Model x/y is currently loading", "estimated_time": 0.5})),), FINE), asked=2),
    local("Ollama has too many requests in its queue", f"{_OLLAMA}#4159", ((refuse(503, "server busy, please try again. maximum pending requests exceeded", "api_error"),), FINE), asked=2),
    local("Ollama has no slot", f"{_OLLAMA}#4545", ((refuse(500, "no slots available after 10 retries", "api_error"),), FINE), asked=2),
    local("Ollama's cloud is overloaded", f"{_OLLAMA}#15934", ((status(503, json.dumps({"error": "Server overloaded, please retry shortly (ref: aaa65c70)"})),),), ends=ExitCode.PROVIDER_DOWN),
    local("Ollama does not have the model", "netease-youdao/QAnything#555", ((refuse(404, 'model "llama9" not found, try pulling it first', "api_error"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("Ollama does not have the model, in its own form", "otwld/ollama-helm#61", ((status(404, json.dumps({"error": "model 'tinyllama' not found, try pulling it first"})),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("Ollama cannot load the model", "continuedev/continue#12713", ((refuse(500, "llama-server process has terminated: exit status 1: error loading model: llama_model_loader: failed to load model from C:\\Users\\\ufffd\\x", "api_error"),),), ends=ExitCode.PROVIDER_DOWN),
    local("Ollama's runner died before the first word", "chatboxai/chatbox#2114", ((status(200, json.dumps({"error": "an error was encountered while running the model: unexpected EOF"})),), FINE), asked=2),
    local("LM Studio's model has crashed", "lmstudio-ai/lmstudio-bug-tracker#1347", ((status(400, json.dumps({"error": "The model has crashed without additional information. (Exit code: 18446744072635812000)"})),), FINE), asked=2),
    local("LM Studio's model is unloaded", "lmstudio-ai/lmstudio-bug-tracker#1492", ((status(400, json.dumps({"error": "Model is unloaded."})),), FINE), asked=2),
    local("KoboldCpp is busy", "LostRuins/koboldcpp#1189", ((status(503, json.dumps({"detail": {"msg": "Server is busy; please try again later.", "type": "service_unavailable"}})),), FINE), asked=2),
    local("TabbyAPI's handler fails", "theroyallab/tabbyAPI#307", ((status(503, json.dumps({"detail": {"error": {"message": "Chat completion aborted. Maybe the model was unloaded? Please check the server console.", "trace": "Traceback (most recent call last):\n  File x"}}})),), FINE), asked=2),
    local("text-generation-inference's shard fails", "https://huggingface.github.io/text-generation-inference/", ((status(424, json.dumps({"error": "Request failed during generation: Server error: CUDA out of memory.", "error_type": "generation"})),), FINE), asked=2),
    local("text-generation-inference is overloaded", "https://huggingface.github.io/text-generation-inference/", ((status(429, json.dumps({"error": "Model is overloaded", "error_type": "overloaded"})),), FINE), asked=2),
    local("vLLM's engine is dead", f"{_VLLM}#42362", ((refuse(500, "EngineCore encountered an issue. See stack trace (above) for the root cause.", "InternalServerError", code=500),),), ends=ExitCode.PROVIDER_DOWN),
    local("a field is not known to an old vLLM", f"{_VLLM}#11592", (FINE,), rule=lambda b: vllm("[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]") if "stream_options" in b else None, asked=1),
)  # fmt: skip

MARKS: tuple[Fault, ...] = (
    local("mlx-lm leaves ChatML's end in the text", "moltis-org/moltis#306", ((HEAD, text("All is "), text("well.<|im"), text("_end|>"), end()),), asked=1),
    local("vLLM's model ignores its end and talks to itself", f"{_VLLM}#5924", ((HEAD, text("All is "), text("well.<|im_end|>\n<|im_start|>user\n"), text("And how is it now?<|im_end|>\n<|im_start|>assistant\nStill well."), end("length")),), asked=1),
    local("Ollama's model goes on behind its end", f"{_OLLAMA}#13912", ((HEAD, text("All is well.<|endoftext|>Human: please introduce yourself briefly"), text("\n\nAssistant: I am"), end("length")),), asked=1),
    local("Qwen writes in circles behind its end", f"{_OLLAMA}#12459", ((HEAD, text("All is well.<|endoftext|>i need to summarize the provided text as requested"), end()),), asked=1),
    local("DeepSeek's end stands in the text", f"{_VLLM}#48645", ((HEAD, text("All is well.<｜end▁of▁sentence｜>"), end()),), asked=1),
    local("Llama's end stands in the text", f"{_OLLAMA}#2673", ((HEAD, text("All is well.<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nAll is well."), end()),), asked=1),
    local("Gemma's end stands in the text", f"{_LLAMA}#22786", ((HEAD, text("All is well.<end_of_turn>\n<start_of_turn>user\nThanks"), end()),), asked=1),
    local("an end stands behind a call in the text", f"{_OLLAMA}#18357", ((HEAD, text('<tool_call>\n{"name": "write_file", "arguments": ' + WRITE + "}\n</tool_call><|im_end|>"), end()), AFTER), asked=2),
    local("LM Studio leaves its own form of a call in the text", "https://lmstudio.ai/docs/app/api/tools", ((HEAD, text('[TOOL_REQUEST]{"name":"write_file","arguments":' + WRITE + "}[END_TOOL_REQUEST]"), end()), AFTER), asked=2),
    local("LM Studio leaves Qwen's form of a call in the text", "lmstudio-ai/lmstudio-bug-tracker#2115", ((HEAD, text("<tool_call>\n<function=write_file>\n<parameter=path>\na.txt\n</parameter>\n<parameter=content>\nhello\n</parameter>\n</function>\n</tool_call>"), end()), AFTER), asked=2),
    local("Ollama's Gemma calls in a tag that says tool", f"{_OLLAMA}#9680", ((HEAD, text('<tool>\n{"name": "write_file", "parameters": ' + WRITE + "}\n</tool>"), end()), AFTER), asked=2),
    local("Gemma 3n says args in place of arguments", f"{_OLLAMA}#18357", ((HEAD, text('<tool_call>\n{"name": "write_file", "args": ' + WRITE + "}\n</tool_call>"), end()), AFTER), asked=2),
    local("vllm-mlx leaves thoughts in the text beside a call", "waybarrios/vllm-mlx#161", ((HEAD, text("<think>A file, then.</think>"), call("write_file", WRITE), end("tool_calls")), AFTER), read=(WRITE,), asked=2),
)  # fmt: skip
