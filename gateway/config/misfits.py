"""What is sound in its own section and does not fit the others, so that no gateway can start with it. Pure.

It is part of reading the configuration: `outspoken config check`, `doctor` and `run` refuse the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from agent_core.records import dataclass
from gateway.config import agents
from gateway.config.sections import Config
from gateway.config.tools.toolnames import known_names


@dataclass(frozen=True, slots=True)
class Misfit:
    """One of them."""

    section: str
    key: str
    inner: Sequence[str | int]
    """Where in the key's value."""
    what: str
    fix: str


NO_MCP = "[mcp] names servers, and the package for them is not there."
MCP_FIX = "Install it: pip install 'outspoken[mcp]'."


def misfits(config: Config, installed: Callable[[str], bool]) -> Iterator[Misfit]:
    """All of them. `installed` says whether a module can be imported."""
    named = (*config.tools.enabled, *config.tools.disabled, *config.tools.approval, *config.agents.each)
    tools = known_names(config) if named else ()
    models = [one.name for one in config.model.chain()]
    skills = _skills(config) if any(one.skills for one in config.agents.each) else ()
    for inner, what, fix in agents.misfits(config.agents, models, tools, skills, priced=bool(config.budgets.prices)):
        yield Misfit("agents", "each", inner, what, fix)
    yield from _names(config, tools)
    yield from _nowhere(config)
    yield from _extras(config, installed)
    yield from _several(config)


def _several(config: Config) -> Iterator[Misfit]:
    """What several gateways cannot do together."""
    if not config.storage.several:
        return
    if not config.storage.url.startswith("postgresql"):
        what = "[storage] several is on, and a SQLite file has one gateway."
        fix = "Set [storage] url to a PostgreSQL database, or take the key out."
        yield Misfit("storage", "several", (), what, fix)


def _skills(config: Config) -> Sequence[str]:
    """The folders that may hold skills."""
    from agent_core.tools.skills.format import FILE

    folder = config.tools.skills
    try:
        return sorted(one.name for one in folder.iterdir() if (one / FILE).is_file()) if folder is not None else ()
    except OSError:
        return ()


def _names(config: Config, known: Sequence[str]) -> Iterator[Misfit]:
    """Names in [tools] that no tool has; where others bring tools, only they know."""
    for key, named in (
        ("enabled", config.tools.enabled),
        ("disabled", config.tools.disabled),
        ("approval", config.tools.approval),
    ):
        for one in named:
            if known and one not in known:
                what = f"[tools] {key} names a tool that does not exist: {one}."
                yield Misfit("tools", key, (), what, f"The tools are: {', '.join(sorted(known))}.")


def _nowhere(config: Config) -> Iterator[Misfit]:
    """What would start turns in chats of platforms that are not there: it would fail each time, in silence."""
    there = {platform.name for platform, _ in config.chats()}
    entries = [
        ("schedule", f"[schedule] the entry {one.name!r}", one.chat, place, "entry")
        for place, one in enumerate(config.schedule.entries)
    ]
    entries += [
        ("hooks", f"[hooks.{one.name}]", one.chat, place, "hook") for place, one in enumerate(config.hooks.entries)
    ]
    for section, name, chat, place, called in entries:
        platform = chat.partition("/")[0]
        if platform and platform not in there:
            what = (
                f"{name} is for a chat on {platform}, and no {platform} account is configured, so nothing would start."
            )
            fix = f"Set its token in [{platform}], or take the {called} out."
            yield Misfit(section, "entries", (place,), what, fix)


def _extras(config: Config, installed: Callable[[str], bool]) -> Iterator[Misfit]:
    """What needs a package that is not installed."""
    if config.mcp.servers and not installed("mcp"):
        yield Misfit("mcp", "servers", (), NO_MCP, MCP_FIX)
    if config.server.mcp and not installed("mcp"):
        what = "[server] mcp is on, and the package that speaks the protocol is not there."
        yield Misfit("server", "mcp", (), what, MCP_FIX)
    if config.telemetry.otlp_endpoint and not installed("opentelemetry.sdk"):
        what = "[telemetry] otlp_endpoint is set, and the package that sends traces is not there."
        fix = "Install it: pip install 'outspoken[otlp]', or take the key out."
        yield Misfit("telemetry", "otlp_endpoint", (), what, fix)
    if config.storage.url and "postgres" in config.storage.url.partition(":")[0] and not installed("asyncpg"):
        what = "[storage] url names a PostgreSQL server, and the package for it is not there."
        yield Misfit("storage", "url", (), what, "Install it: pip install 'outspoken[postgres]'.")


def idle(config: Config, program: Callable[[str], object]) -> Iterator[Misfit]:
    """What is set and has no effect as things are: a gateway starts with it, and its operator is told. `program` finds one by its name."""
    server = config.server
    if server.identity_header and not server.trusted_proxies:
        what = "[server] identity_header is believed of nobody, for trusted_proxies is empty."
        yield Misfit("server", "identity_header", (), what, "Name the proxy's own address there.")
    chat = config.operators.chat
    platform, slash, _ = chat.partition("/")
    if chat and (not slash or platform not in {found.name for found, _ in config.chats()}):
        what = f"[operators] chat is {chat}, and there is no such account here: no incident and no alert is told."
        fix = f"Set its token in [{platform}], or name another chat." if slash else "Write PLATFORM/CHAT."
        yield Misfit("operators", "chat", (), what, fix)
    for section, command in (("hearing", config.hearing.command), ("speaking", config.speaking.command)):
        if command and program(command[0]) is None:
            what = f"[{section}] command names a program that is not installed: {command[0]}."
            yield Misfit(section, "command", (), what, "Install it, or write its whole path.")
