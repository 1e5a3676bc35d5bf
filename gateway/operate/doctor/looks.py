"""``outspoken doctor``: looks at everything that a gateway needs, and says what to fix and where to click.

Which checks there are follows from the configuration; they run side by side. A gateway that runs is not disturbed: what would
take something away from it (a poll, a socket) is asked of itself instead.

Known to be weak: it looks with its own environment and from where it runs; a service may have other variables, another user, another network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from statistics import median

from adapters.checks.findings import (
    LOCAL_SECONDS,
    REMOTE_SECONDS,
    Check,
    Finding,
    Seen,
    Severity,
    note,
    ok,
    problem,
    warning,
    worst,
)
from adapters.contract.platforms import CheckContext
from adapters.platforms import any_of, found, names, platform_of
from agent_core.jsonvalue import Json
from agent_core.model.endpoints import Endpoint, applied
from gateway.config.model import endpoints_of
from gateway.config.operatorkey import with_operator_key
from gateway.config.paths import Paths, PathsError, find_paths, working_directory
from gateway.config.reading import Loaded, redactor_of, survey
from gateway.config.sections import Config
from gateway.config.sources import ConfigProblem
from gateway.config.tools.shell import SHELL_TOOLS
from gateway.config.tools.toolnames import brings_python
from gateway.limits.alerts import AlertKind
from gateway.operate.context import find_gateway, holder_of_database, passed_over
from gateway.operate.database import pages
from gateway.operate.doctor import machine as doctor_machine
from gateway.operate.doctor import model as doctor_model
from gateway.operate.doctor import programs as doctor_programs
from gateway.operate.doctor import shell as doctor_shell

DATABASE_SECONDS = 300.0
MODEL_SECONDS = 90.0
TOOLS_SECONDS = 60.0
SECONDS = 15.0
"""A person waits for no longer, if nobody says otherwise; what needs more is said not to be known yet."""
Progress = Callable[[str], None]
ADDRESSES = {("storage", "url"): "the database", ("server", "port"): "the port", ("model", "base_url"): "the model"}
"""By which key it is said where something is, and what that is. (A platform is where its token comes from.)"""
OLD_SECONDS = 60.0
"""A part that waits longer for its delivery is told."""


async def diagnose(
    config_file: Path | None, env: Mapping[str, str], seconds: float = SECONDS, progress: Progress = lambda _: None
) -> list[Finding]:
    """Everything that was found, within some `seconds`; `progress` is told meanwhile in words which looks have ended. Never raises for
    what is wrong with this machine or with others."""
    try:
        paths = find_paths(env)
    except PathsError as error:
        what, _, fix = str(error).partition(". ")
        return [Finding("directory", Severity.CONFIGURATION, f"{what}.", fix or "Correct it.")]
    file = config_file or paths.config_file
    named = config_file is not None or paths.config_named
    seen = survey(file, env, required=named)
    if not named:
        seen = replace(seen, warnings=(*seen.warnings, *passed_over(paths, working_directory())))
    seen, hidden = _without_guesses(seen)
    config = with_operator_key(seen.config, paths)
    gateway = await find_gateway(config, paths)
    url = gateway.url
    holder = await asyncio.to_thread(holder_of_database, config, paths)
    runs = bool(holder) or (bool(url) and holder is None)
    checks = [
        *_machine(config, paths, env, url, holder, seen.unsound),
        *([Check("gateway", LOCAL_SECONDS, lambda: _gateway(config, url))] if runs and url else []),
        *_models(config, seen, runs=runs),
        *doctor_programs.checks(config, paths),
        *_platforms(config, env, seen.unsound, runs=runs),
        *([Check("tools", TOOLS_SECONDS, lambda: own_tools(config))] if brings_tools(config) else []),
        *_search(config),
        *doctor_shell.checks(config, paths.state_dir),
        *_tool_servers(config),
    ]
    redactor = redactor_of(config)
    found = [*judged_survey(seen, file), *hidden, *await examine(checks, seconds, progress)]
    if gateway.pid:
        found = [one for one in found if one.check != "port"]  # it would say that a stranger listens there
        found.append(problem("gateway", gateway.trouble, gateway.fix))
    return [
        Finding(one.check, one.level, redactor.redact(one.what), redactor.redact(one.fix), one.link) for one in found
    ]


# --- the configuration ---


def judged_survey(seen: Loaded, file: Path) -> list[Finding]:
    """What is wrong with the configuration, and what is open that should be closed."""
    findings = [_configuration(one) for one in seen.problems]
    findings += [_warned(one) for one in seen.warnings]
    if not findings:
        there = f"{file} is valid." if seen.file else f"There is no {file}; the defaults and the environment hold."
        findings.append(ok("configuration", there))
    return findings


def _without_guesses(seen: Loaded) -> tuple[Loaded, list[Finding]]:
    """Where a file cannot be read, what is to be asked may be named in it: a default in its place would be a guess, and the key that is
    sent there told to a stranger."""
    guessed = {section: words for (section, key), words in ADDRESSES.items() if (section, key) not in seen.origins}
    if not seen.unread or not guessed:
        return seen, []
    what = f"Not looked at: {', '.join(guessed.values())}. Which to ask may stand in what cannot be read."
    return replace(seen, unsound=seen.unsound | guessed.keys()), [
        note("configuration", what, "Mend that, then ask again.")
    ]


def _configuration(one: ConfigProblem) -> Finding:
    return Finding("configuration", Severity.CONFIGURATION, f"{one.where}: {one.what}", one.fix or "Correct it.")


def _warned(words: str) -> Finding:
    """The loader's warnings hold their own remedy behind the first sentence."""
    what, _, fix = words.partition(". ")
    check = "permissions" if "chmod" in fix else "configuration"
    return warning(check, f"{what.rstrip('.')}.", fix or "Leave one of them out.")


