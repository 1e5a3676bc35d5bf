"""Methods that ask: who the app is, who people are, what channels there are and what was said in them. No I/O."""

from __future__ import annotations

import base64
import binascii

from tests.fakes.common import Json, JsonObject
from tests.fakes.slack import checks
from tests.fakes.slack.errors import ApiError, bad
from tests.fakes.slack.objects import Channel, ChannelKind, Message, User
from tests.fakes.slack.params import Params
from tests.fakes.slack.world import APP, TEAM, World

MAX_PAGE = 999
DEFAULT_PAGE = 100


def auth_test(world: World, _: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/auth.test"""
    return {
        "url": f"{world.origin()}/",
        "team": world.team_name,
        "user": world.bot.name,
        "team_id": TEAM,
        "user_id": world.bot.id,
        "bot_id": world.bot.bot_id,
        "is_enterprise_install": False,
    }


def team_info(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/team.info"""
    params.passed("domain", "include_slackbot_availability")
    if params.text("team") not in {"", TEAM}:
        raise ApiError("team_not_found")
    return {"team": {"id": TEAM, "name": world.team_name, "domain": "fake-team"}}


def users_info(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/users.info"""
    user = checks.known_user(world, params.required("user")[0])
    body = user.to_json(TEAM)
    if params.flag("include_locale"):
        body["locale"] = user.locale
    return {"user": body}


def bots_info(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/bots.info"""
    params.passed("team_id")
    name = params.text("bot") or world.bot.bot_id
    bot = next((user for user in world.users.values() if user.is_bot and user.bot_id == name), None)
    if bot is None:
        raise ApiError("bot_not_found")
    return {"bot": _bot_json(bot)}


def _bot_json(bot: User) -> JsonObject:
    return {
        "id": bot.bot_id,
        "deleted": bot.deleted,
        "name": bot.real_name,
        "app_id": bot.app_id or APP,
        "user_id": bot.id,
        "icons": {},
    }


# --- channels ---


def channel_json(world: World, channel: Channel) -> JsonObject:
    """The conversation object."""
    body: JsonObject = {
        "id": channel.id,
        "created": channel.created,
        "is_im": channel.kind is ChannelKind.IM,
        "is_channel": channel.kind is ChannelKind.CHANNEL,
        "is_group": channel.kind is ChannelKind.GROUP,
        "is_mpim": channel.kind is ChannelKind.MPIM,
        "is_private": channel.is_private,
        "is_archived": channel.archived,
        "context_team_id": TEAM,
    }
    if channel.user is not None:
        body.update({"user": channel.user.id, "is_open": True})
    else:
        body.update({"name": channel.name, "name_normalized": channel.name, "is_general": False})
        body.update({"is_member": world.bot.id in channel.members, "is_shared": False, "is_ext_shared": False})
    return body


def conversations_info(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/conversations.info"""
    channel = checks.known_channel(world, params.required("channel")[0])
    body = channel_json(world, channel)
    if params.flag("include_locale"):
        body["locale"] = "en-US"
    if params.flag("include_num_members"):
        body["num_members"] = len(channel.members)
    return {"channel": body}


def conversations_open(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/conversations.open"""
    users = [checks.known_user(world, name) for name in params.names("users")]
    whole = params.flag("return_im")
    if params.has("channel"):
        channel = checks.known_channel(world, params.text("channel"))
    elif len(users) == 1:
        if users[0].is_bot:
            raise ApiError("cannot_dm_bot")
        channel = world.dm(users[0])
    elif users:
        members = [*dict.fromkeys([*(user.id for user in users), world.bot.id])]
        same = [one for one in world.channels.values() if one.kind is ChannelKind.MPIM and one.members == members]
        name = "mpdm-" + "--".join(user.name for user in users)
        made = Channel(world.new_id("G"), ChannelKind.MPIM, name, world.unix(), members=members)
        channel = same[0] if same else made
        world.channels[channel.id] = channel
    else:
        raise ApiError("users_list_not_supplied")
    return {"channel": channel_json(world, channel) if whole else {"id": channel.id}}


def conversations_members(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/conversations.members"""
    channel = checks.known_channel(world, params.required("channel")[0])
    limit = _limit(params)
    start = int(_cursor(params, "member") or 0)
    page: list[Json] = [*channel.members[start : start + limit]]
    more = start + limit < len(channel.members)
    return {"members": page, "response_metadata": {"next_cursor": _token("member", str(start + limit)) if more else ""}}


# --- what was said ---


def _limit(params: Params) -> int:
    limit = params.integer("limit", DEFAULT_PAGE)
    if not 1 <= limit <= MAX_PAGE:
        raise ApiError("invalid_limit")
    return limit


def _token(kind: str, place: str) -> str:
    return base64.b64encode(f"{kind}:{place}".encode()).decode()


def _cursor(params: Params, kind: str) -> str:
    """The place that a cursor names; empty without one."""
    if not params.has("cursor"):
        return ""
    try:
        found, _, place = base64.b64decode(params.text("cursor"), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise ApiError("invalid_cursor") from None
    if found != kind:
        raise ApiError("invalid_cursor")
    return place


def _between(params: Params, messages: list[Message]) -> list[Message]:
    inclusive = params.flag("inclusive")
    oldest, latest = _moment(params, "oldest"), _moment(params, "latest")

    def wanted(message: Message) -> bool:
        ts = message.ts
        if inclusive and ts in {oldest, latest}:
            return True
        return (not oldest or float(ts) > float(oldest)) and (not latest or float(ts) < float(latest))

    return [message for message in messages if wanted(message)]


def _moment(params: Params, name: str) -> str:
    text = params.text(name)
    try:
        return text if not text or float(text) >= 0 else ""
    except ValueError:
        raise ApiError(f"invalid_ts_{name}") from None


def history(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/conversations.history: newest first; answers in threads are not there, but broadcast ones.

    With `oldest` and without `latest` the first page is the one next to `oldest`, and the cursor goes forward in time.
    """
    (name,) = params.required("channel")
    limit = _limit(params)
    metadata = params.flag("include_all_metadata")
    channel = checks.readable_channel(world, name)
    forward = params.has("oldest") and _moment(params, "oldest") not in {"", "0"} and not params.has("latest")
    kind = "later_ts" if forward else "next_ts"
    after = _cursor(params, kind)
    there = [one for one in channel.messages.values() if one.thread_ts is None or one.broadcast]
    there = [one for one in there if not one.deleted or channel.replies(one.ts)]
    found = _between(params, there) if forward else list(reversed(_between(params, there)))
    if after:
        found = [one for one in found if (one.ts >= after if forward else one.ts <= after)]
    page, rest = found[:limit], found[limit:]
    if forward:
        page.reverse()
    body: JsonObject = {
        "messages": [_seen(world, message, metadata=metadata) for message in page],
        "has_more": bool(rest),
        "pin_count": 0,
    }
    if rest:
        body["response_metadata"] = {"next_cursor": _token(kind, rest[0].ts)}
    return body


def replies(world: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/conversations.replies: the first message of the thread, and the answers, oldest first."""
    name, ts = params.required("channel", "ts")
    limit, after = _limit(params), _cursor(params, "next_ts")
    metadata = params.flag("include_all_metadata")
    channel = checks.readable_channel(world, name)
    asked = channel.messages.get(ts)
    if asked is None or (asked.deleted and not channel.replies(ts)):
        raise ApiError("thread_not_found")
    root = channel.messages[asked.root_ts]
    found = _between(params, channel.replies(root.ts))
    if after:
        found = [message for message in found if message.ts >= after]
    page, rest = found[:limit], found[limit:]
    body: JsonObject = {
        "messages": [_seen(world, message, metadata=metadata) for message in [root, *page]],
        "has_more": bool(rest),
    }
    if rest:
        body["response_metadata"] = {"next_cursor": _token("next_ts", rest[0].ts)}
    return body


def _seen(world: World, message: Message, *, metadata: bool) -> JsonObject:
    if not message.deleted:
        return world.message_json(message, metadata=metadata)
    return world.gravestone(message)


def api_test(_: World, params: Params) -> JsonObject:
    """https://docs.slack.dev/reference/methods/api.test"""
    if params.has("error"):
        raise ApiError(params.text("error"))
    if len(params.values) > 50:
        raise bad("too many arguments")
    params.passed(*params.values)
    return {"args": dict(params.values)}
