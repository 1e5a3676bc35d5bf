"""What ``outspoken setup`` can set up, topic by topic: what is asked, how it is tried, what is computed from the answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import SecretStr, ValidationError

from adapters.checks.reach import Line, Reply, environment_proxy
from gateway.config.model import NO_KEY, OPENAI_URL, Model, endpoints_of

if TYPE_CHECKING:
    from adapters.discord.adapter import DiscordSettings
    from adapters.slack.adapter import SlackSettings
    from adapters.telegram.adapter import TelegramSettings
    from agent_core.model.endpoints import Endpoint
    from gateway.operate.doctor.model import ModelSeen
    from gateway.operate.setup.wizard import Wizard

Key = tuple[str, str]

PAIRING = "It does not know you yet and shows you a code: outspoken access approve CODE"
SHOWN_MODELS = 20
LOCAL_SERVERS: Mapping[int, str] = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM"}
"""Ports of this machine at which such servers listen by default."""
LOCAL_SECONDS = 1.0


class GivenUp(Exception):
    """A topic was not brought to its end; the words say what that means."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line gives."""

    values: Mapping[Key, str] = field(default_factory=dict[Key, str], repr=False)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a topic comes to."""

    values: Mapping[Key, str] = field(repr=False)
    """By section and key; an empty one is taken out."""
    words: tuple[str, ...] = ()
    """What to do next."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Something that can be set up."""

    name: str
    title: str
    question: str
    keys: tuple[Key, ...]
    """What it writes; without the first of them it has nothing to write."""
    ask: Callable[[Wizard], Wanted | None]


# --- the model ---


def model(wizard: Wizard) -> Wanted | None:
    """Address, key and name of a model at an OpenAI-compatible endpoint."""
    from gateway.cli.context import redactor_of
    from gateway.operate.doctor import model as doctor_model

    talk, now = wizard.talk, wizard.config.model
    talk.say(
        "\nAny OpenAI-compatible endpoint will do: a provider's, or a local server's (Ollama, llama.cpp, vLLM, LM Studio)."
    )
    values: dict[Key, str] = {}

    def attempt() -> ModelSeen:
        url = _address(wizard)
        same = url == (now.base_url or OPENAI_URL)
        present = now.credentials[0] if now.credentials and same else None
        key = wizard.secret("model", "api_key", "Key (empty: none)", present, needed=False)
        name = wizard.value("model", "name") or (now.name if same else "")
        if talk.asks and not wizard.value("model", "name"):
            name = _chosen(wizard, _endpoint(url, key, ""), name)
        values.update({("model", "base_url"): url, ("model", "api_key"): key, ("model", "name"): name})
        talk.say("Trying it …")
        return wizard.look(doctor_model.check(_endpoint(url, key, name), redactor_of(wizard.config)))

    wizard.tried(attempt)
    return Wanted(values)


def _address(wizard: Wizard) -> str:
    """The address of the API, given or asked for until it can be one. Raises `GivenUp` if what was given cannot."""
    talk, now = wizard.talk, wizard.config.model
    given = wizard.value("model", "base_url")
    default = now.base_url or ("" if given or not talk.asks else _local(wizard)) or OPENAI_URL
    while True:
        url = given or (talk.ask("Address of the API", default) if talk.asks else default)
        try:
            return Model(base_url=url).base_url
        except ValidationError as error:
            words = error.errors(include_url=False, include_input=False)[0]["msg"]
        if given or not talk.asks:
            raise GivenUp(f"the address {words}; nothing was written.")
        talk.say(f"The address {words}.")


def _endpoint(url: str, key: str, name: str) -> Endpoint:
    """The endpoint as the gateway would have it."""
    made = Model(base_url=url, name=name, api_key=SecretStr(key) if key else None)
    return endpoints_of(made.chain(), context_known=False)[0]


def _chosen(wizard: Wizard, endpoint: Endpoint, name: str) -> str:
    """The name of the model, from the endpoint's list if it has one."""
    from gateway.operate.doctor.model import listed, names_of

    replies = wizard.look(listed(endpoint, Line(endpoint.label, proxy=environment_proxy(endpoint.base_url))))
    there = next((names_of(one) for one in replies if isinstance(one, Reply)), ())
    if there:
        more = f" and {len(there) - SHOWN_MODELS} more" if len(there) > SHOWN_MODELS else ""
        wizard.talk.say(f"It has: {', '.join(there[:SHOWN_MODELS])}{more}")
    return wizard.talk.ask("Name of the model", name or next(iter(there), ""))


def _local(wizard: Wizard) -> str:
    """The address of a model server on this machine, if one answers."""
    import asyncio

    async def probe(port: int) -> str:
        address = f"http://127.0.0.1:{port}/v1"
        reply = await Line("local").ask(
            "GET", f"{address}/models", {"Authorization": f"Bearer {NO_KEY}"}, None, LOCAL_SECONDS
        )
        listed = isinstance(reply, Reply) and reply.status == 200 and isinstance(reply.table.get("data"), list)
        return address if listed else ""

    async def found() -> list[str]:
        return await asyncio.gather(*(probe(port) for port in LOCAL_SERVERS))

    for address, server in zip(wizard.look(found()), LOCAL_SERVERS.values(), strict=True):
        if address:
            wizard.talk.say(f"A model server answers on this machine at {address} ({server}'s port).")
            return address
    return ""


# --- Telegram ---