# --- this machine ---


def _machine(
    config: Config, paths: Paths, env: Mapping[str, str], url: str, holder: int | None, unsound: frozenset[str]
) -> list[Check]:
    database = [
        Check("database", LOCAL_SECONDS, lambda: doctor_machine.database(config, paths, holder)),
        Check("database.damage", DATABASE_SECONDS, lambda: pages(config, paths)),
    ]
    port = [Check("port", LOCAL_SECONDS, lambda: doctor_machine.port(config, url, holder))]
    return [
        Check(
            "directory",
            LOCAL_SECONDS,
            lambda: doctor_machine.directories(paths, config.tools.workspace, config.spool(paths)),
        ),
        Check("disk", LOCAL_SECONDS, lambda: doctor_machine.disk(paths)),
        *(database if "storage" not in unsound else ()),
        *(port if "server" not in unsound else ()),
        Check("tls", LOCAL_SECONDS, lambda: doctor_machine.certificates(env)),
    ]


# --- the gateway that runs ---


async def _gateway(config: Config, url: str) -> Seen:
    from adapters.terminal.ask import GatewayLost, GatewayRefused
    from adapters.terminal.operator import Remote

    secret = config.server.operator_key
    try:
        body = await Remote(url, secret.get_secret_value() if secret else None).status()
    except GatewayLost as error:
        return Seen((problem("gateway", str(error), "Look at its log; if it hangs, stop it and start it again."),))
    except GatewayRefused as error:
        fix = "Its key is another one than this configuration's: restart it, or use its configuration (--config)."
        return Seen((problem("gateway", f"The running gateway does not answer us: {error}", fix),))
    return Seen(tuple(judged_status(body)))


FOUND = frozenset({AlertKind.LAW, AlertKind.WEBHOOK, AlertKind.DELIVERY})
"""Alerts of which there is a finding that says more."""


def judged_status(body: Mapping[str, Json]) -> list[Finding]:
    """What a running gateway says of itself."""
    from adapters.terminal.nodelines import unlike
    from adapters.terminal.operator import tables

    problems, storage = body.get("problems"), body.get("storage")
    why = f" Its storage: {storage}" if storage else ""
    findings = [
        problem(
            "gateway.ready", f"The gateway runs, and is not ready: {words}{why}", "The log says since when and why."
        )
        for words in (problems if isinstance(problems, list) else [])
    ]
    findings += [_adapter(one) for one in tables(body.get("adapters"))]
    findings += [warning("gateway.several", what, fix) for what, fix in unlike(tables(body.get("nodes")))]
    findings += [found for one in tables(body.get("webhooks")) if (found := _receiver(one)) is not None]
    audit = body.get("audit")
    if isinstance(audit, dict) and audit.get("count"):
        what = f"What the gateway has stored breaks a law, at {audit.get('count')} place(s)."
        findings.append(problem("gateway.audit", what, "outspoken audit says what, where, and what to do about each."))
    waiting, oldest = body.get("unsent_parts"), body.get("oldest_unsent_seconds")
    if isinstance(oldest, int | float) and oldest > OLD_SECONDS:
        what = f"{waiting} parts wait for their delivery, the oldest for {oldest:.0f} s."
        findings.append(warning("gateway.unsent", what, "outspoken status names the chats and the reasons."))
    findings += [warning("gateway.well", words, "outspoken status says more.") for words in _unwell(body)]
    return findings or [ok("gateway", "The gateway runs.")]


