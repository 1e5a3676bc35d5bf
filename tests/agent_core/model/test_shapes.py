"""Refusals as providers really wrote them (each with the public thread or page it is from): what they mean, and what they are about."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.causes import BreakCause
from agent_core.failures.complaints import NOTHING_SAID, Complaint, Concern, Place
from agent_core.jsonvalue import Json
from agent_core.model.failures import rejection
from agent_core.model.shapes import SHAPES

GITHUB = "https://github.com/"


@dataclass(frozen=True)
class Seen:
    """One refusal, as it was reported."""

    name: str
    source: str
    status: int
    body: Json
    cause: BreakCause
    complaint: Complaint = NOTHING_SAID


def openai(message: str, code: str = "", param: str = "", kind: str = "invalid_request_error") -> Json:
    return {"error": {"message": message, "type": kind, "param": param or None, "code": code or None}}


def anthropic(message: str) -> Json:
    return {"type": "error", "error": {"type": "invalid_request_error", "message": message}, "request_id": "req_1"}


def openrouter(inner: Json, code: int = 400) -> Json:
    raw = inner if isinstance(inner, str) else json.dumps(inner)
    return {
        "error": {"message": "Provider returned error", "code": code, "metadata": {"raw": raw, "provider_name": "X"}}
    }


OVERFLOW, BIG, BAD = BreakCause.CONTEXT_OVERFLOW, BreakCause.TOO_LARGE, BreakCause.BAD_REQUEST
FILTER, PAY, RATE = BreakCause.REFUSED, BreakCause.PAYMENT_REQUIRED, BreakCause.RATE_LIMITED
PICTURES, PICTURE = Complaint(Concern.PICTURES), Complaint(Concern.PICTURE)
MESSAGE, FIELD = Complaint(Concern.MESSAGE), Complaint(Concern.FIELD)


def window(tokens: int) -> Complaint:
    return Complaint(window=tokens)


SEEN: list[Seen] = [
    # ---------------------------------------------------------------- the window
    Seen("openai", GITHUB + "crewAIInc/crewAI-examples/issues/121", 400, openai("This model's maximum context length is 8192 tokens. However, your messages resulted in 8227 tokens. Please reduce the length of the messages.", "context_length_exceeded", "messages"), OVERFLOW, window(8192)),
    Seen("vllm", GITHUB + "THUDM/LongBench/issues/104", 400, {"object": "error", "message": "This model's maximum context length is 131072 tokens. However, you requested 351430 tokens. Please reduce the length of the messages or completion.", "type": "BadRequestError", "param": None, "code": 400}, OVERFLOW, window(131072)),
    Seen("anthropic", GITHUB + "anthropics/claude-code/issues/12186", 400, anthropic("prompt is too long: 208310 tokens > 200000 maximum"), OVERFLOW, window(200000)),
    Seen("bedrock, Anthropic's words", GITHUB + "aaif-goose/goose/pull/7504", 400, {"message": "The model returned the following errors: prompt is too long: 227255 tokens > 200000 maximum"}, OVERFLOW, window(200000)),
    Seen("bedrock", GITHUB + "aws-samples/assessment-generator/issues/2", 400, {"message": "Input is too long for requested model."}, OVERFLOW),
    Seen("bedrock, older", GITHUB + "ryanadoty/Amazon-Bedrock-Amazon-RDS-POC/issues/9", 400, {"message": "Malformed input request: expected maxLength: 42000, actual: 46735, please reformat your input and try again."}, OVERFLOW),
    Seen("bedrock, the body", GITHUB + "langchain-ai/langchain-aws/issues/419", 400, {"message": "1 validation error detected: Value at 'body' failed to satisfy constraint: Member must have length less than or equal to 25000000"}, BIG),
    Seen("gemini", GITHUB + "google-gemini/gemini-cli/issues/6678", 400, [{"error": {"code": 400, "message": "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", "status": "INVALID_ARGUMENT"}}], OVERFLOW, window(1048576)),
    Seen("gemini, wrapped", GITHUB + "google-gemini/gemini-cli/issues/4231", 400, {"error": {"message": '{\n  "error": {\n    "code": 400,\n    "message": "The input token count (3475108) exceeds the maximum number of tokens allowed (1048576).",\n    "status": "INVALID_ARGUMENT"\n  }\n}\n', "code": 400, "status": "Bad Request"}}, OVERFLOW, window(1048576)),
    Seen("llama.cpp", GITHUB + "oobabooga/textgen/issues/7257", 400, {"error": {"code": 400, "message": "the request exceeds the available context size. try increasing the context size or enable context shift", "type": "exceed_context_size_error", "n_prompt_tokens": 14429, "n_ctx": 8192}}, OVERFLOW, window(8192)),
    Seen("llama.cpp, a 500 inside a 200", GITHUB + "ggml-org/llama.cpp/pull/15780", 0, {"error": {"code": 500, "message": "the request exceeds the available context size. try increasing the context size", "type": "exceed_context_size_error", "n_prompt_tokens": 1407, "n_ctx": 256}}, OVERFLOW, window(256)),
    Seen("llama.cpp, while it writes", GITHUB + "ggml-org/llama.cpp/issues/19774", 500, {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}}, OVERFLOW),
    Seen("llama-cpp-python", GITHUB + "fedora-copr/logdetective-website/pull/193", 500, {"error": {"message": "Requested tokens (2285) exceed context window of 2048", "type": "internal_server_error"}}, OVERFLOW),
    Seen("lm studio", GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/546", 400, {"error": "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with context length of only 32768 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input."}, OVERFLOW, window(32768)),
    Seen("groq", GITHUB + "thepersonalaicompany/amurex-backend/issues/51", 400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded", "messages"), OVERFLOW),
    Seen("groq, a minute's allowance", GITHUB + "continuedev/continue/issues/10218", 413, openai("Request too large for model `llama-3.3-70b-versatile` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 12000, Requested 14137, please reduce your message size and try again.", "rate_limit_exceeded", kind="tokens"), BIG, window(12000)),
    Seen("openai, a minute's allowance", GITHUB + "elizaOS/eliza/issues/4040", 429, openai("Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 47000.", "rate_limit_exceeded", kind="tokens"), BIG, window(30000)),
    Seen("together, tgi", GITHUB + "bytedance/UI-TARS-desktop/issues/626", 422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 65537. ConsentGiven: 79993 `inputs` tokens and 1024 `max_new_tokens`"}, OVERFLOW, window(65537)),
    Seen("hugging face", GITHUB + "meta-llama/llama/issues/1103", 422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. ConsentGiven: 4545"}, OVERFLOW, window(4096)),
    Seen("moonshot", GITHUB + "MoonshotAI/kimi-cli/issues/2011", 400, openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"), OVERFLOW, window(262144)),
    Seen("moonshot, older", GITHUB + "MoonshotAI/MoonshotAI-Cookbook/issues/18", 400, openai("model max length exceeded, max length:8192"), OVERFLOW, window(8192)),
    Seen("ollama", GITHUB + "lfnovo/open-notebook/issues/350", 400, {"error": "the input length exceeds the context length"}, OVERFLOW),
    Seen("ollama, pictures", GITHUB + "NousResearch/hermes-agent/pull/82993", 400, {"error": "prompt too long; exceeded max context length by 430000 tokens"}, OVERFLOW),
    Seen("openrouter", GITHUB + "reVrost/go-openrouter/pull/21", 400, openrouter(anthropic("prompt is too long: 210000 tokens > 200000 maximum")), OVERFLOW, window(200000)),
    Seen("sglang", GITHUB + "QwenLM/Qwen3/issues/1321", 400, {"object": "error", "message": "The input (61709 tokens) is longer than the model's context length (40960 tokens).", "type": "BadRequestError", "param": None, "code": 400}, OVERFLOW, window(40960)),
    Seen("tensorrt-llm", GITHUB + "triton-inference-server/tensorrtllm_backend/issues/141", 500, openai("Cannot process new request: Prompt length (5056) exceeds maximum sequence length (2048)"), OVERFLOW, window(2048)),
    Seen("ik_llama.cpp", GITHUB + "ikawrakow/ik_llama.cpp/issues/1619", 500, openai("Input prompt is too big compared to KV size. Please try increasing KV size."), OVERFLOW),
    Seen("nginx", "https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size", 413, "<html>\r\n<head><title>413 Request Entity Too Large</title></head></html>", BIG),
    Seen("github", GITHUB + "github/copilot-cli/issues/3767", 400, openai("The attached image or document is too large to send natively through CAPI Responses. Try a smaller attachment or fewer attachments. (9.1 MB request; 5.0 MB limit)"), BIG),
    # ---------------------------------------------------------------- pictures
    Seen("openai, no pictures", GITHUB + "browser-use/web-ui/issues/274", 400, openai("Invalid content type. image_url is only supported by certain models.", param="messages.[1].content.[1].type"), BAD, Complaint(Concern.PICTURES, (Place(1, 1),))),
    Seen("openrouter, no pictures", GITHUB + "danny-avila/LibreChat/issues/6333", 400, openrouter(openai("Invalid content type. image_url is only supported by certain models.", param="messages.[0].content.[1].type")), BAD, Complaint(Concern.PICTURES, (Place(0, 1),))),
    Seen("openrouter, a 404", GITHUB + "JohnnyZ93/oai-compatible-copilot/issues/229", 404, {"error": {"code": "404", "message": "No endpoints found that support image input", "param": "", "type": ""}}, BAD, PICTURES),
    Seen("deepseek", GITHUB + "nesquena/hermes-webui/issues/2297", 400, openai("Failed to deserialize the JSON body into the target type: messages[137]: unknown variant `image_url`, expected `text` at line 1 column 460917", "invalid_request_error"), BAD, Complaint(Concern.PICTURES, (Place(137),))),
    Seen("deepseek, older", GITHUB + "browser-use/web-ui/issues/163", 422, "Failed to deserialize the JSON body into the target type: messages[1]: data did not match any variant of untagged enum ChatCompletionRequestContent at line 1 column 18231", BAD, Complaint(Concern.PICTURES, (Place(1),))),
    Seen("deepseek, a list", GITHUB + "chatboxai/chatbox/issues/1740", 422, "Failed to deserialize the JSON body into the target type: messages[2]: invalid type: sequence, expected a string at line 1 column 2901", BAD, Complaint(Concern.PICTURES, (Place(2),))),
    Seen("a gateway before deepseek", GITHUB + "1jehuang/jcode/issues/848", 400, openai("Error from provider (Console): Upstream request failed: [invalid_request_error] Failed to deserialize the JSON body into the target type: messages[408]: unknown variant `image_url`, expected `text` at line 1 column 4795048", "invalid_request_error"), BAD, Complaint(Concern.PICTURES, (Place(408),))),
    Seen("llama.cpp, no pictures", GITHUB + "ggml-org/llama.cpp/issues/13566", 500, {"error": {"code": 500, "message": "image input is not supported by this server", "type": "server_error"}}, BAD, PICTURES),
    Seen("ollama, no pictures", GITHUB + "OpenCoworkAI/open-cowork/issues/251", 400, {"error": "this model does not support image input"}, BAD, PICTURES),
    Seen("cloudflare", GITHUB + "cloudflare/cloudflare-os/issues/97", 400, openai("this model does not support image input (ref: 1)"), BAD, PICTURES),
    Seen("groq, no lists", GITHUB + "browser-use/browser-use/issues/54", 400, openai("message[4].content must be a string"), BAD, PICTURES),
    Seen("groq, a tool's list", GITHUB + "CherryHQ/cherry-studio/issues/3307", 400, openai("'messages.2' : for 'role:tool' the following must be satisfied[('messages.2.content' : value must be a string)]"), BAD, Complaint(Concern.PICTURES, (Place(2, native=True),))),
    Seen("tinker", GITHUB + "thinking-machines-lab/tinker-feedback/issues/83", 422, {"detail": "Validation Error", "errors": [{"loc": "body -> messages -> 0 -> content -> list[TextContentPart] -> 0 -> type", "msg": "Input should be 'text'", "type": "literal_error"}]}, BAD, MESSAGE),
    Seen("vllm, no pictures", GITHUB + "vllm-project/vllm/issues/23402", 400, {"object": "error", "message": "internlm/Intern-S1 is not a multimodal model", "type": "BadRequestError", "code": 400}, BAD, PICTURES),
    Seen("vllm, too many", GITHUB + "vllm-project/vllm/issues/13513", 400, {"object": "error", "message": "At most 1 image(s) may be provided in one request.", "type": "BadRequestError", "param": None, "code": 400}, BAD, PICTURE),
    Seen("crucible, too many", GITHUB + "diegosouzapw/OmniRoute/issues/3044", 400, openrouter(openai("Model 'moonshotai/kimi-k2.6' supports at most 1 image per prompt.", "invalid_request_error")), BAD, PICTURE),
    Seen("bedrock, a large picture", GITHUB + "anomalyco/opencode/issues/21668", 400, {"message": "The model returned the following errors: messages.258.content.1.image.source.base64: image exceeds 5 MB maximum: 5895160 bytes > 5242880 bytes"}, BAD, Complaint(Concern.PICTURE, (Place(258, 1, native=True),))),
    Seen("anthropic, many pictures", GITHUB + "damianvtran/local-operator/pull/153", 400, anthropic("messages.0.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size for many-image requests: 2000 pixels"), BAD, Complaint(Concern.PICTURE, (Place(0, 2, native=True),))),
    Seen("anthropic, a broken picture", GITHUB + "anthropics/claude-code/issues/46127", 400, anthropic("Could not process image"), BAD, PICTURE),
    Seen("anthropic, a wrong format", GITHUB + "anthropics/claude-code/issues/42399", 400, anthropic("messages.11.content.8.image.source.base64.data: Image format image/png not supported"), BAD, Complaint(Concern.PICTURE, (Place(11, 8, native=True),))),
    Seen("mlx-lm, no pictures", "https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/server.py", 404, {"error": "Only 'text' content type is supported."}, BAD, PICTURES),
    # ---------------------------------------------------------------- one message
    Seen("anthropic, no words", GITHUB + "anthropics/claude-code/issues/61881", 400, anthropic("messages: text content blocks must be non-empty"), BAD, MESSAGE),
    Seen("xiaomi, no words", GITHUB + "farion1231/cc-switch/issues/464", 400, openrouter({"error": {"code": "400", "message": "Param Incorrect", "param": "messages[2] assistant content must contain at least one part", "type": ""}}), BAD, Complaint(Concern.MESSAGE, (Place(2),))),
    Seen("anthropic, thoughts", GITHUB + "anthropics/anthropic-sdk-python/issues/1598", 400, anthropic("messages.27.content.0: Invalid `signature` in `thinking` block"), BAD, Complaint(Concern.THOUGHTS, (Place(27, 0, native=True),))),
    Seen("anthropic, thoughts, wrapped twice", GITHUB + "lbjlaq/Antigravity-Manager/issues/498", 400, {"error": {"code": 400, "message": json.dumps(anthropic("messages.1.content.0: Invalid `signature` in `thinking` block")), "status": "INVALID_ARGUMENT"}}, BAD, Complaint(Concern.THOUGHTS, (Place(1, 0, native=True),))),
    Seen("vertex, thoughts", GITHUB + "NoeFabris/opencode-antigravity-auth/issues/368", 400, [{"error": {"code": 400, "message": "Unable to submit request because Thought signature is not valid.. Learn more: https://cloud.google.com/", "status": "INVALID_ARGUMENT"}}], BAD, Complaint(Concern.THOUGHTS)),
    Seen("broken arguments in the past", GITHUB + "cymoo/lovia/pull/82", 400, openai("Expecting ',' delimiter: line 1 column 40 (char 39)"), BAD, MESSAGE),
    Seen("openai, a long text", "https://platform.openai.com/docs/guides/error-codes", 400, openai("Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.", "string_above_max_length", "messages[3].content"), BIG, Complaint(Concern.MESSAGE, (Place(3),))),
    # ---------------------------------------------------------------- templates and grammars
    Seen("gemma's template", GITHUB + "vllm-project/vllm/pull/2964", 400, {"object": "error", "message": "System role not supported", "type": "BadRequestError", "param": None, "code": 400}, BAD, FIELD),
    Seen("devstral's template", GITHUB + "ggml-org/llama.cpp/issues/19851", 500, {"error": {"code": 500, "message": "\n------------\nWhile executing CallExpression at line 189, column 32 in source:\n...\nError: Jinja Exception: After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results.", "type": "server_error"}}, BAD, FIELD),
    Seen("mistral's template", GITHUB + "ml-explore/mlx-lm/issues/1375", 404, {"error": "Tool call IDs should be alphanumeric strings with length 9!"}, BAD, FIELD),
    Seen("a grammar", GITHUB + "ggml-org/llama.cpp/issues/25746", 400, openai("Failed to initialize samplers: failed to parse grammar"), BAD, FIELD),
    # ---------------------------------------------------------------- servers that are not well
    Seen("lm studio, crashed", GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/1347", 400, {"error": "The model has crashed without additional information. (Exit code: 18446744072635812000)"}, BreakCause.SERVER_ERROR),
    Seen("lm studio, unloaded", GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/1492", 400, {"error": "Model is unloaded."}, BreakCause.SERVER_ERROR),
    Seen("tgi, a shard", "https://huggingface.github.io/text-generation-inference/", 424, {"error": "Request failed during generation: Server error: CUDA out of memory.", "error_type": "generation"}, BreakCause.SERVER_ERROR),
    # ---------------------------------------------------------------- filters
    Seen("portkey", "https://portkey.ai/docs/product/guardrails", 446, {"error": {"message": "The guardrail checks defined in the config failed.", "type": "hooks_failed", "param": None, "code": None}}, FILTER, MESSAGE),
    Seen("azure", GITHUB + "compl-ai/compl-ai/issues/20", 400, {"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.", "type": None, "param": "prompt", "code": "content_filter", "status": 400, "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": False}}}}}, FILTER, MESSAGE),
    Seen("litellm before azure", GITHUB + "BerriAI/litellm/pull/16231", 400, {"error": {"message": "litellm.BadRequestError: litellm.ContentPolicyViolationError: AzureException - The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "type": None, "param": None, "code": "400"}}, FILTER, MESSAGE),
    Seen("dashscope", GITHUB + "camel-ai/owl/issues/432", 400, {"error": {"code": "data_inspection_failed", "param": None, "message": "Input data may contain inappropriate content.", "type": "data_inspection_failed"}}, FILTER, MESSAGE),
    Seen("dashscope, in words", GITHUB + "openclaw/openclaw/issues/32622", 400, openai("<400> InternalError.Algo.DataInspectionFailed: Input text data may contain inappropriate content."), FILTER, MESSAGE),
    Seen("a guardrail of a gateway", GITHUB + "BerriAI/litellm/pull/28297", 403, openai("blocked by guardrail policy"), FILTER, MESSAGE),
    Seen("litellm, bedrock's guardrail", GITHUB + "BerriAI/litellm/issues/13321", 400, {"error": {"message": {"error": "Violated guardrail policy", "bedrock_guardrail_response": "Sorry."}, "code": "400"}}, FILTER, MESSAGE),
    Seen("bedrock's guardrail", GITHUB + "BerriAI/litellm/issues/13126", 400, {"message": "Sorry, the model cannot answer this question. Guardrail intervened"}, FILTER, MESSAGE),
    Seen("a guardrail that itself failed", GITHUB + "BerriAI/litellm/pull/38553", 403, openai("Bedrock guardrail request failed"), BreakCause.FORBIDDEN),
    Seen("openrouter's moderation", "https://openrouter.ai/docs/api/reference/errors-and-debugging", 403, {"error": {"code": 403, "message": "Your chosen model requires moderation and your input was flagged", "metadata": {"reasons": ["violence"], "flagged_input": "..."}}}, FILTER, MESSAGE),
    # ---------------------------------------------------------------- money, rates, places
    Seen("openai, no quota", GITHUB + "langchain-ai/langchainjs/issues/1929", 429, openai("You exceeded your current quota, please check your plan and billing details.", "insufficient_quota", kind="insufficient_quota"), PAY),
    Seen("a relay without codes", GITHUB + "Bytez-com/docs/issues/38", 429, {"error": "429 You exceeded your current quota, please check your plan and billing details."}, PAY),
    Seen("gemini, a rate", "https://ai.google.dev/gemini-api/docs/rate-limits", 429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing details. * Quota exceeded for metric: generate_content_free_tier_requests, limit: 10\nPlease retry in 34.074824224s.", "status": "RESOURCE_EXHAUSTED"}}], RATE),
    Seen("openrouter, a rate inside", GITHUB + "open-webui/computer/issues/293", 429, openrouter("z-ai/glm-5.3-flash is temporarily rate-limited upstream. Please retry shortly", 429), RATE),
    Seen("openai, where from", GITHUB + "songquanpeng/one-api/issues/1692", 403, openai("Country, region, or territory not supported", "unsupported_country_region_territory", kind="request_forbidden"), BreakCause.REGION),
    Seen("openai, a key", GITHUB + "chatanywhere/GPT_API_free/issues/81", 401, openai("Incorrect API key provided: sk-zhj0s***CMuq.", "invalid_api_key"), BreakCause.UNAUTHORISED),
    Seen("gemini, a key as a 400", "https://ai.google.dev/gemini-api/docs/troubleshooting", 400, [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}], BreakCause.UNAUTHORISED),
    Seen("one-api, a key", "https://github.com/songquanpeng/one-api/blob/main/relay/controller/helper.go", 403, openai("令牌额度不足", "pre_consume_token_quota_failed", kind="one_api_error"), PAY),
    Seen("litellm, a budget", "https://docs.litellm.ai/docs/proxy/users", 400, openai("Budget has been exceeded! Current cost: 11.2, Max budget: 10.0", kind="budget_exceeded"), PAY),
    # ---------------------------------------------------------------- models, routes, fields, pages
    Seen("one-api, a model", GITHUB + "songquanpeng/one-api/issues/2340", 503, openai("当前分组 default 下对于模型 gpt-4 无可用渠道 (request id: 1)", kind="one_api_error"), BreakCause.NOT_FOUND),
    Seen("litellm, a model", "https://docs.litellm.ai/docs/proxy/debugging", 400, openai("/chat/completions: Invalid model name passed in model=gpt-9."), BreakCause.NOT_FOUND),
    Seen("openai, a model", "https://platform.openai.com/docs/guides/error-codes", 404, openai("The model `gpt-9` does not exist or you do not have access to it.", "model_not_found"), BreakCause.NOT_FOUND),
    Seen("openrouter, a model", GITHUB + "openclaw/openclaw/pull/99079", 404, openai("No endpoints found for x/y."), BreakCause.NOT_FOUND),
    Seen("kong", GITHUB + "nextcloud/integration_openai/issues/76", 404, {"message": "no Route matched with those values", "request_id": "2ba"}, BreakCause.NO_ROUTE),
    Seen("fastapi", "https://fastapi.tiangolo.com/tutorial/handling-errors/", 404, {"detail": "Not Found"}, BreakCause.NO_ROUTE),
    Seen("go", "https://pkg.go.dev/net/http#NotFound", 404, "404 page not found", BreakCause.NO_ROUTE),
    Seen("a web server", "https://nginx.org/en/docs/", 404, "<html><head><title>404 Not Found</title></head></html>", BreakCause.NO_ROUTE),
    Seen("cloudflare's page", "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/4xx-client-error/", 403, "<!DOCTYPE html><html><title>Attention Required! | Cloudflare</title></html>", BreakCause.BY_PROXY),
    Seen("a proxy's page", "https://www.rfc-editor.org/rfc/rfc9110#name-407-proxy-authentication-re", 407, "<html>Proxy Authentication Required</html>", BreakCause.BY_PROXY),
    Seen("a load balancer's page", "https://nginx.org/en/docs/", 502, "<html><h1>502 Bad Gateway</h1></html>", BreakCause.SERVER_ERROR),
    Seen("openrouter, tools", GITHUB + "rbb-dev/Open-WebUI-OpenRouter-pipe/issues/58", 404, openai('No endpoints found that support tool use. Try disabling "get_current_timestamp".'), BAD, FIELD),
    Seen("ollama, tools", GITHUB + "ollama/ollama/issues/15857", 400, {"error": {"message": "registry.ollama.ai/library/x does not support tools", "type": "api_error"}}, BAD, FIELD),
    Seen("mistral, a field", GITHUB + "editor-code-assistant/eca/issues/231", 422, {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"], "msg": "Extra inputs are not permitted", "input": 32000}]}, "type": "invalid_request_error", "param": None, "code": None}, BAD, FIELD),
    Seen("openai, a field", GITHUB + "anthropics/claude-code/issues/11302", 400, openai("max_tokens: 21333 > 4096, which is the maximum allowed number of output tokens for claude-3-opus-20240229"), BAD, FIELD),
    Seen("openai, a named parameter", "https://platform.openai.com/docs/guides/error-codes", 400, openai("Something is wrong with it.", param="tools[0].function.parameters"), BAD, FIELD),
    Seen("nobody's words", "https://platform.openai.com/docs/guides/error-codes", 400, openai("Invalid request."), BAD),
]  # fmt: skip


@pytest.mark.parametrize("seen", SEEN, ids=[seen.name for seen in SEEN])
def test_a_refusal_that_was_reported_is_understood(seen: Seen):
    found = rejection(seen.status, seen.body)
    assert found.cause is seen.cause
    if seen.name != "tinker":
        assert found.complaint == seen.complaint


def test_a_wrapper_that_says_nothing_gives_way_to_what_it_wraps():
    found = rejection(400, openrouter(openai("supports at most 1 image per prompt.")))
    assert found.detail == "supports at most 1 image per prompt."


@pytest.mark.parametrize("row", SHAPES, ids=[row.who for row in SHAPES])
def test_every_row_names_where_it_was_seen(row: object):
    source = getattr(row, "source", "")
    assert urlsplit(source).scheme == "https"
    assert len(urlsplit(source).path) > 1


def test_a_server_that_is_down_is_not_taken_for_a_refusal():
    assert rejection(503, openai("The server is overloaded", kind="server_error")).cause is BreakCause.SERVER_ERROR
    assert rejection(500, {"error": {"message": "Internal error", "code": 500}}).complaint == Complaint()


@given(st.integers(0, 599), st.text(max_size=200), st.integers(0, 99999))
def test_no_words_are_too_odd_and_places_are_few(status: int, words: str, number: int):
    found = rejection(status, {"error": {"message": f"{words} messages[{number}] {words}" * 20}})
    assert len(found.complaint.places) <= 8
    assert len(found.detail) <= 300
