"""Looks at a Slack app from outside, and sets one up by looking: its tokens, the scopes it was given, its socket. Changes nothing.

Slack gives each event to one of the app's sockets, so a socket that is opened only to look could be given one. It is therefore
opened only while no gateway of this configuration runs, and closed at once; what it was given unanswered comes again.
"""

from __future__ import annotations

import asyncio

from pydantic import SecretStr

from adapters.checks.findings import Finding, Seen, note, ok, problem, warning
from adapters.checks.probe import NoReply, Probe, ServerReply, environment_proxy, greeting, odd, unreachable
from adapters.contract.platforms import PAIRING, Asker, Key, SetupResult
from adapters.contract.settings import revealed
from adapters.slack.manifest import APPS, SCOPES, new_app_url
from adapters.slack.section import SlackSection
from agent_core.jsonvalue import Json
from agent_core.records import dataclass

API = "https://slack.com/api"
MOST_SOCKETS = 10
PROXY_KEY, ADDRESS_KEY = "[slack] proxy", "[slack] api_base"
BAD_TOKEN = frozenset({"invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"})


@dataclass(frozen=True, slots=True)
class SlackSeen(Seen):
    """What is known of the app now."""

    workspace: str = ""
    """Its name; empty if the bot token is not good."""
    bot: str = ""
    url: str = ""


async def check(settings: SlackSection, *, open_socket: bool = False) -> SlackSeen:
    """Ask Slack about the app. Never raises for what Slack or the network does. `open_socket`: also try Socket Mode's socket."""
    base = (settings.api_base or API).rstrip("/")
    line = Probe("Slack", proxy=settings.proxy or environment_proxy(base))
    page = app_page(revealed(settings.app_token))
    asks = [line.ask("POST", f"{base}/auth.test", _bearer(revealed(settings.bot_token)))] if settings.bot_token else []
    if settings.app_token:
        asks.append(line.ask("POST", f"{base}/apps.connections.open", _bearer(revealed(settings.app_token))))
    replies = await asyncio.gather(*asks)
    auth = replies[0] if settings.bot_token else None
    findings: list[Finding] = [] if auth is None else [*judged_auth(auth, page)]
    if settings.app_token:
        connection = replies[-1]
        findings.append(judged_connection(connection, page))
        address = _text(connection, "url")
        if open_socket and address:
            findings.append(judged_hello(await greeting(address, "Slack's socket", line.proxy), page))
    elif settings.signing_secret:
        what = "Slack calls this gateway (no app token is set); whether it can cannot be seen from here."
        findings.append(
            note("slack.socket", what, "Event Subscriptions in the app's page shows whether the address was verified.")
        )
    return SlackSeen(tuple(findings), line.skew_seconds, _text(auth, "team"), _text(auth, "user"), _text(auth, "url"))


def app_page(app_token: str) -> str:
    """The page of the app, whose id the app-level token holds; the list of apps if there is no token."""
    parts = app_token.split("-")
    return f"{APPS}/{parts[2]}" if len(parts) > 3 and parts[2][:1] == "A" else APPS


def judged_auth(reply: ServerReply | NoReply, page: str) -> tuple[Finding, ...]:
    """What ``auth.test`` and its headers say of the bot token and its scopes."""
    if isinstance(reply, NoReply):
        return (unreachable("slack.reach", "Slack", reply, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY),)
    error = _text(reply, "error")
    if error in BAD_TOKEN:
        fix = "The app's page, OAuth & Permissions, Bot User OAuth Token (reinstall the app if there is none); then: outspoken setup slack."
        return (problem("slack.token", f"Slack does not take the bot token ({error}).", fix, page),)
    if reply.status != 200 or reply.table.get("ok") is not True:
        return (odd("slack.reach", "Slack", reply),)
    team = _text(reply, "team")
    if not _text(reply, "bot_id"):
        fix = "Take the Bot User OAuth Token (xoxb-…) from OAuth & Permissions; then: outspoken setup slack."
        return (problem("slack.token", "The bot token is a person's, not the bot's.", fix, page),)
    return (ok("slack.token", f"Slack knows the bot: {_text(reply, 'user')} in {team}."), judged_scopes(reply, page))


def judged_scopes(reply: ServerReply, page: str) -> Finding:
    """The granted scopes against those that are needed."""
    told = reply.headers.get("x-oauth-scopes")
    if told is None:
        return note("slack.scopes", "Slack did not say which scopes were granted.")
    granted = {scope.strip() for scope in told.split(",")}
    missing = [scope for scope in SCOPES if scope not in granted]
    if not missing:
        return ok("slack.scopes", "All scopes that are needed were granted.")
    reasons = "; ".join(f"{scope} ({SCOPES[scope]})" for scope in missing)
    fix = "The app's page, OAuth & Permissions, Bot Token Scopes: add them; then Reinstall to Workspace, and take the token that it shows."
    return problem("slack.scopes", f"Scopes are missing: {reasons}.", fix, _under(page, "oauth"))


