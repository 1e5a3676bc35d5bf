"""The closed set of codes in errors: those of requests that are not served, and, where a turn came to nothing, its exit.

Law (tests/adapters/test_openapi.py): no other code stands in the source.
"""

from __future__ import annotations

from agent_core.failures.exits import ExitCode

REQUESTS = (
    "already_decided", "answer_lost", "approval_gone", "approval_not_found", "completion_not_found", "conversation_busy",
    "conversation_not_found", "expectation_failed", "file_not_found", "idempotency_key_reused", "insufficient_quota", "internal_error", "invalid_api_key",
    "invalid_body", "invalid_header", "invalid_json", "invalid_value", "item_not_found", "link_not_found", "links_off", "mcp_off", "method_not_allowed",
    "model_not_found",
    "no_chat", "not_an_approver", "not_signed", "not_signed_in", "not_started", "nothing_to_show", "overloaded", "previous_response_not_found", "queue_full", "rate_limit_exceeded",
    "request_timeout", "request_too_large", "response_in_progress", "response_not_found", "shutting_down", "storage_full",
    "storage_unavailable", "too_large", "too_many", "too_many_of_one_peer", "too_new", "too_old", "tools_not_allowed", "turn_not_found", "unknown_hook", "unknown_url",
    "unsupported_parameter", "unsupported_value", "wrong_signature",
)  # fmt: skip

CODES = frozenset({*REQUESTS, *(code.value for code in ExitCode)})
