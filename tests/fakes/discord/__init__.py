"""A stand-in for Discord: a server on a free loopback port that speaks the REST API v10 and the gateway, with people in it who can be
made to act. It is made for the library discord.py, which connects to it unchanged; other clients can as well.

    async with DiscordFake() as discord:
        ada = discord.people.user("Ada")
        channel = discord.people.channel(discord.people.guild("Lovelace", ada), "general")
        discord.script(Route.CREATE_MESSAGE, LoseAnswer(), flood(0.3))  # the first arrives unanswered, the second is refused
        with discord.pointed():  # discord.py has class attributes instead of a setting
            task = asyncio.create_task(client.start(discord.token))
            await discord.until_connected()
            question = discord.people.say(channel, ada, "hello")
            answer = await discord.answer_to(question)
            assert answer.text == "hello yourself"
            discord.gateway.cut()  # the connection ends without a word; the library comes back and resumes
            discord.gateway.react(Op.RESUME, Invalid())  # and is told that its session is gone

Limits and errors are those of the real server as far as its documentation and its answers tell them. Fields that the fake does not know
are listed in `Call.ignored`; no success is made up for them, and addresses that it does not know are 404.

Names of routes are in `Route`. Handshakes are routes too, so `script(Route.HANDSHAKE, Answer(503))` refuses one, and a `Pause` lets it
hang. What the gateway can be made to do (close, cut, deafen, invalidate, repeat, hold back, tell nonsense …) are the methods of `Gateway`.
For tests of clients there are a watching client of discord.py in `library.py` and a plain one in `plain.py`.

Order of the echo: a message of the bot is told to the gateway before its POST is answered, as on the server. For the other order, call
`gateway.hold()` before and `gateway.release()` after; to be sure of this order, script `Delay(0.05, after=True)`.

Beside the truth: one bot only, which has the id of its application; frames are not compressed; channels are texts, threads and DMs; no
voice, forums, webhooks of channels, forwarding, polls, stickers, pins, invites; components are rows of buttons and menus, forms have text
fields; persons may do everything everywhere in their guilds; who joins or leaves a thread is not told; limits of IDENTIFYs are counted,
not enforced.
"""

from __future__ import annotations

from tests.fakes.common import ANY, Answer, Call, Delay, Fault, LoseAnswer, Pause, Reset
from tests.fakes.discord.connections import Close, Connection, Cut, Frame, Ignore, Invalid
from tests.fakes.discord.errors import ApiError, Code
from tests.fakes.discord.fake import TOKEN, DiscordFake
from tests.fakes.discord.faults import flood, gateway_page, refusal, server_error, shield_ban
from tests.fakes.discord.forms import Upload
from tests.fakes.discord.gateway import Gateway
from tests.fakes.discord.objects import (
    Callback,
    Channel,
    ChannelKind,
    Flag,
    Guild,
    Interaction,
    InteractionKind,
    Message,
    MessageKind,
    Permission,
    User,
)
from tests.fakes.discord.pointing import pointed
from tests.fakes.discord.rates import LIKE_THE_SERVER, Limit, Rates
from tests.fakes.discord.routes import Route
from tests.fakes.discord.screen import Screen, Shown, ShownFile
from tests.fakes.discord.sessions import PRIVILEGED, CloseCode, Dispatch, Intent, Op, Session

__all__ = [
    "ANY",
    "LIKE_THE_SERVER",
    "PRIVILEGED",
    "TOKEN",
    "Answer",
    "ApiError",
    "Call",
    "Callback",
    "Channel",
    "ChannelKind",
    "Close",
    "CloseCode",
    "Code",
    "Connection",
    "Cut",
    "Delay",
    "DiscordFake",
    "Dispatch",
    "Fault",
    "Flag",
    "Frame",
    "Gateway",
    "Guild",
    "Ignore",
    "Intent",
    "Interaction",
    "InteractionKind",
    "Invalid",
    "Limit",
    "LoseAnswer",
    "Message",
    "MessageKind",
    "Op",
    "Pause",
    "Permission",
    "Rates",
    "Reset",
    "Route",
    "Screen",
    "Session",
    "Shown",
    "ShownFile",
    "Upload",
    "User",
    "flood",
    "gateway_page",
    "pointed",
    "refusal",
    "server_error",
    "shield_ban",
]
