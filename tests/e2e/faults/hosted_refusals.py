"""What hosted providers say when they do not answer: no money, no room, no such thing; with which status, and inside a 200."""

from __future__ import annotations

import json
import time
from typing import Any

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.playing import FINE, WELL, Fault
from tests.e2e.upstream import HEAD, Reply, delta, end, event, status, text

PAY, RATE, DOWN = ExitCode.PAYMENT_REQUIRED, ExitCode.RATE_LIMITED, ExitCode.PROVIDER_DOWN
IN_FIVE_HOURS = time.time() + 5 * 3600


def no(code: int, body: Any, *headers: str) -> Reply:
    return (status(code, body if isinstance(body, str) else json.dumps(body), *headers),)


def error(message: str, code: Any = None, kind: str = "invalid_request_error", **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def told(
    name: str,
    source: str,
    reply: Reply,
    ends: ExitCode,
    says: str = "",
    *,
    most: int = 1,
    other: ExitCode = ExitCode.ANSWERED,
) -> Fault:
    """Nothing but another model helps."""
    return Fault(name, source, (reply,), says, ends, other=other, most=most)


def passes(name: str, source: str, *replies: Reply, most: int = 2) -> Fault:
    """It is over at the next try."""
    return Fault(name, source, (*replies, FINE), WELL, other_says=WELL, most=most)


TEAM = "Your team 16f2151a has either used all available credits or reached its monthly spending limit. To continue making API requests, please purchase more credits or raise your spending limit."
SUSPENDED = "Account x is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices. Please go to https://fireworks.ai/account/billing for more information."

MONEY: tuple[Fault, ...] = (
    told("a team's credits are used up, as a 429", "continuedev/continue#10373", no(429, {"code": "Some resource has been exhausted", "error": TEAM}), PAY, "credit"),
    told("a team's credits are used up, as a 403", "Anantys-oss/koan#2412", no(403, {"code": "permission-denied", "error": TEAM}), PAY, "credit"),
    told("credits have run out, as a 403", "Wei-Shaw/sub2api#4069", no(403, {"code": "personal-team-blocked:spending-limit", "error": "You have run out of credits or need a Grok subscription. Add credits at https://grok.com/?_s=usage."}), PAY, "credit"),
    told("an account is suspended for its bills, as a 412", "amd/gaia#3766", no(412, {"error": {"message": SUSPENDED, "param": None, "code": "PRECONDITION_FAILED", "type": "error"}}), PAY, "spending limit"),
    told("no balance is left, in Chinese, as a 429", "zhayujie/CowAgent#2910", no(429, {"error": {"code": "1113", "message": "余额不足或无可用资源包,请充值。"}}), PAY),
    told("no balance is left, as a 429", "vercel/ai#9290", no(429, {"error": {"code": "1113", "message": "Insufficient balance or no resource package. Please recharge."}}), PAY),
    told("no balance is left, as a 500", "MiniMax-AI/MiniMax-M2#62", no(500, {"type": "error", "error": {"type": "api_error", "message": "insufficient balance (1008)"}, "request_id": "0599"}), PAY),
    told("no balance is left, as another 429", "modelscope/modelscope#1691", no(429, {"error": {"http_code": "429", "message": "insufficient balance (1008)", "type": "insufficient_balance_error"}, "request_id": "x"}), PAY),
    told("no balance is left, as a 200 without choices", "adrianlyjak/obsidian-aloud-tts#114", no(200, {"id": "0", "choices": None, "created": 0, "model": "MiniMax-M2", "usage": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}), PAY),
    told("no balance is left, as an event without choices", "adrianlyjak/obsidian-aloud-tts#114", (HEAD, event({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}})), PAY),
    told("no balance is left, by its code", "Wei-Shaw/sub2api#890", no(403, {"code": "INSUFFICIENT_BALANCE", "message": "Insufficient account balance"}), PAY),
    told("no balance is left, and the code says that the request is wrong", "666ghj/BettaFish#286", no(402, error("Insufficient Balance", "invalid_request_error", "unknown_error")), PAY),
    told("the credits do not pay for so many tokens", "astrio-labs/forall#76", no(402, {"error": {"message": "This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 2666.", "code": 402, "metadata": {"provider_name": None}}, "user_id": "user_x"}), PAY),
    told("the credits do not pay for such a prompt", "continuedev/continue#10962", no(402, {"error": {"message": "Prompt tokens limit exceeded: 69120 > 36608. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account", "code": 402}}), PAY),
    told("the limit of a key is reached, as a 403", "RooCodeInc/Roo-Code#515", no(403, {"error": {"message": "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys", "code": 403}}), PAY, "Key limit"),
)  # fmt: skip

