"""A stand-in for Slack: a server on a free loopback port that speaks the Web API, Socket Mode and signed HTTP events, with people in it.

    async with SlackFake() as slack:
        ada = slack.people.user("Ada")
        dm = slack.people.dm(ada)
        client = AsyncWebClient(token=slack.bot_token, base_url=slack.base_url)  # of slack_sdk
        app = AsyncApp(client=client)  # of slack_bolt
        handler = AsyncSocketModeHandler(app, slack.app_token)
        await handler.connect_async()
        slack.script("chat.postMessage", LoseAnswer(), ratelimited(3))  # the first arrives unanswered, the second is refused
        question = slack.people.say(dm, ada, "hello")
        ...
        answer = await slack.answer_to(question)
        assert answer.text == "hello yourself"
        assert slack.told("message")[0].ack_seconds < 3.0
        assert slack.shown(dm, question).status is SessionStatus.ACTIVE

Limits and errors are those of the real server as far as its documentation, and the measurements that people have published, tell them.
What a person reads is what Slack shows: the blocks where there are any, and the text only otherwise. Arguments that the fake does not
know are listed in `Call.ignored`; no success is made up for them. Unknown methods do not exist.

Events are told over the app's sockets, one of them each, until they are acknowledged, at most four times: an app that has no socket
open for long loses some. With `use_http` they go to an address instead.

What befalls connections is said to `sockets`; a connection is known by its number, `latest` is the newest:

    await slack.sockets.disconnect(Farewell.REFRESH)  # or WARNING, or LINK_DISABLED
    slack.sockets.cut()                               # without a word
    slack.sockets.latest.deaf = True                  # takes in neither pings nor acknowledgements; `mute` for the other direction
    ghost = slack.sockets.ghost()                     # takes its share of the events, and nobody is there

Beside the truth: one app in one workspace, no user tokens, no shared channels, no app that is installed twice; edits are allowed for
ever; markdown is not rendered; a text over 40,000 characters is refused and not cut; and names of some errors that no page tells
(such as `session_not_found`) are guesses.
"""

from __future__ import annotations

from tests.fakes.common import ANY, Answer, Call, Delay, Fault, LoseAnswer, Pause, Reset
from tests.fakes.slack.blocks import Button
from tests.fakes.slack.fake import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET, SlackFake
from tests.fakes.slack.faults import (
    fatal_error,
    gateway_page,
    internal_error,
    missing_scope,
    ratelimited,
    refusal,
)
from tests.fakes.slack.objects import (
    Channel,
    ChannelKind,
    Message,
    SessionStatus,
    StreamState,
    Task,
    User,
    View,
)
from tests.fakes.slack.outbox import Attempt, Envelope, Kind, Reason
from tests.fakes.slack.people import Interaction
from tests.fakes.slack.rates import Rates
from tests.fakes.slack.screen import Screen, Shown
from tests.fakes.slack.server import TokenState
from tests.fakes.slack.sockets import Farewell, Socket
from tests.fakes.slack.webhooks import Tamper
from tests.fakes.slack.world import APP, EVENTS, TEAM

__all__ = [
    "ANY",
    "APP",
    "APP_TOKEN",
    "BOT_TOKEN",
    "EVENTS",
    "SIGNING_SECRET",
    "TEAM",
    "Answer",
    "Attempt",
    "Button",
    "Call",
    "Channel",
    "ChannelKind",
    "Delay",
    "Envelope",
    "Farewell",
    "Fault",
    "Interaction",
    "Kind",
    "LoseAnswer",
    "Message",
    "Pause",
    "Rates",
    "Reason",
    "Reset",
    "Screen",
    "SessionStatus",
    "Shown",
    "SlackFake",
    "Socket",
    "StreamState",
    "Tamper",
    "Task",
    "TokenState",
    "User",
    "View",
    "fatal_error",
    "gateway_page",
    "internal_error",
    "missing_scope",
    "ratelimited",
    "refusal",
]
