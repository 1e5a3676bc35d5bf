"""What stands between: relays, proxies, load balancers and their pages."""

from __future__ import annotations

import json

from agent_core.failures.exits import ExitCode
from tests.e2e.faults.local import FINE, local, refuse
from tests.e2e.faults.playing import Fault
from tests.e2e.upstream import HEAD, Wait, end, event, status, text

_CLOUDFLARE = "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-5xx-errors/"
_ALB = "https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-troubleshooting.html"
_NGINX = "https://nginx.org/en/docs/http/ngx_http_proxy_module.html"
_HAPROXY = "https://docs.haproxy.org/3.0/configuration.html#8.5"
_ENVOY = "https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage"


def page(code: int, title: str, *headers: str, by: str = "nginx/1.25.3") -> bytes:
    body = f"<html>\r\n<head><title>{code} {title}</title></head>\r\n<body>\r\n<center><h1>{code} {title}</h1></center>\r\n<hr><center>{by}</center>\r\n</body>\r\n</html>\r\n"
    return status(code, body, *headers, kind="text/html")


def cloudflare(code: int, title: str) -> bytes:
    body = f'<!DOCTYPE html>\n<!--[if lt IE 7]> <html class="no-js ie6 oldie" lang="en-US"> <![endif]-->\n<head><title>example.com | {code}: {title}</title></head><body><div id="cf-wrapper">Error code {code}</div></body></html>'
    return status(code, body, "Server: cloudflare", "CF-RAY: 8a-FRA", kind="text/html; charset=UTF-8")


def mended(name: str, source: str, reply: bytes) -> Fault:
    """It is there once, and gone."""
    return local(name, source, ((reply,), FINE), asked=2)