def _unwell(body: Mapping[str, Json]) -> list[str]:
    """What is not well and has no finding of its own."""
    from adapters.terminal.operator import tables

    unwell, problems = body.get("unwell"), body.get("problems")
    own = [one.get("words") for one in tables(body.get("alerts")) if one.get("kind") in FOUND]
    platforms = tuple(f"{str(one.get('name')).partition('/')[0]} " for one in tables(body.get("adapters")))
    return [
        words
        for words in (unwell if isinstance(unwell, list) else [])
        if isinstance(words, str)
        and words not in (*own, *(problems if isinstance(problems, list) else []))
        and not words.startswith(platforms)
    ]


def _receiver(one: Mapping[str, Json]) -> Finding | None:
    """A receiver of webhooks that is not told everything; None if it is."""
    name, since = one.get("receiver"), one.get("failing_since")
    if one.get("off"):
        what = f"The webhook {name} is off, because {one.get('off')}."
        return problem("webhooks.running", what, f"When that is mended: outspoken webhooks on {name}")
    if since:
        what = f"The webhook {name} has taken nothing since {since}; {one.get('waiting')} message(s) wait."
        return warning(
            "webhooks.running", what, "outspoken webhooks list says why; what waits is tried again by itself."
        )
    if one.get("given_up"):
        what = f"The webhook {name} was not told {one.get('given_up')} message(s), which were given up."
        return warning("webhooks.running", what, f"When it works again: outspoken webhooks resend {name}")
    return None


def _adapter(one: Mapping[str, Json]) -> Finding:
    name, state, words = str(one.get("name")), str(one.get("state")), str(one.get("words") or "")
    platform = name.partition("/")[0]
    known = platform_of(platform)
    if known is not None and (meant := known.said(words)) is not None:
        return meant
    what = f"The running gateway says of {name}: {state}{f' – {words}' if words else ''}"
    if state == "up":
        return (
            ok(f"{platform}.running", what) if not words else warning(f"{platform}.running", what, "outspoken status")
        )
    if state == "elsewhere":
        return ok(f"{platform}.running", f"Another gateway of this database has the connection of {name}.")
    if state == "starting":
        return note(f"{platform}.running", what, "Wait a moment and look again: outspoken status")
    fix = "It tries again by itself; after a change of the configuration, restart it. Findings on the platform itself say more."
    return problem(f"{platform}.running", what, fix)


# --- models ---

HERE = " where this command looks"
SAME = " Or, if the running gateway has it by its environment: start this command with the same variables."
"""A gateway that runs may know more than its configuration file says."""


def _models(config: Config, seen: Loaded, *, runs: bool) -> list[Check]:
    if "model" in seen.unsound:
        return []
    if config.model.rehearsal:
        return [Check("model", LOCAL_SECONDS, lambda: _rehearsal(runs=runs))]
    endpoints = endpoints_of(config.model.chain())
    redactor = redactor_of(config)
    calls = [
        Check("model", MODEL_SECONDS, lambda endpoint=endpoint: doctor_model.check(endpoint, redactor), endpoint.label)
        for endpoint in endpoints
    ]
    return [*calls, Check("model.known_bad", LOCAL_SECONDS, lambda: _known_bad(endpoints))]


async def _known_bad(endpoints: Sequence[Endpoint]) -> Seen:
    return Seen(known_bad(endpoints, datetime.now(UTC).date()))


def known_bad(endpoints: Sequence[Endpoint], today: date) -> tuple[Finding, ...]:
    """What is known to go wrong at the configured endpoints, and what is done about it."""
    return tuple(note("model.known_bad", words) for words in applied(endpoints, today))


async def _rehearsal(*, runs: bool) -> Seen:
    what = f"No model is configured{HERE if runs else ''}: the rehearsal model answers, which is a script and no AI."
    return Seen((note("model", what, f"outspoken setup model.{SAME if runs else ''}"),))


# --- platforms ---


def _platforms(config: Config, env: Mapping[str, str], unsound: frozenset[str], *, runs: bool) -> list[Check]:
    around = CheckContext(env, runs)
    checks = [check for _, section in config.chats() for check in section.checks(around)]
    if not config.chats() and unsound.isdisjoint(names()):
        checks.append(Check("platforms", LOCAL_SECONDS, lambda: _no_platform(runs=runs)))
    if found().broken:
        checks.append(Check("platforms.package", LOCAL_SECONDS, _broken))
    return checks


