"""Looks at a Telegram bot from outside, and sets one up by looking: its token, its webhook, its privacy mode, and whether somebody else polls it.

A `getUpdates` without an offset confirms nothing. It does end a poll that is open elsewhere, so it is asked only while no gateway
of this configuration runs; a running one knows itself whether somebody disturbs it.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from adapters.checks.findings import Finding, Seen, note, ok, problem, warning
from adapters.checks.probe import SECONDS, NoReply, ServerReply, no_reply, odd, parsed, skew_of, unreachable
from adapters.contract.platforms import PAIRING, Asker, Key, SetupResult, asked_token
from adapters.contract.settings import revealed
from adapters.telegram.section import TELEGRAM, TelegramSection
from adapters.telegram.webhook import fails_now
from agent_core.records import dataclass

if TYPE_CHECKING:
    from adapters.telegram.wire import Wire

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

    wire: Wire
    address: str
    skew_seconds: float | None = None

    async def ask(self, method: str, query: str = "", seconds: float = SECONDS) -> ServerReply | NoReply:
        from telegram.error import TelegramError

        from adapters.telegram.wire import AskedToWait, NotItself

        host = urlsplit(self.address).hostname or "?"
        began = time.time()
        try:
            async with asyncio.timeout(seconds):
                status, raw = await self.wire.do_request(
                    f"{self.address}/{method}{query}", "POST", read_timeout=seconds
                )
        except NotItself as error:
            return ServerReply(error.status, {}, None)
        except AskedToWait as error:
            return ServerReply(429, {"retry-after": f"{error.seconds:g}"}, None)
        except (TelegramError, TimeoutError) as error:
            cause = error.__cause__
            return no_reply(cause if isinstance(cause, Exception) else error, host)
        skew = skew_of(self.wire.date, began, time.time())
        self.skew_seconds = skew if skew is not None else self.skew_seconds
        return ServerReply(status, {}, parsed(raw))


async def check(settings: TelegramSection, *, wants_all: bool = False, poll: bool = False) -> TelegramSeen:
    """Ask Telegram about the bot. Never raises for what Telegram or the network does.

    `wants_all`: the configuration has groups in which the bot answers everything. `poll`: also look for a second poller.
    """
    from adapters.telegram.wire import Wire, trusted

    base = settings.api_base.rstrip("/")
    try:
        trusted()
    except OSError:
        fix = "Correct SSL_CERT_FILE (or SSL_CERT_DIR), or unset it."
        return TelegramSeen((problem("telegram.tls", "The file of certificate authorities cannot be read.", fix),))
    async with AsyncExitStack() as stack:
        wire = Wire(base, read_seconds=SECONDS, proxy=settings.proxy)
        await wire.initialize()
        stack.push_async_callback(wire.shutdown)
        way = _Way(wire, f"{base}/bot{revealed(settings.token)}")
        return await _seen(way, settings, wants_all=wants_all, poll=poll)


async def _seen(way: _Way, settings: TelegramSection, *, wants_all: bool, poll: bool) -> TelegramSeen:
    me = await way.ask("getMe")
    own_server = settings.api_base.rstrip("/") != TELEGRAM
    first = judged_me(me, wants_all=wants_all, own_server=own_server)
    name = _result(me).get("username")
    if not isinstance(name, str):
        return TelegramSeen(first, way.skew_seconds)
    hook = await way.ask("getWebhookInfo")
    findings = [*first, *judged_webhook(hook, settings, datetime.now(UTC))]
    if poll and not settings.webhook_url and not _result(hook).get("url"):
        asked = await way.ask("getUpdates", f"?limit=1&timeout={POLL_SECONDS}", POLL_SECONDS + 6)
        findings += judged_poll(asked)
    return TelegramSeen(tuple(findings), way.skew_seconds, name)


def judged_me(reply: ServerReply | NoReply, *, wants_all: bool, own_server: bool) -> tuple[Finding, ...]:
    """What ``getMe`` says of token and privacy mode."""
    if isinstance(reply, NoReply):
        return (unreachable("telegram.reach", "Telegram", reply, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY),)
    if reply.status in (401, 403, 404) and reply.table:
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


def judged_webhook(reply: ServerReply | NoReply, settings: TelegramSection, now: datetime) -> tuple[Finding, ...]:
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
    if not url:
        what = "No webhook is set at Telegram yet."
        return (note("telegram.webhook", what, "outspoken run sets it when it starts."),)
    if isinstance(url, str) and not url.startswith(settings.webhook_url.rstrip("/") + "/"):
        fix = "Stop the other program that uses this token, or correct [telegram] webhook_url; outspoken run sets it when it starts."
        return (problem("telegram.webhook", "Telegram calls another address than this gateway's.", fix),)
    waiting, at = info.get("pending_update_count"), info.get("last_error_date")
    error_at = datetime.fromtimestamp(at, UTC) if isinstance(at, int) else None
    if fails_now(waiting if isinstance(waiting, int) else 0, error_at, now):
        what = f"Telegram could not call this gateway the last time: {str(error or 'it does not say why')[:200]}."
        fix = "Look whether [telegram] webhook_url can be reached from outside, with a valid certificate, and leads to this gateway."
        return (warning("telegram.webhook", what, fix),)
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
