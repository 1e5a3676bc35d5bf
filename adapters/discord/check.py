"""Looks at a Discord bot from outside, and sets one up by looking: its token, its intents, its servers, its way to the gateway. Changes nothing.

The websocket is opened only as far as Discord's HELLO: without an IDENTIFY no session begins, so a running bot is not disturbed.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urlencode

from adapters.checks.findings import Finding, Seen, note, ok, problem, warning
from adapters.checks.probe import NoReply, Probe, ServerReply, greeting, odd, unreachable
from adapters.contract.platforms import PAIRING, Asker, SetupResult, asked_token
from adapters.contract.settings import revealed
from adapters.discord.section import DiscordSection
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

API = "https://discord.com/api/v10"
PORTAL = "https://discord.com/developers/applications"
AGENT = "DiscordBot (outspoken, 1)"
PERMISSIONS = 309237763136
"""View channels, send messages, send in threads, create public threads, read history, add reactions, attach files, embed links."""
CONTENT_FLAGS = (1 << 18) | (1 << 19)
"""Message Content Intent, for large bots and for small ones (https://discord.com/developers/docs/resources/application)."""
FEW_STARTS = 20
"""Discord resets the token of a bot that begins too many sessions in a day."""
HELLO = 10
PROXY_KEY, ADDRESS_KEY = "[discord] proxy", "[discord] api_base"


@dataclass(frozen=True, slots=True)
class DiscordSeen(Seen):
    """What is known of the bot now."""

    application: str = ""
    """The application's id; empty if the token is not good."""
    name: str = ""

    @property
    def invite(self) -> str:
        """The address that invites the bot into a server."""
        return invite_url(self.application) if self.application else ""


def invite_url(application: str) -> str:
    """The address at which an administrator lets the bot into a server."""
    query = {"client_id": application, "scope": "bot applications.commands", "permissions": str(PERMISSIONS)}
    return f"https://discord.com/oauth2/authorize?{urlencode(query)}"


async def check(settings: DiscordSection) -> DiscordSeen:
    """Ask Discord about the bot. Never raises for what Discord or the network does."""
    line = Probe("Discord", proxy=settings.proxy)
    base = (settings.api_base or API).rstrip("/")
    headers = {"Authorization": f"Bot {revealed(settings.token)}", "User-Agent": AGENT}
    application = await line.ask("GET", f"{base}/applications/@me", headers)
    # A server that has only what the library asks for
    if isinstance(application, ServerReply) and application.status == 404:
        application = await line.ask("GET", f"{base}/oauth2/applications/@me", headers)
    first = judged_application(application)
    number = (
        str(application.table.get("id", ""))
        if isinstance(application, ServerReply) and application.status == 200
        else ""
    )
    if not number:
        return DiscordSeen(first, line.skew_seconds)
    guilds, gateway = await asyncio.gather(
        line.ask("GET", f"{base}/users/@me/guilds?limit=1", headers), line.ask("GET", f"{base}/gateway/bot", headers)
    )
    assert isinstance(application, ServerReply)
    findings = [*first, *judged_guilds(guilds, number), *judged_starts(gateway)]
    address = settings.gateway_url or _url(gateway)
    if address:
        url = f"{address}{'&' if '?' in address else '?'}v=10&encoding=json"
        findings.append(judged_hello(await greeting(url, "the gateway", settings.proxy)))
    return DiscordSeen(tuple(findings), line.skew_seconds, number, str(application.table.get("name", "")))


def judged_application(reply: ServerReply | NoReply) -> tuple[Finding, ...]:
    """What ``GET /applications/@me`` says of token and intents."""
    if isinstance(reply, NoReply):
        return (unreachable("discord.reach", "Discord", reply, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY),)
    if reply.status in (401, 403) and reply.table:
        return (
            problem(
                "discord.token",
                "Discord does not know the bot's token.",
                "Developer Portal, your application, Bot, Reset Token; then: outspoken setup discord.",
                PORTAL,
            ),
        )
    number = reply.table.get("id")
    if reply.status != 200 or not isinstance(number, str):
        return (odd("discord.reach", "Discord", reply),)
    token = ok("discord.token", f"Discord knows the bot: {reply.table.get('name', number)}.")
    flags = reply.table.get("flags")
    if not isinstance(flags, int):
        fix = "Look yourself: Developer Portal, Bot, Privileged Gateway Intents, Message Content Intent."
        return (token, note("discord.intent", "Discord did not say which intents are on.", fix, _bot_page(number)))
    if flags & CONTENT_FLAGS:
        return (token, ok("discord.intent", "The Message Content Intent is on."))
    return (
        token,
        problem(
            "discord.intent",
            "The bot may not read what people write: the Message Content Intent is off.",
            "Developer Portal, your application, Bot, Privileged Gateway Intents: switch on Message Content Intent, and Save Changes.",
            _bot_page(number),
        ),
    )


def judged_guilds(reply: ServerReply | NoReply, application: str) -> tuple[Finding, ...]:
    """Whether the bot is in a server at all."""
    if not isinstance(reply, ServerReply) or reply.status != 200 or not isinstance(reply.body, list):
        return ()
    if reply.body:
        return (ok("discord.servers", "The bot is in a server."),)
    fix = "Open this address and choose your server."
    return (note("discord.servers", "The bot is in no server yet.", fix, invite_url(application)),)


def judged_starts(reply: ServerReply | NoReply) -> tuple[Finding, ...]:
    """How many sessions may still begin today."""
    limit = reply.table.get("session_start_limit") if isinstance(reply, ServerReply) else None
    remaining = limit.get("remaining") if isinstance(limit, dict) else None
    if not isinstance(remaining, int) or remaining >= FEW_STARTS:
        return ()
    what = f"Only {remaining} more connections may begin today; Discord resets the token of a bot that begins too many."
    return (warning("discord.starts", what, "Find out why the bot connects so often: outspoken status, and the log."),)


def judged_hello(frame: Json | NoReply) -> Finding:
    """What the gateway's first frame says."""
    if isinstance(frame, NoReply):
        return unreachable(
            "discord.gateway", "Discord's gateway", frame, proxy_key=PROXY_KEY, address_key="[discord] gateway_url"
        )
    if isinstance(frame, dict) and frame.get("op") == HELLO:
        return ok("discord.gateway", "Discord's gateway answers.")
    fix = "Look whether [discord] gateway_url is right, and whether a proxy lets websockets through."
    return problem("discord.gateway", "Discord's gateway does not greet as it should.", fix)


def _url(reply: ServerReply | NoReply) -> str:
    found = reply.table.get("url") if isinstance(reply, ServerReply) else None
    return found if isinstance(found, str) else ""


def _bot_page(application: str) -> str:
    return f"{PORTAL}/{application}/bot"


def ask(asker: Asker, present: DiscordSection) -> SetupResult | None:
    """The steps, with what is there already."""
    if asker.asks:
        asker.say(
            f"\nOpen {PORTAL}, New Application. Under Bot: switch on Message Content Intent, Save Changes, and Reset Token gives the token."
        )
    found = asked_token(asker, "discord", present, present.token, check)
    if found is None:
        return None
    settings, seen = found
    seen = asker.until(seen, "discord.intent", lambda: check(settings))
    return SetupResult(
        {("discord", "token"): revealed(settings.token)},
        (f"\nInvite the bot into your server: {seen.invite}", f"Then mention it, or write to it in private. {PAIRING}"),
    )