def telegram(wizard: Wizard) -> Wanted | None:
    """A bot's token; with an address of our own, also the word by which Telegram's calls are known."""
    from adapters.telegram.check import FATHER, TelegramSeen, check
    from gateway.chats.platforms import telegram_settings

    talk, now = wizard.talk, wizard.config.telegram
    if talk.asks:
        talk.say(f"\nOpen {FATHER}, write /newbot, and give it a name and a user name. It answers with a token.")
    values: dict[Key, str] = {}

    def settings(token: str) -> TelegramSettings:
        made = telegram_settings(now.model_copy(update={"token": SecretStr(token)}))
        assert made is not None
        return made

    def attempt() -> TelegramSeen | None:
        token = wizard.secret("telegram", "token", "Token", now.token, needed=not talk.asks)
        if not token:
            return None
        values["telegram", "token"] = token
        return wizard.look(check(settings(token)))

    seen = wizard.tried(attempt)
    if seen is None:
        return None
    if url := wizard.value("telegram", "webhook_url"):
        values["telegram", "webhook_url"] = url
        values["telegram", "webhook_secret"] = wizard.value("telegram", "webhook_secret") or secrets.token_urlsafe(32)
    return Wanted(values, (f"\nYour bot is at {seen.link} – write to it. {PAIRING}",))


# --- Discord ---


def discord(wizard: Wizard) -> Wanted | None:
    """A bot's token; application id and invitation follow from it."""
    from adapters.discord.check import PORTAL, DiscordSeen, check
    from gateway.chats.platforms import discord_settings

    talk, now = wizard.talk, wizard.config.discord
    if talk.asks:
        talk.say(
            f"\nOpen {PORTAL}, New Application. Under Bot: switch on Message Content Intent, Save Changes, and Reset Token gives the token."
        )
    values: dict[Key, str] = {}

    def settings() -> DiscordSettings:
        made = discord_settings(now.model_copy(update={"token": SecretStr(values["discord", "token"])}))
        assert made is not None
        return made

    def attempt() -> DiscordSeen | None:
        token = wizard.secret("discord", "token", "Token", now.token, needed=not talk.asks)
        if not token:
            return None
        values["discord", "token"] = token
        return wizard.look(check(settings()))

    seen = wizard.tried(attempt)
    if seen is None:
        return None
    seen = wizard.until(seen, "discord.intent", lambda: check(settings()))
    return Wanted(
        values,
        (f"\nInvite the bot into your server: {seen.invite}", f"Then mention it, or write to it in private. {PAIRING}"),
    )


# --- Slack ---


def slack(wizard: Wizard) -> Wanted | None:
    """The bot's token, and the app-level token for Socket Mode (or the signing secret, if that is given)."""
    from adapters.slack.check import SlackSeen, check
    from adapters.slack.manifest import new_app_url
    from gateway.chats.platforms import slack_settings

    talk, now = wizard.talk, wizard.config.slack
    if talk.asks:
        talk.say(f"\nThis address opens Slack's form for a new app, filled in:\n\n{new_app_url()}\n")
        talk.say(
            "Choose your workspace, Create, then Install to Workspace. OAuth & Permissions has the bot token (xoxb-…)."
        )
    values: dict[Key, str] = {}

    def settings() -> SlackSettings:
        secret = {key: SecretStr(value) for (_, key), value in values.items() if value}
        made = slack_settings(now.model_copy(update={"app_token": None, "signing_secret": None, **secret}))
        assert made is not None
        return made

    def attempt() -> SlackSeen | None:
        values.clear()
        token = wizard.secret("slack", "bot_token", "Bot token (xoxb-…)", now.bot_token, needed=not talk.asks)
        if not token:
            return None
        values["slack", "bot_token"] = token
        signing = wizard.value("slack", "signing_secret")
        if signing and not wizard.value("slack", "app_token"):
            values["slack", "signing_secret"] = signing
            return wizard.look(check(settings()))
        if talk.asks and not wizard.value("slack", "app_token"):
            talk.say("Basic Information, App-Level Tokens, Generate: any name, the scope connections:write.")
        app = wizard.secret("slack", "app_token", "App-level token (xapp-…)", now.app_token, needed=not talk.asks)
        if not app:
            return None
        values["slack", "app_token"] = app
        return wizard.look(check(settings()))

    seen = wizard.tried(attempt)
    if seen is None:
        return None
    seen = wizard.until(seen, "slack.scopes", lambda: check(settings()))
    where = f" in {seen.workspace}" if seen.workspace else ""
    return Wanted(
        values, (f"\nWrite to the app{where} in private, or invite it into a channel and mention it. {PAIRING}",)
    )


TOPICS: Mapping[str, Topic] = {
    topic.name: topic
    for topic in (
        Topic(
            "model",
            "Model",
            "Set up a model? Without one, the rehearsal model answers, which is a script.",
            (("model", "base_url"), ("model", "api_key"), ("model", "name")),
            model,
        ),
        Topic(
            "telegram",
            "Telegram",
            "Set up Telegram?",
            (("telegram", "token"), ("telegram", "webhook_url"), ("telegram", "webhook_secret")),
            telegram,
        ),
        Topic("discord", "Discord", "Set up Discord?", (("discord", "token"),), discord),
        Topic(
            "slack",
            "Slack",
            "Set up Slack?",
            (("slack", "bot_token"), ("slack", "app_token"), ("slack", "signing_secret")),
            slack,
        ),
    )
}