async def _broken() -> Seen:
    fix = "Update or remove the package that declares it (pip list), then start the gateway again."
    return Seen(
        tuple(
            problem("platforms.package", f"The platform {one.name!r} cannot be used: {one.words}.", fix)
            for one in found().broken
        )
    )


async def _no_platform(*, runs: bool) -> Seen:
    what = f"No chat platform is configured{HERE if runs else ''}; the web page, the terminal and the API are there."
    return Seen((note("platforms", what, f"outspoken setup {any_of(names())}.{SAME if runs else ''}"),))


# --- tools ---


def brings_tools(config: Config) -> bool:
    """Whether operators bring any of their own."""
    return bool(config.tools.skills) or brings_python(config.tools)


async def own_tools(config: Config) -> Seen:
    """The tools that operators bring, and whether the configuration names one that is not there."""
    from contextlib import AsyncExitStack

    from agent_core.tools.builtin import tool_names
    from agent_core.workers.pool import Workers
    from gateway.schedule.toolspecs import later_names
    from gateway.toolset import added_tools, named_tools, searching, unknown_names

    async with AsyncExitStack() as stack:
        workers = await stack.enter_async_context(Workers())
        added = await added_tools(config.tools, workers, stack)
    fix = "Correct it, look whether it is there (outspoken tools list), then start the gateway again."
    findings = [problem("tools", f"{one.source}: {one.why}.", fix) for one in added.unusable]
    there = [tool.spec.name for tool in added.tools]
    known = [*tool_names(), *later_names(), *(tool.spec.name for tool in searching(config.search)), *there]
    known += SHELL_TOOLS if config.shell.on else ()
    if unknown := unknown_names(named_tools(config), known, config.mcp.servers):
        # A gateway starts all the same where something that could not be used may have brought it.
        level = Severity.PROBLEM if added.unusable else Severity.CONFIGURATION
        findings.append(Finding("tools", level, unknown, "Correct the name."))
    told = f"Tools that were added: {', '.join(there)}." if there else "There is no tool of your own."
    return Seen((*findings, ok("tools", told) if there else note("tools", told)))


def _search(config: Config) -> list[Check]:
    terms = config.search.terms()
    if terms is None:
        return []

    async def look() -> Seen:
        from agent_core.tools.search.tool import NotSearched, SearchWeb, spec

        title = terms.engine.called
        try:
            found = await SearchWeb(terms, spec()).search("weather", 1)
        except NotSearched as error:
            return Seen(
                (problem("search", str(error), "Correct [search]; docs/search.md says what each engine needs."),)
            )
        if not found:
            what = f"{title} answers, and finds nothing for a plain word."
            return Seen((warning("search", what, "Look whether it has engines switched on, and reaches them."),))
        return Seen((ok("search", f"{title} answers."),))

    return [Check("search", REMOTE_SECONDS, look)]


def _tool_servers(config: Config) -> list[Check]:
    if not config.mcp.servers:
        return []
    longest = max(one.start_seconds for one in config.mcp.servers)
    return [Check("mcp", longest + LOCAL_SECONDS, lambda: _servers(config))]


async def _servers(config: Config) -> Seen:
    from gateway.operate.servers import judged, looked_at, not_there
    from gateway.operate.trying import NotTried

    try:
        return Seen(tuple(judged(await looked_at(config))))
    except NotTried as error:
        return Seen((not_there(str(error)),))


# --- words ---

MARKS: Mapping[Severity, str] = {
    Severity.OK: "ok",
    Severity.NOTE: "note",
    Severity.WARNING: "warning",
    Severity.PROBLEM: "PROBLEM",
    Severity.CONFIGURATION: "PROBLEM",
}


def lines(findings: Sequence[Finding]) -> list[str]:
    """The findings for a person: the gravest last, because that is where eyes are."""
    order = list(Severity)
    out: list[str] = []
    for one in sorted(findings, key=lambda one: order.index(one.level)):
        out += lines_of(one)
    return [*out, "", summary(findings)]


def lines_of(one: Finding) -> list[str]:
    """One finding for a person."""
    return [
        f"{MARKS[one.level]:<8}{one.check}: {one.what}",
        *(f"{'':8}→ {words}" for words in (one.fix, one.link) if words),
    ]