PAGES: tuple[Fault, ...] = (
    *(mended(f"Cloudflare says {code}, {title}", _CLOUDFLARE, cloudflare(code, title)) for code, title in (
        (520, "Web server is returning an unknown error"), (521, "Web server is down"), (522, "Connection timed out"),
        (523, "Origin is unreachable"), (524, "A timeout occurred"), (530, "Origin DNS error"))),
    local("Cloudflare always says 524", "Wei-Shaw/sub2api#3544", ((cloudflare(524, "A timeout occurred"),),), ends=ExitCode.PROVIDER_DOWN, says="HTTP 524"),
    local("Cloudflare has no good certificate from the server", _CLOUDFLARE, ((cloudflare(526, "Invalid SSL certificate"),),), ends=ExitCode.PROVIDER_DOWN, says="HTTP 526"),
    local("Cloudflare wants to see a person", "https://developers.cloudflare.com/cloudflare-challenges/", ((status(403, "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>", "cf-mitigated: challenge", kind="text/html"),),), ends=ExitCode.PROVIDER_DOWN),
    local("Cloudflare limits the rate with a page", "https://developers.cloudflare.com/support/troubleshooting/http-status-codes/cloudflare-1xxx-errors/error-1015/", ((status(429, "error code: 1015", "Retry-After: 1", kind="text/plain; charset=UTF-8"),), FINE), asked=2),
    mended("nginx says 502", "vybestack/llxprt-code#1180", page(502, "Bad Gateway")),
    mended("nginx says 504 after a minute", "BerriAI/litellm#9551", page(504, "Gateway Time-out")),
    mended("OpenResty says 504", "Valian/docker-nginx-auto-ssl#30", page(504, "Gateway Time-out", by="openresty/1.15.8.1")),
    mended("nginx says 503", _NGINX, page(503, "Service Temporarily Unavailable")),
    mended("nginx says 500", _NGINX, page(500, "Internal Server Error")),
    local("nginx takes no large bodies", "https://nginx.org/en/docs/http/ngx_http_core_module.html#client_max_body_size", ((page(413, "Request Entity Too Large"),),), ends=ExitCode.REQUEST_TOO_LARGE),
    local("nginx knows no such place", _NGINX, ((page(404, "Not Found"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("nginx takes no POST there", _NGINX, ((page(405, "Not Allowed"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("nginx wants a password", "https://nginx.org/en/docs/http/ngx_http_auth_basic_module.html", ((page(401, "Authorization Required", 'WWW-Authenticate: Basic realm="x"'),),), ends=ExitCode.PROVIDER_DOWN),
    mended("an AWS load balancer has no good target", _ALB, page(502, "Bad Gateway", by="awselb/2.0")),
    mended("an AWS load balancer has no target", _ALB, page(503, "Service Temporarily Unavailable", by="awselb/2.0")),
    mended("an AWS load balancer waited a minute", _ALB, page(504, "Gateway Time-out", by="awselb/2.0")),
    mended("an AWS load balancer answers 561", _ALB, page(561, "Authentication Error", by="awselb/2.0")),
    mended("HAProxy has no server", _HAPROXY, status(503, "<html><body><h1>503 Service Unavailable</h1>\nNo server is available to handle this request.\n</body></html>\n", kind="text/html")),
    mended("HAProxy waited too long for the request", _HAPROXY, status(408, "<html><body><h1>408 Request Time-out</h1>\nYour browser didn't send a complete request in time.\n</body></html>\n", kind="text/html")),
    mended("Envoy has no healthy upstream", "chengtx809/OneLine#28", status(503, "no healthy upstream", kind="text/plain")),
    mended("Envoy's upstream hangs up", _ENVOY, status(503, "upstream connect error or disconnect/reset before headers. reset reason: connection termination", kind="text/plain")),
    mended("Envoy's upstream takes too long", _ENVOY, status(504, "upstream request timeout", kind="text/plain")),
    mended("Varnish says 503 with a time", "vulnerability-lookup/vulnerability-lookup#621", status(503, "<!DOCTYPE html><html><head><title>503 Backend fetch failed</title></head></html>", "Retry-After: 1", "server: Varnish", kind="text/html")),
    mended("Traefik has no backend", "https://doc.traefik.io/traefik/getting-started/faq/", status(502, "Bad Gateway", kind="text/plain; charset=utf-8")),
    local("Traefik knows no such host", "https://doc.traefik.io/traefik/getting-started/faq/", ((status(404, "404 page not found\n", kind="text/plain; charset=utf-8"),),), ends=ExitCode.MODEL_NOT_FOUND),
    mended("Caddy has no backend and no words", "https://caddyserver.com/docs/caddyfile/directives/reverse_proxy", status(502)),
    local("nginx cuts the stream after a silence", "oasm-platform/open-asm#451", ((HEAD, text("All is "), Wait(0.3)), (HEAD, text("well."), end()))),
    local("a page comes behind the text", "shuv1337/oc-web#143", ((HEAD, text("All is "), b"<html><body><h1>502 Bad Gateway</h1></body></html>"), (HEAD, text("well."), end()))),
    local("a page is served as a stream", "shuv1337/oc-web#143", ((status(200, "<!DOCTYPE html><html><body>Sign in</body></html>", kind="text/event-stream"),),), ends=ExitCode.PROVIDER_GARBAGE),
    local("a sign-in page is served in place of the API", "https://www.rfc-editor.org/rfc/rfc8910", ((status(200, "<html><body>Welcome to the hotel's network</body></html>", kind="text/html"),),), ends=ExitCode.PROVIDER_GARBAGE),
)  # fmt: skip

RELAYS: tuple[Fault, ...] = (
    local("one-api has no channel for the model", "songquanpeng/one-api#2340", ((refuse(503, "当前分组 default 下对于模型  无可用渠道 (request id: 2025121521151664761470129816750)", "one_api_error"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("new-api has no channel for the model", "QuantumNous/new-api#6549", ((refuse(503, "No available channel for model gpt-9 under group default (distributor) (request id: 1)", "new_api_error", code="model_not_found"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("one-api hides what its upstream said", "songquanpeng/one-api#1048", ((refuse(400, "bad response status code 400 (request id: 20240227161933898104780359240)", "upstream_error", param="400", code="bad_response_status_code"),),), ends=ExitCode.BAD_REQUEST),
    local("one-api hides a failure of its upstream", "songquanpeng/one-api#1048", ((refuse(502, "bad response status code 502 (request id: 1)", "upstream_error", param="502", code="bad_response_status_code"),), FINE), asked=2),
    local("one-api's user has no quota left", "https://github.com/songquanpeng/one-api/blob/main/relay/controller/helper.go", ((refuse(403, "user quota is not enough", "one_api_error", code="insufficient_user_quota"),),), ends=ExitCode.PAYMENT_REQUIRED),
    local("one-api's key has no quota left", "https://github.com/songquanpeng/one-api/blob/main/relay/controller/helper.go", ((refuse(403, "令牌额度不足", "one_api_error", code="pre_consume_token_quota_failed"),),), ends=ExitCode.PAYMENT_REQUIRED),
    local("one-api's key has expired", "https://github.com/songquanpeng/one-api/blob/main/model/token.go", ((refuse(401, "该令牌已过期 (request id: 1)", "one_api_error"),),), ends=ExitCode.NOT_AUTHORISED),
    local("sub2api has no account", "Wei-Shaw/sub2api#593", ((status(503, json.dumps({"error": {"message": "No available accounts: no available accounts", "type": "api_error"}, "type": "error"})),), FINE), asked=2),
    local("sub2api never has an account", "Wei-Shaw/sub2api#718", ((status(503, json.dumps({"error": {"message": "No available accounts: no available accounts", "type": "api_error"}, "type": "error"})),),), ends=ExitCode.PROVIDER_DOWN),
    local("sub2api sends pings for a while and then an error", "Wei-Shaw/sub2api#4308", ((HEAD, b": ping\n\n", Wait(0.1), b": ping\n\n", b'event: error\ndata: {"error":{"type":"upstream_error","message":"Upstream request failed"}}\n\n'), FINE), asked=2),
    local("OmniRoute's stream ends before anything", "diegosouzapw/OmniRoute#3089", ((status(502, json.dumps({"error": {"message": "Stream ended before producing useful content", "type": "stream_early_eof", "code": "STREAM_EARLY_EOF"}})),), FINE), asked=2),
    local("octopus has no key that is not cooling down", "lingyuins/octopus#77", ((refuse(502, "no available channel", "server_error"),), FINE), asked=2),
    local("gpt-load has no candidate", "tbphp/gpt-load#528", ((refuse(503, "No available upstream candidate.", "no_available_candidate"),),), ends=ExitCode.PROVIDER_DOWN),
    local("LiteLLM's deployments all cool down", "https://docs.litellm.ai/docs/routing", ((refuse(429, "No deployments available for selected model, Try again in 1 seconds. Passed model=m. pre-call-checks=False, cooldown_list=['x']", "None", code="429"),), FINE), asked=2),
    local("LiteLLM's own key is over its budget", "https://docs.litellm.ai/docs/proxy/users", ((refuse(400, "Budget has been exceeded! Current cost: 11.2, Max budget: 10.0", "budget_exceeded", code="400"),),), ends=ExitCode.PAYMENT_REQUIRED),
    local("LiteLLM does not know the model", "https://docs.litellm.ai/docs/proxy/debugging", ((refuse(400, "/chat/completions: Invalid model name passed in model=gpt-9. Call `/v1/models` to view available models for your key.", "invalid_request_error", code="400"),),), ends=ExitCode.MODEL_NOT_FOUND),
    local("LiteLLM does not know the key", "https://docs.litellm.ai/docs/proxy/virtual_keys", ((refuse(401, "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...3456, Key Hash (Token) =abc.", "token_not_found_in_db", code="401"),),), ends=ExitCode.NOT_AUTHORISED),
    local("LiteLLM's stream breaks with an error behind the text", "BerriAI/litellm#40404", ((HEAD, text("All is "), event({"error": {"message": "litellm.APIConnectionError: APIConnectionError: OpenAIException - Response payload is not completed", "type": None, "param": None, "code": "500"}})), (HEAD, text("well."), end()))),
    local("LiteLLM could not fall back in the stream", "BerriAI/litellm#29808", ((HEAD, event({"error": {"message": "litellm.MidStreamFallbackError: litellm.RateLimitError: VertexAIException - {\"error\": {\"code\": 429, \"message\": \"Resource exhausted\", \"status\": \"RESOURCE_EXHAUSTED\"}}", "type": None, "param": None, "code": "429"}})), FINE), asked=2),
    local("Portkey's guardrail refuses the request", "https://portkey.ai/docs/product/guardrails", ((status(446, json.dumps({"error": {"message": "The guardrail checks defined in the config failed. You can find more information in the `hook_results` object.", "type": "hooks_failed", "param": None, "code": None}, "hook_results": {}})),),), ends=ExitCode.REFUSED),
    local("Helicone limits the rate", "https://docs.helicone.ai/features/advanced-usage/custom-rate-limits", ((status(429, json.dumps({"message": "Rate limit reached. Please wait before making more requests."}), "Helicone-RateLimit-Remaining: 0"),), FINE), asked=2),
    local("FastChat's worker is busy", "https://github.com/lm-sys/FastChat/blob/main/fastchat/constants.py", ((HEAD, event({"text": "**NETWORK ERROR DUE TO HIGH TRAFFIC. PLEASE REGENERATE OR REFRESH THIS PAGE.**\n\n(error_code: 50001)", "error_code": 50001}), event(b"[DONE]")), FINE), asked=2),
)  # fmt: skip
