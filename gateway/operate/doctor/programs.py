"""What `doctor` looks at for programs and for those who answer them: keys, agents, receivers of webhooks, hooks."""

from __future__ import annotations

from collections.abc import Sequence
from time import time
from urllib.parse import urlsplit

from adapters.checks.findings import LOCAL_SECONDS, REMOTE_SECONDS, Check, Finding, Seen, ok, problem, warning
from agent_core.store.database.look import look
from agent_core.store.errors import CannotOpen
from gateway.config.agents import AgentEntry
from gateway.config.model import endpoints_of
from gateway.config.paths import Paths
from gateway.config.sections import Config
from gateway.config.types import is_loopback
from gateway.config.webhooks import HookEntry, WebhookEntry
from gateway.people.keys import terms_of
from gateway.webhooks.deciding import Attempt


def checks(config: Config, paths: Paths) -> list[Check]:
    """Those that the configuration gives reason for."""
    found: list[Check] = []
    if not config.server.keyless and config.server.api_key is None:
        found.append(Check("server.keys", LOCAL_SECONDS, lambda: keys(config, paths)))
    there = frozenset(platform.name for platform, _ in config.chats())
    if config.agents.each:
        found.append(Check("agents", REMOTE_SECONDS, lambda: agents(config, there)))
    if config.hooks.entries:
        hooks = judged_hooks(config.hooks.entries)
        found.append(Check("hooks", LOCAL_SECONDS, lambda: _said(hooks)))
    if config.webhooks.receivers:
        found.append(Check("webhooks", REMOTE_SECONDS, lambda: receivers(config.webhooks.receivers)))
    return found


async def _said(findings: Sequence[Finding]) -> Seen:
    return Seen(tuple(findings))


# --- keys ---


async def keys(config: Config, paths: Paths) -> Seen:
    """Whether there is a key by which anybody can call a server that needs one."""
    try:
        seen = await look(config.storage.url or paths.database)
    except CannotOpen:
        return Seen(())  # the look at the database says so
    return Seen((judged_keys(seen.keys, config.server.host, round(time() * 1000)),))


def judged_keys(stored: Sequence[str], host: str, now: int) -> Finding:
    """How many of the keys that were not revoked open anything; `stored` is what they may."""
    good = 0
    for one in stored:
        try:
            expires = terms_of(one).expires_at
        except ValueError:
            continue  # it opens nothing
        good += not expires or now < expires
    if good:
        return ok(
            "server.keys", f"{good} {'key' if good == 1 else 'keys'} of outspoken keys can use the API and the page."
        )
    what = f"Other machines can reach the server ({host}), and there is no key: nobody can use the API or the page."
    return warning(
        "server.keys", what, "Make one: outspoken keys add NAME. With chat platforms alone, nothing has to be done."
    )


# --- agents ---


async def agents(config: Config, platforms: frozenset[str]) -> Seen:
    """What is said of the agents. A model that the configuration does not name is one of its endpoint's list, so that is asked for."""
    each, models = config.agents.each, [one.name for one in config.model.chain()]
    first: list[str] = []
    if not all(models) and not config.model.rehearsal and any(one.models for one in each):
        from gateway.operate.doctor.model import first_names

        endpoints = endpoints_of(config.model.chain())
        first = await first_names([one for one in endpoints if not any(one.models)])
    known = [name for name in (*models, *first) if name] if all(models) or first else []
    return Seen((*judged_agents(each, models, platforms), *judged_models(each, known)))


def judged_models(agents: Sequence[AgentEntry], known: Sequence[str]) -> list[Finding]:
    """Agents that name models which are not there; `known` are those that there are, none if nobody knows. Pure."""
    return [
        problem(
            "agents",
            f"The agent {one.name} asks for {model}, and the model here is {', '.join(known)}: it cannot answer.",
            f"Correct [agents.{one.name}] models, or set [model] name.",
        )
        for one in agents
        for model in one.models
        if known and model not in known
    ]


def judged_agents(agents: Sequence[AgentEntry], models: Sequence[str], platforms: frozenset[str]) -> list[Finding]:
    """Whom each agent asks, and whether the chats are there that it answers in."""
    found: list[Finding] = []
    for one in agents:
        asked = ", ".join(name for name in (one.models or models) if name) or "every model that there is"
        found.append(ok("agents", f"The agent {one.name} asks {asked}."))
        away = sorted({chat.partition("/")[0] for chat in one.chats} - platforms)
        if away:
            what = f"The agent {one.name} is to answer in chats on {', '.join(away)}, which is not configured here."
            found.append(
                warning("agents", what, f"Correct [agents.{one.name}] chats, or set up the platform: outspoken setup.")
            )
    return found


# --- hooks ---


def judged_hooks(entries: Sequence[HookEntry]) -> list[Finding]:
    """Where the answers to each call go; that they have somewhere to go is part of reading the configuration."""
    return [
        ok("hooks", f"Calls of /hooks/{one.name} are answered in {one.chat or f'the session {one.session}'}.")
        for one in entries
    ]


# --- receivers of webhooks ---


async def receivers(entries: Sequence[WebhookEntry]) -> Seen:
    """Whether each can be reached from here, and privately. Nothing is sent to them but a question for nothing (HEAD)."""
    from agent_core.workers.pool import Workers
    from gateway.webhooks.posting import posting

    found: list[Finding] = []
    async with Workers() as workers, posting(workers) as poster:
        for one in entries:
            attempt = await poster.reach(one.url, one.timeout_seconds, private=one.private)
            found += judged_receiver(one, attempt)
    return Seen(tuple(found))


def judged_receiver(one: WebhookEntry, attempt: Attempt) -> list[Finding]:
    """What an answer of a receiver says, and what its address does."""
    parts = urlsplit(one.url)
    found: list[Finding] = []
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        what = f"Messages to the webhook {one.name} go to {parts.hostname} without TLS: whoever is on the way can read them"
        found.append(
            warning("webhooks", f"{what}{', and what was said with them' if one.words else ''}.", "Use https://.")
        )
    if attempt.status:
        return [*found, ok("webhooks", f"The webhook {one.name} can be reached (HTTP {attempt.status}).")]
    what = f"The webhook {one.name} cannot be reached at {parts.hostname}: {attempt.words}."
    return [*found, problem("webhooks", what, "Correct its url, or start it; what is to be told it waits for a day.")]