def summary(findings: Sequence[Finding]) -> str:
    """All of it in one sentence."""
    problems = sum(one.level in (Severity.PROBLEM, Severity.CONFIGURATION) for one in findings)
    warnings = sum(one.level is Severity.WARNING for one in findings)
    counted = [
        f"{number} {word}{'' if number == 1 else 's'}"
        for number, word in ((problems, "problem"), (warnings, "warning"))
        if number
    ]
    return f"{' and '.join(counted)}." if counted else "All is well."


def as_json(findings: Sequence[Finding], status: int) -> dict[str, Json]:
    """The findings for a program."""
    return {
        "status": status,
        "summary": summary(findings),
        "findings": [
            {"check": one.check, "level": one.level.value, "what": one.what, "fix": one.fix, "link": one.link}
            for one in findings
        ],
    }


# --- looking: side by side, each within a limit of its own, and none that fails hides another ---

SKEW_SECONDS = 30.0
"""A clock that is off by more is worth a word: Slack's signatures are good for five minutes, certificates have their times."""
STATUS: Mapping[Severity, int] = {
    Severity.OK: 0,
    Severity.NOTE: 0,
    Severity.WARNING: 0,
    Severity.PROBLEM: 1,
    Severity.CONFIGURATION: 78,
}
"""The exit status for the gravest finding."""


async def examine(
    checks: Sequence[Check], seconds: float = SECONDS, progress: Progress = lambda _: None
) -> list[Finding]:
    """All findings in the order of the checks, and what they together say of this machine's clock."""
    loop = asyncio.get_running_loop()
    began, left = loop.time(), [one.name for one in checks]

    async def told(check: Check) -> Seen:
        found = await _looked(check, seconds)
        left.remove(check.name)
        rest = f"; still looking at {', '.join(left)}" if left else ""
        progress(f"{MARKS[worst(found.findings)]:<8}{check.name} ({loop.time() - began:.1f} s{rest})")
        return found

    progress(f"Looking at {', '.join(left)}, side by side, for at most {seconds:g} s:")
    seen = await asyncio.gather(*(told(one) for one in checks))
    skews = {
        check.clock: one.skew_seconds
        for check, one in zip(checks, seen, strict=True)
        if check.clock and one.skew_seconds is not None
    }
    return [*(finding for one in seen for finding in one.findings), *judged_clock(skews)]


async def _looked(check: Check, seconds: float) -> Seen:
    try:
        async with asyncio.timeout(min(check.limit_seconds, seconds)):
            return await check.look()
    except TimeoutError:
        if seconds < check.limit_seconds:
            what = f"This check did not end within {seconds:g} s, so it is not known whether all is well there."
            fix = f"Give it more time: outspoken doctor --seconds {check.limit_seconds:.0f}"
            return Seen((warning(check.name, what, fix),))
        what = f"This check did not end within {check.limit_seconds:.0f} s."
        return Seen((problem(check.name, what, "Try again; if it fails again, look at the network and the disk."),))
    except Exception as error:  # noqa: BLE001 - a mistake in one check must not hide what the others found
        what = f"This check failed by a mistake of its own ({type(error).__name__})."
        return Seen((problem(check.name, what, "Please report it, with the output of outspoken --version."),))


def judged_clock(skews: Mapping[str, float]) -> list[Finding]:
    """What the others' clocks (seconds ahead of this machine's) say of ours. Nothing if nobody told the time."""
    if not skews:
        return []
    off = median(skews.values())
    who = ", ".join(skews)
    if abs(off) <= SKEW_SECONDS:
        odd = [name for name, skew in skews.items() if abs(skew) > SKEW_SECONDS]
        if odd:
            return [_off("clock", skews[odd[0]], odd[0])]
        return [ok("clock", f"The clock agrees with {who}.")]
    return [_off("clock", off, who)]


def _off(check: str, seconds: float, who: str) -> Finding:
    size = abs(seconds)
    words = f"{size / 3600:.1f} h" if size >= 5400 else f"{size / 60:.0f} min" if size >= 90 else f"{size:.0f} s"
    way = "behind" if seconds > 0 else "ahead"
    return problem(
        check,
        f"This machine's clock is {words} {way} (compared with {who}).",
        "Let it be set by the network: timedatectl set-ntp true (or start chrony or ntpd); in a container or a virtual machine, set the "
        "host's clock.",
    )


def exit_status(findings: Sequence[Finding]) -> int:
    """0 all is well, 1 a problem, 78 the configuration has to be changed."""
    return STATUS[worst(findings)]
