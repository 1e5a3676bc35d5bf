"""What a failed call to Slack means. Pure.

Sources: https://docs.slack.dev/apis/web-api/rate-limits (429 with ``Retry-After``), the error words of the methods' pages, and
slack_sdk 3: `SlackApiError` with the answer, `SlackRequestError`, aiohttp's errors for connections.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any, cast

import aiohttp

from adapters import refusing
from adapters.contract.chat import CallFailed, Cause, Fate
from adapters.contract.pacing import LONGEST_TOLD_SECONDS

_CAUSES = {
    "message_not_found": Cause.NO_MESSAGE,
    "thread_not_found": Cause.NO_THREAD,
    "cannot_reply_to_message": Cause.NO_THREAD,  # what it began with was deleted, or can have no replies
    "restricted_action_thread_locked": Cause.NO_THREAD,
    "restricted_action_non_threadable_channel": Cause.NO_THREAD,
    "message_deleted": Cause.NO_MESSAGE,
    "invalid_ts": Cause.NO_MESSAGE,
    "bad_timestamp": Cause.NO_MESSAGE,
    "cant_update_message": Cause.UNEDITABLE,
    "is_inactive": Cause.UNEDITABLE,
    "edit_window_closed": Cause.UNEDITABLE,
    "cant_delete_message": Cause.UNEDITABLE,
    "channel_not_found": Cause.NO_CHAT,
    "is_archived": Cause.NO_RIGHTS,
    "not_in_channel": Cause.NO_RIGHTS,
    "restricted_action": Cause.NO_RIGHTS,
    "restricted_action_read_only_channel": Cause.NO_RIGHTS,
    "restricted_action_thread_only_channel": Cause.NO_RIGHTS,
    "ekm_access_denied": Cause.NO_RIGHTS,
    "missing_scope": Cause.NO_RIGHTS,
    "user_not_found": Cause.BLOCKED,
    "user_disabled": Cause.BLOCKED,
    "msg_too_long": Cause.TOO_LONG,
    "msg_blocks_too_long": Cause.TOO_LONG,
    "markdown_text_too_long": Cause.TOO_LONG,
    "file_uploads_disabled": Cause.FILE,
    "file_upload_size_restricted": Cause.FILE,
    "file_uploads_except_images_disabled": Cause.FILE,
    "blocked_file_type": Cause.FILE,
    "storage_limit_reached": Cause.FILE,
    "malware_detected": Cause.FILE,
    "file_not_found": Cause.FILE,
    "no_file_data": Cause.FILE,
    "no_text": Cause.FORM,
    "invalid_blocks": Cause.FORM,
    "invalid_blocks_format": Cause.FORM,
    "invalid_chunks": Cause.FORM,
    "markdown_text_conflict": Cause.FORM,
    "message_not_in_streaming_state": Cause.NOT_GROWING,
    "stopped_by_user": Cause.NOT_GROWING,
    "streaming_state_conflict": Cause.OTHER,
    "invalid_auth": Cause.NOT_LET_IN,
    "not_authed": Cause.NOT_LET_IN,
    "account_inactive": Cause.NOT_LET_IN,
    "token_revoked": Cause.NOT_LET_IN,
    "token_expired": Cause.NOT_LET_IN,
}
_UNKNOWN = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout"})
_MIGRATES = frozenset({"team_added_to_org", "org_login_required", "external_channel_migrating"})
"""The workspace or channel is on its way to another organisation, and takes nothing until it is there."""
_TOO_FAST = frozenset({"ratelimited", "rate_limited"})
"""Both words stand on the pages of the methods (https://docs.slack.dev/reference/methods/chat.postMessage#errors)."""
DEFAULT_PAUSE_SECONDS = 30.0
UNABLE = frozenset(
    word.replace("_", " ")
    for word in (
        "unknown_method", "method_deprecated", "missing_scope", "not_allowed_token_type", "feature_not_enabled",
        "not_authorized", "access_denied", "no_permission", "team_access_not_granted", "agent_not_enabled",
        "app_not_agent", "not_an_agent", "not_supported", "team_not_eligible",
    )
)  # fmt: skip
"""What says that the workspace or the app has no such thing, and not that this one call was wrong."""

OFF = frozenset({"link disabled", "socket mode not enabled", "forbidden team"})
"""There are no sockets for this app, until a person switches them on."""
NOT_FOR_SOCKETS = frozenset({"missing scope", "not allowed token type"})
"""It is not the token that opens them."""


NAME = "Slack"


def failure(error: Exception) -> CallFailed:
    """What is known of a call that raised `error`."""
    from slack_sdk.errors import SlackApiError, SlackRequestError

    match error:
        case SlackApiError():
            return _answered(error)
        case aiohttp.ClientConnectorError():
            return CallFailed(Fate.NOT_SENT, refusing.FAILED.format(platform=NAME, why=refusing.broken(error)))
        case aiohttp.ClientError() | OSError() | asyncio.TimeoutError() | SlackRequestError():
            return CallFailed(Fate.UNKNOWN, refusing.FAILED.format(platform=NAME, why=refusing.broken(error)))
        case _:
            words = refusing.NOT_UNDERSTOOD.format(platform=NAME, what=type(error).__name__)
            return CallFailed(Fate.UNKNOWN, words, cause=Cause.UNREADABLE)


def _answered(error: Any) -> CallFailed:
    response = error.response
    status = int(getattr(response, "status_code", 0) or getattr(response, "status", 0) or 0)
    given: Any = getattr(response, "data", None)  # of what is no JSON the library hands on the bare answer
    data = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    word = str(data.get("error", "")) or f"status {status}"
    if status == 429 or word in _TOO_FAST:
        after = str(response.headers.get("Retry-After", "") or "")
        seconds = float(after) if after.isdecimal() and float(after) <= LONGEST_TOLD_SECONDS else DEFAULT_PAUSE_SECONDS
        return CallFailed(
            Fate.TOO_FAST, refusing.ASKS_TO_WAIT.format(platform=NAME, seconds=f"{seconds:g}"), retry_after=seconds
        )
    if word in _MIGRATES:
        return CallFailed(Fate.NOT_SENT, refusing.ANSWERED_WITH.format(platform=NAME, what=word))
    if status >= 500 or word in _UNKNOWN:
        return CallFailed(Fate.UNKNOWN, refusing.ANSWERED_WITH.format(platform=NAME, what=word))
    if not data.get("error"):  # each of Slack's refusals has one; of a page the library makes an empty object
        words = refusing.NOT_ITSELF.format(platform=NAME, what=status)
        return CallFailed(Fate.UNKNOWN if 200 <= status < 300 else Fate.NOT_SENT, words, cause=Cause.SHIELDED)
    cause = _CAUSES.get(word, Cause.OTHER)
    if cause is Cause.FORM and any(_TOO_LONG.search(line) for line in _explained(data)):
        cause = Cause.TOO_LONG
    words = refusing.NOT_THERE if word == "not_in_channel" else word.replace("_", " ")
    return CallFailed(Fate.REFUSED, words, cause=cause)


_TOO_LONG = re.compile(r"(?:must be less|no more) than \d+ characters|too.long", re.IGNORECASE)


def _explained(data: dict[str, Any]) -> list[str]:
    """What Slack says about blocks that it refuses."""
    more: Any = data.get("response_metadata")
    found: Any = cast("dict[str, Any]", more).get("messages") if isinstance(more, dict) else None
    return [str(line) for line in cast("list[Any]", found)] if isinstance(found, list) else []
