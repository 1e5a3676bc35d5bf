"""Looks at a Telegram bot from outside: its token, its webhook, its privacy mode, and whether somebody else polls it.

A `getUpdates` without an offset confirms nothing. It does end a poll that is open elsewhere, so it is asked only while no gateway
of this configuration runs; a running one knows itself whether somebody disturbs it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from adapters.findings import Finding, Seen, note, ok, problem, warning
from adapters.reach import Line, NoReply, Reply, environment_proxy, odd, unreachable
from adapters.telegram.adapter import TelegramSettings

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


def trusted() -> ssl.SSLContext:
    """Whom the Telegram library trusts: its own list of authorities, unless SSL_CERT_FILE or SSL_CERT_DIR names another."""
    import telegram.request  # noqa: F401 - brings httpx, whose rule it is

    httpx = __import__("httpx")
    context = httpx.create_ssl_context()
    assert isinstance(context, ssl.SSLContext)
    return context


async def check(settings: TelegramSettings, *, wants_all: bool = False, poll: bool = False) -> TelegramSeen:
    """Ask Telegram about the bot. Never raises for what Telegram or the network does.

    `wants_all`: the configuration has groups in which the bot answers everything. `poll`: also look for a second poller.
    """
    base = settings.api_base.rstrip("/")
    try:
        tls = trusted() if base.startswith("https:") else None
    except OSError:
        fix = "Correct SSL_CERT_FILE (or SSL_CERT_DIR), or unset it."
        return TelegramSeen((problem("telegram.tls", "The file of certificate authorities cannot be read.", fix),))
    line = Line("Telegram", proxy=settings.proxy or environment_proxy(base), tls=tls)
    address = f"{base}/bot{settings.token}"
    me = await line.ask("GET", f"{address}/getMe", {})
    first = judged_me(me, wants_all=wants_all, own_server=base != "https://api.telegram.org")
    name = _result(me).get("username")
    if not isinstance(name, str):
        return TelegramSeen(first, line.skew_seconds)
    hook = await line.ask("GET", f"{address}/getWebhookInfo", {})
    findings = [*first, *judged_webhook(hook, settings)]
    if poll and not settings.webhook_url and not _result(hook).get("url"):
        asked = await line.ask(
            "POST", f"{address}/getUpdates", {}, {"limit": 1, "timeout": POLL_SECONDS}, POLL_SECONDS + 6
        )
        findings += judged_poll(asked)
    return TelegramSeen(tuple(findings), line.skew_seconds, name)


def judged_me(reply: Reply | NoReply, *, wants_all: bool, own_server: bool) -> tuple[Finding, ...]:
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


def judged_webhook(reply: Reply | NoReply, settings: TelegramSettings) -> tuple[Finding, ...]:
    """What ``getWebhookInfo`` says, for a bot that polls or is called."""
    if not isinstance(reply, Reply) or reply.status != 200:
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


def judged_poll(reply: Reply | NoReply) -> tuple[Finding, ...]:
    """Whether somebody else polls."""
    if isinstance(reply, NoReply):
        return ()
    if reply.status == 409:
        return (problem("telegram.pollers", TWO_POLLERS, TWO_POLLERS_FIX, FATHER),)
    return (ok("telegram.pollers", f"Nobody else asked for the bot's updates within {POLL_SECONDS} s."),)


def _result(reply: Reply | NoReply) -> dict[str, object]:
    found = reply.table.get("result") if isinstance(reply, Reply) else None
    return {**found} if isinstance(found, dict) else {}
