"""Providers' refusals as data: by which words and codes each is recognised, what it means, and where it was seen. Pure.

One table for all that is not told by the status alone; the first row that fits decides. Statuses are not to be believed: servers say
"too long" with 400, 413, 422 and 500, "no pictures" with 404, and put errors into a 200. So a row names a status only where the same
words mean something else under another.

To add one: a row with the words (a pattern, searched for in the message in lower case) or the codes, and the source; and its answer, as the
provider wrote it, in tests/agent_core/model/test_shapes.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import field

from agent_core.causes import BreakCause
from agent_core.failures.complaints import Concern
from agent_core.records import dataclass
from agent_core.text.patterns import late

_GITHUB = "https://github.com/"


@dataclass(frozen=True, slots=True)
class Shape:
    """One row."""

    cause: BreakCause
    who: str
    """Whose refusal it is."""
    source: str
    """Where it is documented or reported."""
    words: re.Pattern[str] | None = None
    """In lower case, of the message."""
    codes: Collection[str] = field(default=frozenset[str]())
    """In lower case, of ``code``, ``type``, ``status`` and inner errors; one of them is enough."""
    statuses: Collection[int] = field(default=frozenset[int]())
    """Only under these; empty: under any."""
    concern: Concern = Concern.UNSAID


def _words(pattern: str) -> re.Pattern[str]:
    return late(pattern)


def _codes(names: str) -> frozenset[str]:
    return frozenset(names.split())


SHAPES: tuple[Shape, ...] = (
    # ------------------------------------------------------------------ one picture, or too many
    Shape(
        BreakCause.BAD_REQUEST,
        "Anthropic: a picture's bytes or pixels",
        _GITHUB + "anomalyco/opencode/issues/21668",
        _words(
            r"image exceeds \d+ ?mb|image dimensions? exceed|at least one of the image dimensions|image was too large"
        ),
        concern=Concern.PICTURE,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "Anthropic, OpenAI: a picture that cannot be read",
        _GITHUB + "anthropics/claude-code/issues/46127",
        _words(
            r"could not process image|image format \S+ not supported|unsupported image|invalid image|failed to (?:download|fetch|load) (?:the )?image"
            r"|unable to process input image|invalid base64 image|image data.{0,40}(?:invalid|could not)|invalid_image"
        ),
        concern=Concern.PICTURE,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "vLLM, Crucible: how many pictures",
        _GITHUB + "vllm-project/vllm/issues/13513",
        _words(r"at most \d+ image|too many images|maximum (?:number )?of images"),
        concern=Concern.PICTURE,
    ),
    # ------------------------------------------------------------------ what a model cannot take at all
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenAI, Azure: no pictures",
        _GITHUB + "browser-use/web-ui/issues/274",
        _words(r"image_url is only supported by certain models"),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenRouter, Xiaomi: no pictures, as a 404",
        _GITHUB + "JohnnyZ93/oai-compatible-copilot/issues/229",
        _words(r"no endpoints found that support image"),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "DeepSeek: no pictures, by its parser",
        _GITHUB + "nesquena/hermes-webui/issues/2297",
        _words(
            r"unknown variant\W{1,4}image_url|did not match any variant of untagged enum chatcompletionrequestcontent"
        ),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "DeepSeek, Groq, tinker, mlx-lm: nothing but a text as content",
        _GITHUB + "chatboxai/chatbox/issues/1740",
        _words(
            r"invalid type: sequence, expected a string|content['\" ]* ?:? ?(?:value )?must be a string|list\[textcontentpart\]|content should be a string"
            r"|only 'text' content type is supported"
        ),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "llama.cpp: no pictures, as a 500",
        _GITHUB + "ggml-org/llama.cpp/issues/13566",
        _words(r"image input is not supported|not compiled for multimodal|provide the mmproj"),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "Ollama, Cloudflare, LM Studio, Mistral: no pictures",
        _GITHUB + "OpenCoworkAI/open-cowork/issues/251",
        _words(
            r"(?:does not|doesn't|do not|cannot|can't) (?:support|accept|take|process|have|handle) (?:any )?(?:images?|vision|multi-?modal|pictures?)"
            r"|image(?:s| inputs?| content)? (?:is|are) not (?:supported|enabled|allowed)|missing data required for image input"
            r"|(?:images?|vision)(?: inputs?)?(?: is| are)? not supported|not a vision model"
        ),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "vLLM: no pictures",
        _GITHUB + "vllm-project/vllm/issues/23402",
        _words(r"is not a multimodal model"),
        concern=Concern.PICTURES,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenRouter, OpenAI, vLLM: no sound",
        "https://openrouter.ai/docs/features/multimodal/audio",
        _words(
            r"no endpoints found that support (?:input )?audio|input_audio is only supported|unknown variant\W{1,4}input_audio"
            r"|(?:does not|doesn't) support (?:input )?audio|audio(?: input)? is not supported|at most \d+ audio"
        ),
        concern=Concern.SOUNDS,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenRouter, OpenAI: no files",
        "https://openrouter.ai/docs/features/multimodal/pdfs",
        _words(
            r"no endpoints found that support file|unknown variant\W{1,4}file\b|(?:does not|doesn't) support (?:file|pdf|document)"
            r"|(?:file|pdf|document)s?(?: inputs?| content)? (?:is|are) not supported"
        ),
        concern=Concern.FILES,
    ),
    # ------------------------------------------------------------------ one message
    Shape(
        BreakCause.BAD_REQUEST,
        "Anthropic, Vertex: thoughts that were sent back",
        _GITHUB + "anthropics/anthropic-sdk-python/issues/1598",
        _words(
            r"invalid\W{1,3}signature\W{1,3}in\W{1,3}thinking|thought signature is not valid|thinking\W{1,3}(?:or\W{1,3}redacted_thinking\W{1,3})?blocks?.{0,80}cannot be modified"
        ),
        concern=Concern.THOUGHTS,
    ),
    Shape(
        BreakCause.TOO_LARGE,
        "OpenAI: one text is too long",
        "https://platform.openai.com/docs/guides/error-codes",
        codes=_codes("string_above_max_length"),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.TOO_LARGE,
        "OpenAI: one text is too long",
        "https://platform.openai.com/docs/guides/error-codes",
        _words(r"invalid\W{1,2}\W?(?:messages|input)\S*: string too long"),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "Anthropic, Xiaomi: a message without words",
        _GITHUB + "anthropics/claude-code/issues/61881",
        _words(
            r"text content blocks must (?:be non-empty|contain non-whitespace)|must have non-empty content|content must contain at least one part"
        ),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenAI-compatible servers: arguments of a call that are no JSON",
        _GITHUB + "cymoo/lovia/pull/82",
        _words(
            r"expecting (?:'.'|property name|value).{0,40}: line \d+ column \d+|function\.arguments.{0,60}(?:json|parse)"
        ),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "vLLM, llama.cpp, SGLang, mlx-lm: a chat template's exception (see `templates`), under any status",
        _GITHUB + "idiap/sdialog/issues/122",
        _words(
            r"jinja exception|roles must alternate|system role (?:is )?not supported|single tool-calls at once|multiple tool calls are not supported"
            r"|tool call ids? .{0,100}length (?:of )?9\b|cannot pass both content and thinking"
        ),
        concern=Concern.FIELD,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "llama.cpp, LM Studio: a grammar that cannot be made of the tools",
        _GITHUB + "ggml-org/llama.cpp/issues/25746",
        _words(r"failed to parse grammar|json schema conversion failed"),
        concern=Concern.FIELD,
    ),
    # ------------------------------------------------------------------ what the model wrote, not what it was sent
    Shape(
        BreakCause.UNREADABLE_CALL,
        "Groq, Bedrock: a call that the model wrote and its server cannot read, as a 400 or 424",
        _GITHUB + "groq/groq-typescript/issues/28",
        _words(r"failed to call a function|tool call validation failed|invalid sequence as part of tooluse"),
        _codes("tool_use_failed output_parse_failed"),
    ),
    # ------------------------------------------------------------------ a rate, in words that others have for the window
    Shape(
        BreakCause.RATE_LIMITED,
        "Bedrock, Cerebras: too many tokens for a moment, a minute or a day",
        _GITHUB + "anomalyco/opencode/pull/39621",
        _words(r"too many tokens(?: per \w+)?, please wait|too many tokens processed|throttling ?(?:error|exception)"),
    ),
    # ------------------------------------------------------------------ the window
    Shape(
        BreakCause.TOO_LARGE,
        "Groq (413) and OpenAI (429): larger than a whole minute's allowance, so that waiting cannot help",
        _GITHUB + "continuedev/continue/issues/10218",
        _words(r"request too large for|requested \d+, please reduce your message size"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "OpenAI, Groq, Azure: by its code",
        _GITHUB + "mckaywrigley/chatbot-ui/issues/102",
        codes=_codes("context_length_exceeded context_window_exceeded model_context_window_exceeded"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "llama.cpp: by its type, with 400 or 500",
        _GITHUB + "ggml-org/llama.cpp/pull/15780",
        codes=_codes("exceed_context_size_error"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "OpenAI, vLLM, SGLang, DeepSeek, Together",
        _GITHUB + "crewAIInc/crewAI-examples/issues/121",
        _words(
            r"maximum context length|maximum model length|context length is only|longer than the model's context length"
        ),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Groq",
        _GITHUB + "thepersonalaicompany/amurex-backend/issues/51",
        _words(r"reduce the length of the (?:messages|prompt|input)"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Anthropic, also behind Bedrock and OpenRouter; Ollama",
        _GITHUB + "anthropics/claude-code/issues/12186",
        _words(r"prompt (?:is )?too long|input length and\W{1,3}max_tokens\W{1,3}exceed"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Gemini, Vertex",
        _GITHUB + "google-gemini/gemini-cli/issues/6678",
        _words(r"exceeds the maximum number of tokens|input token count"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "llama.cpp, in words",
        _GITHUB + "ggml-org/llama.cpp/issues/19774",
        _words(
            r"available context size|context size (?:has been )?exceeded|exceed(?:s|ed)? (?:the )?context (?:window|size|length|limit)"
        ),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "ik_llama.cpp, llama-box: the cache in place of the window",
        _GITHUB + "ikawrakow/ik_llama.cpp/issues/1619",
        _words(r"prompt is too big compared to kv size"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "TensorRT-LLM, Triton",
        _GITHUB + "triton-inference-server/tensorrtllm_backend/issues/141",
        _words(r"prompt length \(\d+\) exceeds maximum (?:sequence|input) length"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "LM Studio",
        _GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/546",
        _words(r"tokens when (?:the )?context (?:the )?overflows|greater than the context length"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Bedrock",
        _GITHUB + "aws-samples/assessment-generator/issues/2",
        _words(r"input is too long for|expected maxlength: \d+, actual|too many input tokens"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "text-generation-inference, Together, Hugging Face",
        _GITHUB + "barun-saha/slide-deck-ai/issues/44",
        _words(r"max_new_tokens\W{1,3}must be <=|\binputs\W{1,3}must have less than \d+ tokens"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Moonshot",
        _GITHUB + "MoonshotAI/kimi-cli/issues/2011",
        _words(r"exceeded model token limit|model max length exceeded"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Mistral",
        "https://docs.mistral.ai/api/",
        _words(r"too large for model with \d+ maximum context"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "Ollama",
        _GITHUB + "lfnovo/open-notebook/issues/350",
        _words(r"input (?:length )?exceeds (?:the )?context|exceeded max context length"),
    ),
    Shape(
        BreakCause.CONTEXT_OVERFLOW,
        "xAI, Cohere, Z.ai, MiniMax and others in their words",
        "https://docs.x.ai/docs/models",
        _words(
            r"maximum prompt length|too many tokens|prompt 超长|context window (?:exceeds|exceeded|is)|exceeds (?:the )?(?:max|maximum) (?:context|length|prompt|input)"
            r"|prompt exceeds max length|range of input length should be|total tokens of image and text exceed"
        ),
        _codes("1261"),
    ),
    Shape(
        BreakCause.TOO_LARGE,
        "Bedrock, GitHub, proxies: the body as such",
        _GITHUB + "langchain-ai/langchain-aws/issues/419",
        _words(
            r"request (?:body|entity|payload|size)?\s?(?:is )?too large|payload too large|must have length less than or equal to \d{6,}"
            r"|too large to send natively|request_too_large"
        ),
    ),
    # ------------------------------------------------------------------ filters
    Shape(
        BreakCause.REFUSED,
        "Azure OpenAI: the prompt",
        _GITHUB + "openai/openai-python/issues/331",
        _words(r"content management policy|content filtering policies"),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.REFUSED,
        "Azure OpenAI, OpenAI, DashScope: by code",
        _GITHUB + "camel-ai/owl/issues/432",
        codes=_codes(
            "content_filter content_policy_violation responsibleaipolicyviolation data_inspection_failed datainspectionfailed"
            " moderation_blocked input_moderation prohibited_content image_content_policy_violation"
        ),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.REFUSED,
        "DashScope: in words",
        _GITHUB + "QwenLM/qwen-code/issues/3145",
        _words(r"may contain inappropriate content|datainspectionfailed"),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.REFUSED,
        "OpenRouter's moderation, as a 403; OpenAI; DeepSeek; Z.ai; xAI; MiniMax; Zhipu",
        "https://openrouter.ai/docs/api/reference/errors-and-debugging",
        _words(
            r"requires moderation|input was flagged|flagged as potentially violating|content policy|content exists risk|prompt was (?:blocked|flagged)"
            r"|new_sensitive|content violates usage guidelines|不安全或敏感内容"
            r"|safety system|blocked by (?:our )?(?:content|safety)|usage polic(?:y|ies) violation|potentially unsafe or sensitive content"
        ),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.REFUSED,
        "Portkey: a guardrail, as a 446",
        "https://portkey.ai/docs/product/guardrails",
        codes=_codes("hooks_failed"),
        concern=Concern.MESSAGE,
    ),
    Shape(
        BreakCause.REFUSED,
        "LiteLLM (400, 403 or 500), Bedrock, gateways with guardrails: what a guardrail stopped; not one that itself failed",
        _GITHUB + "BerriAI/litellm/pull/28418",
        _words(
            r"(?:blocked|violat\w+|rejected|stopped|refused|denied|flagged) (?:(?:by|due to|because of) )?(?:(?:an?|the|our|your) )?(?:\w+ )?guardrail"
            r"|guardrail\w*[ _](?:(?:has|was) )?(?:intervened|blocked|violat|triggered)|content (?:was |is )?blocked by"
        ),
        concern=Concern.MESSAGE,
    ),
    # ------------------------------------------------------------------ a server that is not well, and calls it our fault
    Shape(
        BreakCause.SERVER_ERROR,
        "LM Studio: a model that has crashed or gone, as a 400",
        _GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/1347",
        _words(r"model has crashed|model (?:is|was|has been) unloaded"),
    ),
    # ------------------------------------------------------------------ money, rates, places
    Shape(
        BreakCause.RATE_LIMITED,
        "Gemini: a rate, in the words of a quota",
        "https://ai.google.dev/gemini-api/docs/rate-limits",
        _words(r"quota[\s\S]{0,2000}retry in [\d.]+ ?(?:s|ms|m)\b"),
        statuses={429},
    ),
    Shape(
        BreakCause.PAYMENT_REQUIRED,
        "OpenAI: no quota left, as a 429",
        _GITHUB + "langchain-ai/langchainjs/issues/1929",
        codes=_codes(
            "insufficient_quota billing_hard_limit_reached insufficient_balance billing_not_active insufficient_user_quota arrearage"
            " exceeded_current_quota_error access_terminated credits_exhausted pre_consume_token_quota_failed budget_exceeded"
        ),
    ),
    Shape(
        BreakCause.PAYMENT_REQUIRED,
        "OpenAI, Anthropic, DeepSeek, Moonshot, xAI, Fireworks, OpenRouter, Zhipu: no quota or credit left, in words",
        _GITHUB + "continuedev/continue/issues/10410",
        _words(
            r"exceeded your current quota|credit balance is too low|insufficient (?:balance|credits?|funds)|requires more credits|account is (?:not active|in arrears)"
            r"|out of credits|quota (?:is )?exhausted|used all available credits|(?:monthly )?spending limit or failure to pay"
            r"|^key limit exceeded|余额不足|欠费"
        ),
    ),
    Shape(
        BreakCause.REGION,
        "OpenAI, Anthropic, Gemini: where the gateway calls from",
        _GITHUB + "songquanpeng/one-api/issues/1692",
        _words(
            r"(?:country|region|territory|location)\S* (?:is )?not supported|not available in your (?:country|region)"
        ),
    ),
    Shape(
        BreakCause.REGION,
        "OpenAI: where the gateway calls from, by code",
        _GITHUB + "continuedev/continue/issues/11449",
        codes=_codes("unsupported_country_region_territory"),
    ),
    # ------------------------------------------------------------------ models, tools, parameters
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenRouter, Ollama, vLLM: no tools",
        _GITHUB + "ollama/ollama/issues/15857",
        _words(
            r"no endpoints found that support tool|does not support tools|tool choice requires --enable-auto-tool-choice"
            r"|(?:tools?|function calling) (?:is|are) not supported"
        ),
        concern=Concern.FIELD,
    ),
    Shape(
        BreakCause.BAD_REQUEST,
        "OpenAI, Mistral, Groq, Gemini: a field of the request",
        _GITHUB + "editor-code-assistant/eca/issues/231",
        _words(
            r"unrecognized request argument|unknown parameter|unsupported (?:parameter|value)|unknown name|extra inputs are not permitted|invalid schema for function"
            r"|max_tokens\W{1,3}(?:is too large|must be)|max_tokens: \d+ > \d+|is not supported with this model|unknown field"
        ),
        concern=Concern.FIELD,
    ),
    Shape(
        BreakCause.NOT_FOUND,
        "OpenAI, OpenRouter, Anthropic, Ollama, LiteLLM, one-api: no such model",
        "https://platform.openai.com/docs/guides/error-codes",
        _words(
            r"model\W.{0,120}(?:does not exist|not found|is not available)|no endpoints found for|not a valid model id|unknown model|model not exist|no such model"
            r"|invalid model name passed|无可用渠道"
        ),
        statuses={0, 400, 403, 404, 422, 503},
    ),
    Shape(
        BreakCause.NOT_FOUND,
        "OpenAI and others: no such model, by code",
        "https://platform.openai.com/docs/guides/error-codes",
        codes=_codes("model_not_found model_not_available unknown_model model_not_exist invalid_model model_gone 1211"),
    ),
    Shape(
        BreakCause.UNAUTHORISED,
        "Gemini: a key that is not valid, as a 400",
        "https://ai.google.dev/gemini-api/docs/troubleshooting",
        _words(r"api key (?:not valid|expired|is invalid)|invalid api key|incorrect api key|^authentication error$"),
    ),
)


def shape_of(status: int, message: str, codes: Collection[str]) -> Shape | None:
    """The row that fits a refusal; `message` and `codes` in lower case."""
    for shape in SHAPES:
        if shape.statuses and status not in shape.statuses:
            continue
        if any(code in shape.codes for code in codes) or (shape.words is not None and shape.words.search(message)):
            return shape
    return None
