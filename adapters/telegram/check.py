"""Looks at a Telegram bot from outside, and sets one up by looking: its token, its webhook, its privacy mode, and whether somebody else polls it.

A `getUpdates` without an offset confirms nothing. It does end a poll that is open elsewhere, so it is asked only while no gateway
of this configuration runs; a running one knows itself whether somebody disturbs it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import AsyncExitStack
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adapters.checks.findings import Finding, Seen, note, ok, problem, warning
from adapters.checks.probe import SECONDS, NoReply, ProbeTrouble, ServerReply, odd, parsed, skew_of, unreachable
from adapters.contract.platforms import PAIRING, Asker, Key, SetupResult, asked_token
from adapters.contract.settings import revealed
from adapters.telegram.section import TelegramSection
from agent_core.records import dataclass

if TYPE_CHECKING:
    from telegram.request import HTTPXRequest

FATHER = "https://t.me/BotFather"
POLL_SECONDS = 4
"""How long it is waited whether another poll cuts in. Another outspoken, once cut, comes back only after half a minute."""
PROXY_KEY, ADDRESS_KEY = "[telegram] proxy", "[telegram] api_base"
TWO_POLLERS = "Somebody else asks Telegram for this bot's updates (409): another program uses the same token."
TWO_POLLERS_FIX = (
    "Stop the other one, on whatever machine it runs. If you do not know it: @BotFather, /revoke gives a new token and "
    "shuts all others out; then: outspoken setup telegram."
)


@dataclass(frozen=True, slots=True)
class TelegramSeen(Seen):
    """What is known of the bot now."""

    username: str = ""
    """Without @; empty if the token is not good."""

    @property
    def link(self) -> str:
        """Where to write to the bot."""
        return f"https://t.me/{self.username}" if self.username else ""


@dataclass(slots=True)
class _Way:
    """The way that the bot itself takes to Telegram: its library's connection, with its proxy and its list of authorities."""

    request: HTTPXRequest
    address: str
    told: list[str] = field(default_factory=list[str])
    """The ``Date`` of each answer."""
    skew_seconds: float | None = None

    async def ask(self, method: str, query: str = "", seconds: float = SECONDS) -> ServerReply | NoReply:
        from telegram.error import NetworkError, TelegramError

        host = urlsplit(self.address).hostname or "?"
        began = time.time()
        try:
            async with asyncio.timeout(seconds):
                status, raw = await self.request.do_request(
                    f"{self.address}/{method}{query}", "POST", read_timeout=seconds
                )
        except (TelegramError, TimeoutError) as error:
            network = isinstance(error, NetworkError) and error.__cause__ is not None
            return no_reply(error.__cause__ if network and error.__cause__ else error, host)
        if self.told:
            skew = skew_of(self.told[-1], began, time.time())
            self.skew_seconds = skew if skew is not None else self.skew_seconds
        return ServerReply(status, {}, parsed(raw))


def no_reply(error: BaseException, host: str) -> NoReply:
    """What an exception of the Telegram library's connection means. Its own words are not repeated: they may hold the address."""
    kind, words = type(error).__name__, str(error)
    if "certificate" in words.lower():
        reason = words.partition("certificate verify failed: ")[2].partition(" (_ssl")[0]
        return NoReply(ProbeTrouble.TLS, host, f"its certificate is not trusted ({reason or 'verification failed'})")
    if "ssl" in words.lower():
        return NoReply(ProbeTrouble.TLS, host, "no secure connection could be agreed on")
    if kind == "ProxyError":
        return NoReply(ProbeTrouble.PROXY, host, "the proxy does not answer or does not let it through")
    if "time" in kind.lower():
        return NoReply(ProbeTrouble.TIME, host, "there was no answer in time")
    if "name" in words.lower() or "getaddrinfo" in words.lower():
        return NoReply(ProbeTrouble.NAME, host, f"the name {host} is not known")
    if kind in ("UnsupportedProtocol", "InvalidURL"):
        return NoReply(ProbeTrouble.ADDRESS, host, "the address cannot be used")
    return NoReply(ProbeTrouble.CONNECTION, host, f"no connection to {host} ({kind})")


def _request(settings: TelegramSection, told: list[str]) -> HTTPXRequest:
    """A connection as the bot has it; the date of each answer is put into `told`. Raises OSError for an unusable SSL_CERT_FILE."""
    from telegram.request import HTTPXRequest

    async def heard(response: Any) -> None:
        told.append(response.headers.get("date", ""))

    return HTTPXRequest(
        connect_timeout=5, proxy=settings.proxy or None, httpx_kwargs={"event_hooks": {"response": [heard]}}
    )


async def check(settings: TelegramSection, *, wants_all: bool = False, poll: bool = False) -> TelegramSeen:
    """Ask Telegram about the bot. Never raises for what Telegram or the network does.

    `wants_all`: the configuration has groups in which the bot answers everything. `poll`: also look for a second poller.
    """
    base = settings.api_base.rstrip("/")
    told: list[str] = []
    try:
        request = _request(settings, told)
    except OSError:
        fix = "Correct SSL_CERT_FILE (or SSL_CERT_DIR), or unset it."
        return TelegramSeen((problem("telegram.tls", "The file of certificate authorities cannot be read.", fix),))
    async with AsyncExitStack() as stack:
        await request.initialize()
        stack.push_async_callback(request.shutdown)
        return await _seen(
            _Way(request, f"{base}/bot{revealed(settings.token)}", told), settings, wants_all=wants_all, poll=poll
        )