def judged_connection(reply: ServerReply | NoReply, page: str) -> Finding:
    """What ``apps.connections.open`` says of the app-level token and Socket Mode."""
    if isinstance(reply, NoReply):
        return unreachable("slack.socket", "Slack", reply, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY)
    if reply.table.get("ok") is True:
        return ok("slack.app_token", "Slack takes the app-level token.")
    error = _text(reply, "error")
    general = _under(page, "general")
    if error in BAD_TOKEN or error == "not_allowed_token_type":
        fix = "The app's page, Basic Information, App-Level Tokens: generate one with connections:write; then: outspoken setup slack."
        return problem("slack.app_token", f"Slack does not take the app-level token ({error}).", fix, general)
    if error == "missing_scope":
        fix = "The app's page, Basic Information, App-Level Tokens: generate one with the scope connections:write; then: outspoken setup slack."
        return problem("slack.app_token", "The app-level token has not the scope connections:write.", fix, general)
    if error in ("link_disabled", "socket_mode_not_enabled", "forbidden_team"):
        return _socket_mode_off(page)
    return odd("slack.socket", "Slack", reply) if not error else _refused(error, page)


def judged_hello(told: Json | NoReply, page: str) -> Finding:
    """What the socket's first frame says, and how many sockets there are."""
    if isinstance(told, NoReply):
        return unreachable("slack.socket", "Slack's socket", told, proxy_key=PROXY_KEY, address_key=ADDRESS_KEY)
    frame = told if isinstance(told, dict) else {}
    reason = frame.get("reason")
    if frame.get("type") == "disconnect":
        if reason == "too_many_websockets":
            what = f"The app has {MOST_SOCKETS} sockets already, and Slack allows no more."
            return problem("slack.socket", what, "Stop the other programs that use the app-level token.", page)
        return _socket_mode_off(page)
    number = frame.get("num_connections")
    if frame.get("type") != "hello":
        fix = "Try again; if it fails again, check whether a proxy changes websockets ([slack] proxy)."
        return problem("slack.socket", "Slack's socket does not greet as it should.", fix)
    if isinstance(number, int) and number > 1:
        what = f"The app has {number - 1} other open socket{'s' if number > 2 else ''}: each gets a part of the events."
        fix = "If you do not know the other program, generate a new app-level token and revoke the old one (Basic Information)."
        return warning("slack.socket", what, fix, _under(page, "general"))
    return ok("slack.socket", "Slack's socket opens, and nobody else has one.")


def _socket_mode_off(page: str) -> Finding:
    fix = "The app's page, Socket Mode: switch on Enable Socket Mode."
    return problem("slack.socket", "Socket Mode is switched off.", fix, _under(page, "socket-mode"))


def _refused(error: str, page: str) -> Finding:
    fix = "The app's page shows what is wrong; if that does not help, reinstall the app and run: outspoken setup slack."
    return problem("slack.socket", f"Slack opens no socket ({error[:80]}).", fix, page)


def _under(page: str, what: str) -> str:
    return page if page == APPS else f"{page}/{what}"


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _text(reply: ServerReply | NoReply | None, key: str) -> str:
    found = reply.table.get(key) if isinstance(reply, ServerReply) else None
    return found if isinstance(found, str) else ""


def ask(asker: Asker, present: SlackSection) -> SetupResult | None:
    """The steps, with what is there already."""
    if asker.asks:
        asker.say(f"\nThis address opens Slack's form for a new app, filled in:\n\n{new_app_url()}\n")
        asker.say(
            "Choose your workspace, Create, then Install to Workspace. OAuth & Permissions has the bot token (xoxb-…)."
        )
    values: dict[Key, str] = {}

    def settings() -> SlackSection:
        tokens = {key: values.get(("slack", key), "") for key in ("bot_token", "app_token", "signing_secret")}
        return present.model_copy(update={key: SecretStr(text) if text else None for key, text in tokens.items()})

    def attempt() -> SlackSeen | None:
        values.clear()
        token = asker.secret("slack", "bot_token", "Bot token (xoxb-…)", present.bot_token, needed=not asker.asks)
        if not token:
            return None
        values["slack", "bot_token"] = token
        signing = asker.value("slack", "signing_secret")
        if signing and not asker.value("slack", "app_token"):
            values["slack", "signing_secret"] = signing
            return asker.look(check(settings()))
        if asker.asks and not asker.value("slack", "app_token"):
            asker.say("Basic Information, App-Level Tokens, Generate: any name, the scope connections:write.")
        app = asker.secret("slack", "app_token", "App-level token (xapp-…)", present.app_token, needed=not asker.asks)
        if not app:
            return None
        values["slack", "app_token"] = app
        return asker.look(check(settings()))

    seen = asker.tried(attempt)
    if seen is None:
        return None
    seen = asker.until(seen, "slack.scopes", lambda: check(settings()))
    where = f" in {seen.workspace}" if seen.workspace else ""
    return SetupResult(
        values, (f"\nWrite to the app{where} in private, or invite it into a channel and mention it. {PAIRING}",)
    )
