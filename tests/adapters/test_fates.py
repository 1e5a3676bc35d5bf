"""What is known of a call that failed, on each platform: whether it was done, how long to wait, and what is to be put right.

From this follows whether something is sent again and whether it bears a mark; so each answer that a platform gives has its line here.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slack_sdk.errors import SlackApiError, SlackRequestError
from telegram import error as e

from adapters.contract.chat import Cause, Fate
from adapters.discord import port as on_discord
from adapters.discord.library import discord
from adapters.refusing import BROKE_OFF, FAILED, NO_ANSWER, NO_CONNECTION, NO_NAME
from adapters.slack import errors as on_slack
from adapters.telegram import errors as on_telegram
from adapters.telegram.wire import AskedToWait, NotItself

JSON = "application/json"
JSONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
ODD_WAITS = st.sampled_from([None, True, "3", -1, 0, 1e9, [3]]).map(lambda odd: {"retry_after": odd})
UNREACHABLE = aiohttp.ClientConnectorError(cast("Any", SimpleNamespace(host="h", port=1, ssl=True)), OSError("no"))


def because(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "fate", "cause"),
    [
        (because(e.NetworkError("x"), UNREACHABLE), Fate.NOT_SENT, Cause.NONE),
        (because(e.NetworkError("x"), aiohttp.InvalidURL("x")), Fate.NOT_SENT, Cause.NONE),
        (because(e.TimedOut(), aiohttp.ConnectionTimeoutError("slow")), Fate.NOT_SENT, Cause.NONE),
        (because(e.TimedOut(), aiohttp.SocketTimeoutError("slow")), Fate.UNKNOWN, Cause.NONE),
        (because(e.NetworkError("x"), aiohttp.ClientOSError("gone")), Fate.UNKNOWN, Cause.NONE),
        (because(e.NetworkError("x"), aiohttp.ServerDisconnectedError("gone")), Fate.UNKNOWN, Cause.NONE),
        (because(e.NetworkError("x"), aiohttp.ClientPayloadError("gone")), Fate.UNKNOWN, Cause.NONE),
        (e.NetworkError("Bad Gateway"), Fate.UNKNOWN, Cause.NONE),
        (e.TimedOut(), Fate.UNKNOWN, Cause.NONE),
        (e.NetworkError("Request Entity Too Large (413)"), Fate.REFUSED, Cause.FILE),
        (because(e.NetworkError("Cannot connect to host 10.0.0.1:4130"), UNREACHABLE), Fate.NOT_SENT, Cause.NONE),
        (because(e.NetworkError("Payload is too large"), aiohttp.ClientPayloadError("gone")), Fate.UNKNOWN, Cause.NONE),
        (e.BadRequest("Message is too long"), Fate.REFUSED, Cause.TOO_LONG),
        (e.BadRequest("Message is not modified"), Fate.REFUSED, Cause.UNCHANGED),
        (e.BadRequest("Message to be replied not found"), Fate.REFUSED, Cause.FORM),
        (e.BadRequest("Reply message not found"), Fate.REFUSED, Cause.FORM),
        (e.BadRequest("Message to edit not found"), Fate.REFUSED, Cause.NO_MESSAGE),
        (e.BadRequest("something new"), Fate.REFUSED, Cause.OTHER),
        (NotItself(400), Fate.NOT_SENT, Cause.SHIELDED),
        (NotItself(503), Fate.UNKNOWN, Cause.NONE),
        (NotItself(200), Fate.UNKNOWN, Cause.SHIELDED),
        (e.Forbidden("bot was blocked by the user"), Fate.REFUSED, Cause.BLOCKED),
        (e.Forbidden("not enough rights"), Fate.REFUSED, Cause.NO_RIGHTS),
        (e.InvalidToken(), Fate.REFUSED, Cause.NOT_LET_IN),
        (e.ChatMigrated(-100), Fate.REFUSED, Cause.MOVED),
        (AskedToWait(7), Fate.TOO_FAST, Cause.NONE),
        (e.TelegramError("no sense"), Fate.UNKNOWN, Cause.UNREADABLE),
    ],
)
def test_on_telegram(error: Exception, fate: Fate, cause: Cause) -> None:
    found = on_telegram.failure(error)
    assert (found.fate, found.cause) == (fate, cause)
    assert found.moved_to == ("-100" if cause is Cause.MOVED else "")
    assert found.retry_after == (7 if fate is Fate.TOO_FAST else 0)


def slack(status: int, data: object, after: str = "") -> SlackApiError:
    response: Any = SimpleNamespace(status_code=status, data=data, headers={"Retry-After": after})
    return SlackApiError("words", response)


@pytest.mark.parametrize(
    ("error", "fate", "cause"),
    [
        (slack(200, {"error": "ratelimited"}, "9"), Fate.TOO_FAST, Cause.NONE),
        (slack(429, {}, "9"), Fate.TOO_FAST, Cause.NONE),
        (slack(499, {"error": "msg_too_long"}), Fate.REFUSED, Cause.TOO_LONG),
        (slack(500, {"error": "msg_too_long"}), Fate.UNKNOWN, Cause.NONE),
        (slack(503, "unavailable"), Fate.UNKNOWN, Cause.NONE),
        (slack(200, {"error": "fatal_error"}), Fate.UNKNOWN, Cause.NONE),
        (slack(200, {}), Fate.UNKNOWN, Cause.SHIELDED),
        (slack(299, "page"), Fate.UNKNOWN, Cause.SHIELDED),
        (slack(300, "page"), Fate.NOT_SENT, Cause.SHIELDED),
        (slack(403, "page"), Fate.NOT_SENT, Cause.SHIELDED),
        (slack(200, {"error": "channel_not_found"}), Fate.REFUSED, Cause.NO_CHAT),
        (slack(200, {"error": "nobody_knows"}), Fate.REFUSED, Cause.OTHER),
        (slack(200, {"error": "cannot_reply_to_message"}), Fate.REFUSED, Cause.NO_THREAD),
        (slack(200, {"error": "restricted_action_thread_locked"}), Fate.REFUSED, Cause.NO_THREAD),
        (slack(200, {"error": "restricted_action_non_threadable_channel"}), Fate.REFUSED, Cause.NO_THREAD),
        (slack(200, {"error": "restricted_action_read_only_channel"}), Fate.REFUSED, Cause.NO_RIGHTS),
        (slack(200, {"error": "restricted_action_thread_only_channel"}), Fate.REFUSED, Cause.NO_RIGHTS),
        (slack(200, {"error": "ekm_access_denied"}), Fate.REFUSED, Cause.NO_RIGHTS),
        (slack(200, {"error": "team_added_to_org"}), Fate.NOT_SENT, Cause.NONE),
        (slack(200, {"error": "invalid_blocks"}), Fate.REFUSED, Cause.FORM),
        (
            slack(200, {"error": "invalid_blocks", "response_metadata": {"messages": ["no more than 50 characters"]}}),
            Fate.REFUSED,
            Cause.TOO_LONG,
        ),
        (UNREACHABLE, Fate.NOT_SENT, Cause.NONE),
        (aiohttp.ServerDisconnectedError(), Fate.UNKNOWN, Cause.NONE),
        (OSError("gone"), Fate.UNKNOWN, Cause.NONE),
        (TimeoutError(), Fate.UNKNOWN, Cause.NONE),
        (SlackRequestError("gone"), Fate.UNKNOWN, Cause.NONE),
        (ValueError("odd"), Fate.UNKNOWN, Cause.UNREADABLE),
    ],
)
def test_on_slack(error: Exception, fate: Fate, cause: Cause) -> None:
    found = on_slack.failure(error)
    assert (found.fate, found.cause) == (fate, cause)
    assert found.retry_after == (9 if fate is Fate.TOO_FAST else 0)


@pytest.mark.parametrize("after", ["", "soon", "²", "9999999", "-3"])
def test_slack_that_says_no_time_is_given_half_a_minute(after: str) -> None:
    assert on_slack.failure(slack(429, {}, after)).retry_after == on_slack.DEFAULT_PAUSE_SECONDS


def answer(status: int, kind: str = JSON, after: str = "") -> Any:
    headers = {"Content-Type": kind, "Retry-After": after}
    return SimpleNamespace(status=status, reason="r", headers=headers)


def said(status: int, code: int = 0, text: str = "words", kind: str = JSON) -> discord.HTTPException:
    return discord.HTTPException(answer(status, kind), {"code": code, "message": text})


@pytest.mark.parametrize(
    ("error", "fate", "cause"),
    [
        (said(500), Fate.UNKNOWN, Cause.NONE),
        (said(503, kind="text/html"), Fate.UNKNOWN, Cause.NONE),
        (said(499), Fate.REFUSED, Cause.OTHER),
        (said(413, kind="text/html"), Fate.REFUSED, Cause.FILE),
        (said(403, kind="text/html"), Fate.NOT_SENT, Cause.SHIELDED),
        (said(401), Fate.REFUSED, Cause.NOT_LET_IN),
        (said(403), Fate.REFUSED, Cause.NO_RIGHTS),
        (said(403, 50007), Fate.REFUSED, Cause.BLOCKED),
        (said(400, 50008), Fate.REFUSED, Cause.NO_RIGHTS),
        (said(404, 10008), Fate.REFUSED, Cause.NO_MESSAGE),
        (said(400, 50035, "content: Must be 2000 or fewer in length."), Fate.REFUSED, Cause.TOO_LONG),
        (said(400, 50035, "embeds: Must be 10 or fewer in length."), Fate.REFUSED, Cause.FORM),
        (said(400, 50035, "content: odd"), Fate.REFUSED, Cause.FORM),
        (said(429, 30046), Fate.REFUSED, Cause.UNEDITABLE),
        (discord.LoginFailure("no"), Fate.REFUSED, Cause.NOT_LET_IN),
        (because(discord.LoginFailure("no"), said(401, kind="text/html")), Fate.NOT_SENT, Cause.SHIELDED),
        (because(discord.LoginFailure("no"), said(401)), Fate.REFUSED, Cause.NOT_LET_IN),
        (UNREACHABLE, Fate.NOT_SENT, Cause.NONE),
        (aiohttp.ServerDisconnectedError(), Fate.UNKNOWN, Cause.NONE),
        (OSError("gone"), Fate.UNKNOWN, Cause.NONE),
        (TimeoutError(), Fate.UNKNOWN, Cause.NONE),
        (ValueError("odd"), Fate.UNKNOWN, Cause.UNREADABLE),
    ],
)
def test_on_discord(error: Exception, fate: Fate, cause: Cause) -> None:
    found = on_discord.failure(error)
    assert (found.fate, found.cause) == (fate, cause)


LOST: list[tuple[Exception, str]] = [
    (
        aiohttp.ClientConnectorDNSError(cast("Any", SimpleNamespace(host="h", port=1, ssl=True)), OSError("no")),
        NO_NAME,
    ),
    (UNREACHABLE, NO_CONNECTION),
    (aiohttp.ServerDisconnectedError(), BROKE_OFF),
    (TimeoutError(), NO_ANSWER),
]


@pytest.mark.parametrize(("error", "why"), LOST)
def test_how_a_connection_failed_is_said_in_words_and_never_by_a_name_of_python(error: Exception, why: str) -> None:
    told = {on_discord.failure(error).words, on_slack.failure(error).words}
    assert told == {FAILED.format(platform=name, why=why) for name in ("Discord", "Slack")}


def test_telegram_says_it_in_the_same_words() -> None:
    lost = on_telegram.failure(because(e.NetworkError("ClientConnectorError: no"), UNREACHABLE))
    assert lost.words == FAILED.format(platform="Telegram", why=NO_CONNECTION)
    refused = on_telegram.failure(e.NetworkError("Bad Gateway"))
    assert refused.words == FAILED.format(platform="Telegram", why="Bad Gateway")


@pytest.mark.parametrize(("scope", "whole"), [("global", True), ("user", False), ("shared", False)])
def test_discord_says_whose_limit_it_was(scope: str, whole: bool) -> None:
    found = on_discord.failure(discord.RateLimited(3.5), on_discord.Limited(scope))
    assert (found.fate, found.retry_after, found.whole_bot) == (Fate.TOO_FAST, 3.5, whole)
    late = on_discord.failure(discord.HTTPException(answer(429, after="2.5"), "slow"), on_discord.Limited(scope))
    assert (late.fate, late.retry_after, late.whole_bot) == (Fate.TOO_FAST, 2.5, whole)


@given(st.floats(0.001, 90_000), st.sampled_from(["", "1", "60"]))
def test_a_429_of_discord_is_waited_for_as_long_as_its_body_says_whatever_stands_beside_it(
    seconds: float, after: str
) -> None:
    body = orjson.dumps({"message": "slow", "retry_after": seconds, "global": False})
    limited = on_discord.Limited(seconds=on_discord.body_seconds(body))
    late = on_discord.failure(discord.HTTPException(answer(429, after=after), "slow"), limited)
    assert (late.fate, late.retry_after) == (Fate.TOO_FAST, seconds)


@given(st.binary(max_size=60) | (JSONS | ODD_WAITS).map(orjson.dumps))
def test_a_body_that_names_no_wait_names_none(body: bytes) -> None:
    assert on_discord.body_seconds(body) == 0


@pytest.mark.parametrize("after", ["", "soon", "1e9", "-3"])
def test_a_429_of_discords_shield_that_says_no_time_is_a_minute_of_nobody_knows_whom(after: str) -> None:
    found = on_discord.failure(discord.HTTPException(answer(429, after=after), "slow"))
    assert (found.retry_after, found.whole_bot) == (on_discord.CLOUDFLARE_SECONDS, None)


def test_a_message_that_was_changed_too_often_is_no_limit_of_its_chat() -> None:
    """Discord says so with the status of a limit: waited for, all of the chat would wait for one old message."""
    body = orjson.dumps(
        {"code": 30046, "message": "Maximum number of edits to messages older than 1 hour reached.", "retry_after": 4.0}
    )
    limited = on_discord.Limited("shared", on_discord.body_seconds(body), on_discord.body_code(body))
    found = on_discord.failure(discord.RateLimited(4.0), limited)
    assert (found.fate, found.cause) == (Fate.REFUSED, Cause.UNEDITABLE)
    other = replace(limited, code=20028)
    assert on_discord.failure(discord.RateLimited(4.0), other).fate is Fate.TOO_FAST


@given(st.binary(max_size=60) | JSONS.map(orjson.dumps))
def test_a_body_that_names_no_error_names_none(body: bytes) -> None:
    assert on_discord.body_code(body) == 0