async def _seen(way: _Way, settings: TelegramSection, *, wants_all: bool, poll: bool) -> TelegramSeen:
    me = await way.ask("getMe")
    own_server = settings.api_base.rstrip("/") != "https://api.telegram.org"
    first = judged_me(me, wants_all=wants_all, own_server=own_server)
    name = _result(me).get("username")
    if not isinstance(name, str):
        return TelegramSeen(first, way.skew_seconds)
    hook = await way.ask("getWebhookInfo")
    findings = [*first, *judged_webhook(hook, settings)]
    if poll and not settings.webhook_url and not _result(hook).get("url"):
        asked = await way.ask("getUpdates", f"?limit=1&timeout={POLL_SECONDS}", POLL_SECONDS + 6)
        findings += judged_poll(asked)
    return TelegramSeen(tuple(findings), way.skew_seconds, name)


def judged_me(reply: ServerReply | NoReply, *, wants_all: bool, own_server: bool) -> tuple[Finding, ...]:
    """What ``getMe`` says of token and privacy mode."""
    if isinstance(reply, NoReply):
        return (unreachable("telegram.reach", "Telegram", reply, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY),)
    if reply.status in (401, 403, 404):
        more = f" If {ADDRESS_KEY} is your own server: it must serve /bot<token>/." if own_server else ""
        return (
            problem(
                "telegram.token",
                "Telegram does not know the bot's token.",
                f"@BotFather, /mybots, your bot, API Token; then: outspoken setup telegram.{more}",
                FATHER,
            ),
        )
    me = _result(reply)
    if reply.status != 200 or not isinstance(me.get("username"), str):
        return (odd("telegram.reach", "Telegram", reply),)
    token = ok("telegram.token", f"Telegram knows the bot: @{me['username']}.")
    if me.get("can_read_all_group_messages") is not False:
        return (token, ok("telegram.privacy", "In groups the bot sees every message."))
    what = "Privacy mode is on: in groups the bot sees only commands, mentions and replies to it."
    fix = "@BotFather, /setprivacy, your bot, Disable; then take the bot out of the group and add it again."
    if wants_all:
        return (token, problem("telegram.privacy", f"{what} It is configured to answer everything there.", fix, FATHER))
    return (token, note("telegram.privacy", what, f"That is enough for answering mentions. For more: {fix}", FATHER))


def judged_webhook(reply: ServerReply | NoReply, settings: TelegramSection) -> tuple[Finding, ...]:
    """What ``getWebhookInfo`` says, for a bot that polls or is called."""
    if not isinstance(reply, ServerReply) or reply.status != 200:
        return ()
    info = _result(reply)
    url, error = info.get("url"), info.get("last_error_message")
    if not settings.webhook_url:
        if not url:
            return ()
        what = "A webhook is set, although this gateway polls: until it is taken away, nothing can be polled (409)."
        fix = "outspoken run takes it away when it starts. If it comes back, another program uses the same token: stop that one."
        return (warning("telegram.webhook", what, fix),)
    if isinstance(error, str) and error:
        what = f"Telegram could not call this gateway the last time: {error[:200]}."
        fix = "Look whether [telegram] webhook_url can be reached from outside, with a valid certificate, and leads to this gateway."
        return (warning("telegram.webhook", what, fix),)
    if not url:
        what = "No webhook is set at Telegram yet."
        return (note("telegram.webhook", what, "outspoken run sets it when it starts."),)
    if isinstance(url, str) and not url.startswith(settings.webhook_url.rstrip("/") + "/"):
        fix = "Stop the other program that uses this token, or correct [telegram] webhook_url; outspoken run sets it when it starts."
        return (problem("telegram.webhook", "Telegram calls another address than this gateway's.", fix),)
    return (ok("telegram.webhook", "Telegram calls this gateway."),)


def judged_poll(reply: ServerReply | NoReply) -> tuple[Finding, ...]:
    """Whether somebody else polls."""
    if isinstance(reply, NoReply):
        return ()
    if reply.status == 409:
        return (problem("telegram.pollers", TWO_POLLERS, TWO_POLLERS_FIX, FATHER),)
    return (ok("telegram.pollers", f"Nobody else asked for the bot's updates within {POLL_SECONDS} s."),)


def _result(reply: ServerReply | NoReply) -> dict[str, object]:
    found = reply.table.get("result") if isinstance(reply, ServerReply) else None
    return {**found} if isinstance(found, dict) else {}


def ask(asker: Asker, present: TelegramSection) -> SetupResult | None:
    """The steps, with what is there already."""
    if asker.asks:
        asker.say(f"\nOpen {FATHER}, write /newbot, and give it a name and a user name. It answers with a token.")
    found = asked_token(asker, "telegram", present, present.token, check)
    if found is None:
        return None
    settings, seen = found
    values: dict[Key, str] = {("telegram", "token"): revealed(settings.token)}
    if url := asker.value("telegram", "webhook_url"):
        values["telegram", "webhook_url"] = url
        values["telegram", "webhook_secret"] = asker.value("telegram", "webhook_secret") or secrets.token_urlsafe(32)
    return SetupResult(values, (f"\nYour bot is at {seen.link} – write to it. {PAIRING}",))