RATES: tuple[Fault, ...] = (
    passes("too many tokens for a moment are no overflow", "anomalyco/opencode#39621", no(429, {"message": "Too many tokens, please wait before trying again."})),
    told("too many tokens for a day are no overflow", "anomalyco/opencode#13018", no(429, {"message": "Too many tokens per day, please wait before trying again."}), RATE, most=4),
    told("too many tokens for a minute are no overflow", "anomalyco/opencode#7463", no(429, {"message": "Tokens per minute limit exceeded - too many tokens processed.", "type": "too_many_tokens_error", "param": "quota", "code": "token_quota_exceeded"}), RATE, most=4),
    passes("a throttle names itself and comes as a 400", "NousResearch/hermes-agent#70394", no(400, {"message": "Throttling error: Too many tokens, please wait before trying again."})),
    passes("too many requests in a second", "explyt/explyt#35", no(429, {"message": "Requests per second limit exceeded - too many requests sent.", "type": "too_many_requests_error", "param": "quota", "code": "request_quota_exceeded"})),
    passes("too many requests at once", "kaitranntt/ccs#402", no(429, {"error": {"code": "1302", "message": "High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits"}})),
    told("a plan is used up for hours, in Chinese", "dirge-code/dirge#818", no(429, {"error": {"code": "1308", "message": "已达到 5 小时的使用上限。您的限额将在 2026-08-25 07:41:44 重置。"}}), RATE, most=4),
    told("a plan is used up until a time that is named", "LionSR/TeXRA#9865", no(429, {"error": {"code": "1316", "message": "Usage limit reached for 5 hour. Resets at " + time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(IN_FIVE_HOURS))}}), RATE, "4 h "),
    told("the free requests of a day are used up", "Gitlawb/openclaude#936", no(429, {"error": {"message": "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock 1000 free model requests per day", "code": 429, "metadata": {"headers": {"X-RateLimit-Limit": "50", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(round(IN_FIVE_HOURS * 1000))}}}, "user_id": "u"}), RATE, "4 h "),
    passes("a tier has no room, as a 498", "https://console.groq.com/docs/flex-processing", no(498, error("Flex tier capacity exceeded", "capacity_exceeded", "capacity_exceeded"))),
    passes("a model is busy", "truefoundry/models#862", no(429, {"error": {"message": "Model busy, retry later"}})),
    passes("a tier has no room for a model", "continuedev/continue#6185", no(429, {"object": "error", "message": "Service tier capacity exceeded for this model.", "type": "invalid_request_error", "param": None, "code": None})),
    passes("a rate is exceeded", "cline/cline#9085", no(429, {"object": "error", "message": "Rate limit exceeded", "type": "rate_limited", "param": None, "code": "1300", "raw_status_code": 429})),
    passes("no capacity is there, as a 429 in a list", "decolua/9router#1106", no(429, [{"error": {"code": 429, "message": "No capacity available for model gemini-3-flash-preview on the server", "status": "RESOURCE_EXHAUSTED", "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "MODEL_CAPACITY_EXHAUSTED"}]}}])),
    passes("no capacity is there, as a 503", "google-gemini/gemini-cli#23520", no(503, {"error": {"code": 503, "details": [{"reason": "MODEL_CAPACITY_EXHAUSTED"}], "message": "No capacity available for model on the server", "status": "UNAVAILABLE"}})),
    passes("the provider itself cancels, as a 499", "googleapis/python-genai#2506", no(499, [{"error": {"code": 499, "message": "The operation was cancelled.", "errors": [{"message": "The operation was cancelled.", "domain": "global", "reason": "backendError"}], "status": "CANCELLED"}}])),
    passes("the provider is overloaded, as an event of its kind", "https://docs.anthropic.com/en/api/errors", (HEAD, b"event: error\n" + event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "req_1"}))),
    passes("its proxy waited a hundred seconds", "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/error-524/", (status(524, "<!DOCTYPE html><html><title>524: A timeout occurred</title></html>", kind="text/html"),)),
    passes("its door waited half a minute", "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html", no(504, {"message": "Endpoint request timed out"})),
    passes("it is to be slower", "https://platform.openai.com/docs/guides/error-codes", no(503, error("Slow down", "slow_down", "server_error"))),
)  # fmt: skip

AMID: tuple[Fault, ...] = (
    Fault("the provider becomes unavailable in the middle", "diegosouzapw/OmniRoute#4177", ((HEAD, text("All is "), event({"error": {"code": 503, "message": "The service is currently unavailable.", "status": "UNAVAILABLE"}})), (HEAD, text("well."), end())), WELL),
    Fault("a quota ends in the middle", "diegosouzapw/OmniRoute#4177", ((HEAD, text("All is "), event({"error": {"code": 429, "message": "Resource has been exhausted (e.g. check quota).", "status": "RESOURCE_EXHAUSTED"}})), (HEAD, text("well."), end())), WELL),
    told("a quota is exceeded, says a stream and ends in order", "apache/rocketmq-dashboard#2178", (HEAD, event({"error": {"message": "quota exceeded"}}), event(b"[DONE]")), ExitCode.BROKEN_BEFORE_TEXT, "quota exceeded", most=4),
    Fault("the window is full, says a stream in capitals", "vercel/ai#17279", ((HEAD, event({"error": {"message": "Context length exceeded", "code": "CONTEXT_LENGTH_EXCEEDED"}})), FINE), WELL),
    Fault("what was written is inappropriate, says the provider in the middle", "https://help.aliyun.com/zh/model-studio/error-code", ((HEAD, text("All is "), event({"error": {"code": "data_inspection_failed", "message": "Output data may contain inappropriate content.", "type": "data_inspection_failed"}})),), "filter", ExitCode.REFUSED_MIDWAY, other=ExitCode.REFUSED_MIDWAY),
    Fault("a filter of the prompt ends a stream that had begun", "https://learn.microsoft.com/azure/ai-foundry/openai/concepts/content-filter", ((HEAD, delta(role="assistant", content=""), event({"error": {"message": "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.", "code": "content_filter", "status": 400}})),), "", ExitCode.REFUSED),
    Fault("the key is not valid any more, says a stream in the middle", "https://openrouter.ai/docs/api/reference/errors-and-debugging", ((HEAD, text("All is "), event({"error": {"code": 401, "message": "User not found."}})),), "cut short", ExitCode.BROKEN_IN_TEXT),
)  # fmt: skip

NOTHING: tuple[Fault, ...] = (
    told("the input is sensitive, as a 422", "esengine/DeepSeek-Reasonix#6818", no(422, {"type": "error", "error": {"type": "invalid_request_error", "message": "input new_sensitive (1026)"}}), ExitCode.REFUSED),
    told("the output is sensitive, as a 200 without choices", "esengine/DeepSeek-Reasonix#6818", no(200, {"choices": None, "output_sensitive": True, "base_resp": {"status_code": 1027, "status_msg": "output new_sensitive"}}), ExitCode.REFUSED),
    told("the input or the output is unsafe, in Chinese", "https://docs.bigmodel.cn/cn/api/api-code", no(400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容,请您避免输入易产生敏感内容的提示语,感谢您的配合"}, "contentFilter": [{"level": 1, "role": "user"}]}), ExitCode.REFUSED),
    told("the request is a high risk", "https://platform.moonshot.ai/docs/api/chat", no(400, {"error": {"message": "The request was rejected because it was considered high risk", "type": "content_filter"}}), ExitCode.REFUSED),
    told("the words are against the rules for use, as a 403", "UKGovernmentBEIS/inspect_ai#2267", no(403, {"code": "The caller does not have permission to execute the specified operation", "error": "Content violates usage guidelines. Team: x, API key ID: y, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"}), ExitCode.REFUSED),
    told("a model is retired", "getkimchi/kimchi#1176", no(410, {"error": {"code": 410, "type": "model_gone", "message": "Model kimi-k2.5 has been retired.", "replacement": "kimi-k3"}}), ExitCode.MODEL_NOT_FOUND, "retired"),
    told("a model is not there, in Chinese", "https://docs.bigmodel.cn/cn/api/api-code", no(400, {"error": {"code": "1211", "message": "模型不存在，请检查模型代码。"}}), ExitCode.MODEL_NOT_FOUND),
    told("the prompt is too long, in Chinese", "https://docs.bigmodel.cn/cn/api/api-code", no(400, {"error": {"code": "1261", "message": "Prompt 超长"}}), ExitCode.CONTEXT_OVERFLOW, most=4),
    told("nobody serves a model under the rules for data", "truefoundry/models#826", no(404, {"error": {"message": "No endpoints available matching your guardrail restrictions and data policy. Configure: https://openrouter.ai/settings/privacy", "code": 404}}), ExitCode.MODEL_NOT_FOUND, "data policy"),
    told("the gateway's key is wrong", "anomalyco/opencode#32051", no(401, {"result": None, "success": False, "errors": [{"code": 10000, "message": "Authentication error"}], "messages": []}), ExitCode.NOT_AUTHORISED),
    told("the gateway knows no such path", "anomalyco/opencode#23773", no(404, {"result": None, "success": False, "errors": [{"code": 7003, "message": "Could not route to /client/v4/accounts/x/ai/v1/chat/completions, perhaps your object identifier is invalid?"}], "messages": []}), ExitCode.MODEL_NOT_FOUND),
    told("the provider does not serve the country", "https://ai.google.dev/gemini-api/docs/troubleshooting", no(400, [{"error": {"code": 400, "message": "User location is not supported for the API use.", "status": "FAILED_PRECONDITION"}}]), ExitCode.NOT_AUTHORISED, "country"),
    told("the gateway refuses inside a 200", "anomalyco/opencode#32051", no(200, {"result": None, "success": False, "errors": [{"code": 10000, "message": "Authentication error"}], "messages": []}), ExitCode.NOT_AUTHORISED),
)  # fmt: skip

REFUSALS: tuple[Fault, ...] = (*MONEY, *RATES, *AMID, *NOTHING)
