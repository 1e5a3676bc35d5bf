"""The ``outspoken`` command. Parses words, prints words, and turns outcomes into exit statuses; decides nothing else.

Exit statuses: 0 all is well; 1 a problem; 2 wrong usage; 10 to 15 a turn that did not end cleanly (see `ExitClass.status`);
75 try again later; 78 the configuration has to be changed.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adapters.terminal.screen import put_up, typed
from agent_core.text.tongue import begin_speaking, of_environment, uncompiled
from gateway.cli.elsewhere import LateCommands
from gateway.cli.examples import with_examples
from gateway.cli.guarded import CONFIGURATION, PROBLEM, TRY_AGAIN, guarded, in_words
from gateway.cli.ids import IdCommand
from gateway.cli.numbers import MOST_SECONDS, Number, WholeNumber
from gateway.cli.start import completion, say_next
from gateway.memory import loading
from gateway.version import program_version

if TYPE_CHECKING:
    from gateway.config.paths import Paths
    from gateway.config.sections import Config
    from gateway.operate.replay import ReplayRequest
    from gateway.operate.triage.reading import TriageRequest


HELP = """One LLM agent, many chats, never silent.

\b
  outspoken run               start the gateway; the web chat is at http://127.0.0.1:8787
  outspoken chat              talk to it in this terminal
  outspoken ask "a question"  one question, one answer; the exit status is honest
  outspoken setup             a model, Telegram, Discord, Slack: tried first, then written
  outspoken doctor            what is wrong, what to do, where to click
  outspoken explain ID        what became of a message, an answer, an error, and why
  outspoken triage            what went wrong lately, grouped, the most harmful first
"""


@click.group(
    cls=LateCommands, invoke_without_command=True, help=HELP, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(program_version(), "--version", "-V", prog_name="outspoken")
@click.option(
    "--config", "config_file", type=click.Path(dir_okay=False, path_type=Path), help="Configuration file to use."
)
@click.pass_context
def cli(context: click.Context, config_file: Path | None) -> None:
    context.obj = config_file
    if context.invoked_subcommand is None:
        guarded(lambda: say_next(config_file))


@cli.command()
@click.option(
    "--takeover", is_flag=True, help="End the gateway that runs on this SQLite database, and go on with its turns."
)
@click.pass_obj
def run(config_file: Path | None, *, takeover: bool) -> None:
    """Start the gateway and serve until it is stopped (Ctrl-C or SIGTERM)."""
    guarded(lambda: _run(config_file, takeover=takeover))


@cli.command()
@click.option("--session", default="terminal", show_default=True, help="Which conversation to go on with.")
@click.option("--new", is_flag=True, help="Begin a new conversation.")
@click.pass_obj
def chat(config_file: Path | None, session: str, new: bool) -> None:
    """Talk to the agent in this terminal."""
    guarded(lambda: _chat(config_file, session, new=new))


@cli.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--session", default="", help="Ask within this conversation; without it, the question stands alone.")
@click.pass_obj
def ask(config_file: Path | None, words: tuple[str, ...], as_json: bool, session: str) -> None:
    """Ask one question and print the answer.

    The words may be "-" to read the question from standard input. The exit status is 0 only if the turn ended cleanly.
    """
    question = typed(sys.stdin.read() if words == ("-",) else " ".join(words))
    if not question.strip():
        raise click.UsageError("There is no question.")
    guarded(lambda: _ask(config_file, question, session, as_json=as_json))


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="Print the whole status as JSON.")
@click.pass_obj
def status(config_file: Path | None, as_json: bool) -> None:
    """Say how the running gateway is doing: platforms, what waits, what could not be delivered.

    The exit status is 0 if all is well, 1 if it is not ready or something needs an operator, 75 if no gateway answers.
    """
    guarded(lambda: _status(config_file, as_json=as_json))


@cli.command(cls=IdCommand)
@click.argument("turn", default="")
@click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Read an exported slice instead.")
@click.option("--export", type=click.Path(dir_okay=False, path_type=Path), help="Write the turn's journal to a file.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="Show where this setting decides otherwise.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option("--show-text", is_flag=True, help="Show, or export, what was said; else only how long it was.")
@click.pass_obj
def replay(
    config_file: Path | None,
    turn: str,
    file: Path | None,
    export: Path | None,
    sets: tuple[str, ...],
    as_json: bool,
    show_text: bool,
) -> None:
    """Decide a TURN again from its journal, and compare with what was recorded. Reads only; the gateway may be running."""
    from gateway.operate.replay import ReplayRequest

    guarded(lambda: _replay(config_file, ReplayRequest(turn, file, export, sets, as_json=as_json, show_text=show_text)))


@cli.command()
@click.option(
    "--to", required=True, help="PLATFORM/CHAT or PLATFORM/CHAT/THREAD; CHAT may be a person that `people list` shows."
)
@click.option(
    "--file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file to send along.",
)
@click.option("--key", default="", help="A name of your own: the same message under it is sent once.")
@click.option("--wait", is_flag=True, help="Wait until it is delivered; the exit status says whether it was.")
@click.option(
    "--timeout",
    default=0.0,
    type=Number(untold=MOST_SECONDS),
    help="With --wait: seconds to wait at most; 0 is without end.",
)
@click.argument("words", nargs=-1)
@click.pass_obj
def send(
    config_file: Path | None,
    to: str,
    files: tuple[Path, ...],
    key: str,
    wait: bool,
    timeout: float,
    words: tuple[str, ...],
) -> None:
    """Say something in a chat, through the running gateway.

    The words may be "-" to read them from standard input; Markdown is formatted as in answers. Prints the delivery's id once it
    is stored: from then on it is sent, whatever happens to the gateway meanwhile.
    """
    text = typed(sys.stdin.read() if words == ("-",) else " ".join(words))
    if not text.strip() and not files:
        raise click.UsageError("There is nothing to send: give words, or --file.")
    guarded(lambda: _send(config_file, to, text, files, key, wait_seconds=(timeout or math.inf) if wait else 0))


@cli.command()
@click.argument("sources", nargs=-1, metavar="[FILE | -]...")
@click.option("--since", default="", metavar="TIME", help="Only from then on: 30m, 2h, 7d, or 2026-11-20T14:00.")
@click.option("--limit", default=10, show_default=True, type=WholeNumber(1), help="So many groups.")
@click.option("--follow", is_flag=True, help="Go on reading, and group anew whenever something comes.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_obj
def triage(
    config_file: Path | None, sources: tuple[str, ...], since: str, limit: int, follow: bool, as_json: bool
) -> None:
    """Group what went wrong, the most harmful first, each with what was tried and what to do.

    From the database (the last 7 days; the gateway may be running), or from JSON logs: files, also rotated and gzipped ones,
    or "-" for standard input (journalctl -u outspoken -o cat | outspoken triage -). The exit status is 0 if nothing went
    wrong, 1 if something did, 2 if that cannot be told; 75 and 78, as everywhere, if the database cannot be opened.
    """
    from gateway.operate.triage.reading import TriageRequest

    guarded(lambda: _triage(config_file, TriageRequest(sources, since, as_json, follow, limit)))


@cli.group()
def access() -> None:
    """Who may talk to the bots."""


@access.command("list")
@click.pass_obj
def access_list(config_file: Path | None) -> None:
    """List everybody who has asked, or was let in."""
    guarded(lambda: _access(config_file, "list", ""))


@access.command("approve", cls=IdCommand)
@click.argument("code")
@click.pass_obj
def access_approve(config_file: Path | None, code: str) -> None:
    """Let somebody in, by the CODE that the bot has shown them (or by their id, or ACCOUNT/PERSON)."""
    guarded(lambda: _access(config_file, "approve", code))


@access.command("revoke", cls=IdCommand)
@click.argument("person")
@click.pass_obj
def access_revoke(config_file: Path | None, person: str) -> None:
    """Shut somebody out, by their id (or ACCOUNT/PERSON)."""
    guarded(lambda: _access(config_file, "revoke", person))


@access.command("forget", cls=IdCommand)
@click.argument("who")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@click.pass_obj
def access_forget(config_file: Path | None, who: str, yes: bool) -> None:
    """Forget WHO (ACCOUNT/PERSON): remove everything that they said and were answered, for good."""
    if not yes:
        click.confirm(f"Remove everything that {who} said and was answered? This cannot be undone.", abort=True)
    guarded(lambda: _forget(config_file, who))


# Also by what they are about: copies, as each shows examples of its own words.
people = click.Group(
    "people",
    {name: copy(command) for name, command in access.commands.items()},
    help="Who talks to the bots, and forgetting them: the commands of `outspoken access` by another name.",
)
cli.add_command(people)


@cli.group()
def config() -> None:
    """Look at the configuration."""


@config.command("show")
@click.pass_obj
def config_show(config_file: Path | None) -> None:
    """Print what is in force, without secrets."""
    from gateway.config.reading import redacted
    from gateway.operate.context import load_all

    loaded, _ = in_words(lambda: load_all(config_file))
    import json

    click.echo(json.dumps(redacted(loaded.config), indent=2, default=str))


@config.command("check")
@click.pass_obj
def config_check(config_file: Path | None) -> None:
    """Say whether the configuration is valid: what this refuses, outspoken run refuses, and the other way round.

    The exit status is 0 if a gateway can start with it, 78 if not. Whether what it names can be reached, outspoken doctor says.
    """
    guarded(lambda: _config_check(config_file))


async def _config_check(config_file: Path | None) -> int:
    from gateway.operate.context import configure_logs, load_all

    loaded, paths = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)
    if await _tools_refused(loaded.config):
        return CONFIGURATION
    none = f"there is no {paths.config_file}; the defaults and the environment hold"
    click.echo(f"The configuration is valid: {loaded.file or none}.")
    server = loaded.config.server
    if not server.keyless and server.api_key is None:
        click.echo(
            "Other machines can reach the server: it serves whoever has a key of outspoken keys, and nobody else."
        )
    return 0


async def _tools_refused(config: Config) -> bool:
    """Look at the tools that operators bring, and say what is wrong; whether no gateway would start with them."""
    from adapters.checks.findings import Severity
    from gateway.operate.doctor.looks import brings_tools, own_tools

    found = (await own_tools(config)).findings if brings_tools(config) else ()
    for one in found:
        if one.level in (Severity.PROBLEM, Severity.CONFIGURATION):
            click.echo(f"{one.what} {one.fix}", err=True)
    return any(one.level is Severity.CONFIGURATION for one in found)


@config.command("template")
def config_template() -> None:
    """Print a commented outspoken.toml with all keys and their defaults."""
    from gateway.config.keys import template

    click.echo(template())


cli.add_command(completion)
cli.elsewhere = {
    **{name: f"gateway.cli.{name}" for name in ("approvals", "audit", "db", "keys", "mcp", "tools", "webhooks")},
    **dict.fromkeys(("doctor", "setup"), "gateway.cli.first"),
    **dict.fromkeys(("bundle", "explain", "health"), "gateway.cli.look"),
}
with_examples(cli)


def main() -> None:
    """Entry point of the ``outspoken`` command."""
    # Pydantic would look through all packages for plugins, which would see the configuration's secrets.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    _hold_standard_streams()
    put_up()
    in_words(_all)


def _hold_standard_streams() -> None:
    """Whoever starts this with a stream closed (`>&-`) gives its number to the next file that is opened: uvloop ends the process over that."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number: this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _all() -> None:
    try:
        cli(prog_name="outspoken")
    finally:
        sys.stdout.flush()  # what cannot be written is told here, and not by the interpreter at its end


# ---------------------------------------------------------------------- doing


async def _run(config_file: Path | None, *, takeover: bool) -> int:
    with loading():
        from gateway.daemon import Serving, run_daemon
        from gateway.operate.context import configure_logs, load_all

    loaded, paths = load_all(config_file)
    configure_logs(loaded.config)
    for warning in loaded.warnings:
        click.echo(f"Warning: {warning}", err=True)

    def announce(up: Serving) -> None:
        click.echo(f"outspoken {program_version()} is ready: {up.url}")
        if up.rehearsal:
            from adapters.contract.base import REHEARSAL_WORDS

            click.echo(REHEARSAL_WORDS)
            click.echo("To use a model: set OPENAI_API_KEY, or OPENAI_BASE_URL for a local one, and start again.")
        if languages := uncompiled():
            click.echo(
                f"The sentences in {', '.join(languages)} are not compiled, so people there are told in English. Stop, run: make run"
            )
        click.echo("Stop it with Ctrl-C.")
        sys.stdout.flush()

    await run_daemon(loaded.config, paths, announce, takeover=takeover)
    return 0


async def _ask(config_file: Path | None, words: str, session: str, *, as_json: bool) -> int:
    from adapters.terminal.ask import ask as ask_gateway

    async with _gateway(config_file) as (url, key, own):
        begin_speaking(of_environment(os.environ))
        # A gateway of our own ends with us, and nobody could come back for what it left.
        return await ask_gateway(
            url, key, words, session=session, as_json=as_json, cancel_on_leave=own, out=sys.stdout, err=sys.stderr
        )


async def _chat(config_file: Path | None, session: str, *, new: bool) -> int:
    from adapters.terminal.conversation import chat as chat_with

    async with _gateway(config_file) as (url, key, _):
        begin_speaking(of_environment(os.environ))
        return await chat_with(url, key, session, new=new)


@asynccontextmanager
async def _gateway(config_file: Path | None) -> AsyncGenerator[tuple[str, str | None, bool]]:
    """(address, key, false) of the daemon that runs; if none does, (…, true) of one in this process that ends with the block."""
    from gateway.operate.context import caller_key, configure_logs, here

    found = await here(config_file)
    key = caller_key(found.config)
    if found.remote_if_any() is not None:
        yield found.found.url, key, False
        return
    from gateway.daemon import serving

    configure_logs(found.config, quiet=True)
    own = found.config.server.model_copy(update={"host": "127.0.0.1", "port": 0})
    async with serving(found.config.model_copy(update={"server": own}), found.paths) as up:
        yield up.url, key, True


async def _status(config_file: Path | None, *, as_json: bool) -> int:
    import json

    from adapters.terminal.operator import all_well, status_lines
    from gateway.operate.context import here

    found = await here(config_file)
    body = {"address": found.found.url, **await found.remote().status()}
    click.echo(json.dumps(body, indent=2) if as_json else "\n".join(status_lines(body)))
    return 0 if all_well(body) else PROBLEM


async def _send(
    config_file: Path | None, to: str, text: str, files: tuple[Path, ...], key: str, *, wait_seconds: float
) -> int:
    from adapters.terminal.operator import delivery_line, delivery_settled
    from gateway.operate.context import here

    remote = (await here(config_file)).remote(so="nothing was sent")
    carried = [(path.name, path.read_bytes()) for path in files]
    found = await remote.send(to, text, carried, key)
    number = str(found.get("id"))
    click.echo(number)
    sys.stdout.flush()
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_seconds
    while wait_seconds and not delivery_settled(found):
        if loop.time() >= until:
            click.echo(f"Not delivered yet; it is still being tried. {delivery_line(found)}".strip(), err=True)
            return TRY_AGAIN
        found = await remote.delivery(number, min(10.0, max(0.1, until - loop.time())))
    if wait_seconds:
        click.echo(delivery_line(found), err=True)
    return PROBLEM if found.get("state") == "failed" else 0


async def _access(config_file: Path | None, verb: str, who: str) -> int:
    """Through the daemon if one runs; else in its database, which nobody else holds then."""
    from adapters.terminal.operator import people_lines
    from gateway.operate.context import here

    found = await here(config_file)
    remote = found.remote_if_any()
    if remote is None:
        from gateway.operate.offline import people_of

        people = await people_of(found.config, found.paths, verb, who)
    else:
        people = await remote.people() if verb == "list" else await remote.decide(verb, who)
    click.echo("\n".join(people_lines(people)))
    return 0


async def _forget(config_file: Path | None, who: str) -> int:
    """Through the daemon if one runs, which does it beside its turns; else in its database, now."""
    from gateway.operate.context import here
    from gateway.people.access import account_and_person

    meant = account_and_person(who)
    if meant is None:
        click.echo(
            "Name them as ACCOUNT/PERSON, as people list shows them: telegram/4711/12345678, or api/USER.", err=True
        )
        return PROBLEM
    found = await here(config_file)
    remote = found.remote_if_any()
    if remote is None:
        from gateway.operate.offline import forget

        click.echo("\n".join(await forget(found.config, found.paths, *meant)))
        return 0
    begun = await remote.decide("forget", who)
    if not all(one.get("known") for one in begun):
        from gateway.retention.forgetting import unknown

        click.echo(unknown(who))
    click.echo(
        "It is begun, and goes on also after a restart. outspoken status says when it is done, and what is kept."
    )
    return 0


async def _replay(config_file: Path | None, asked: ReplayRequest) -> int:
    from gateway.operate.context import load_all
    from gateway.operate.replay import run

    def configured() -> tuple[Config, Paths]:
        loaded, paths = load_all(config_file)
        return loaded.config, paths

    return 0 if await run(asked, configured, click.echo) else PROBLEM


async def _triage(config_file: Path | None, asked: TriageRequest) -> int:
    from agent_core.ports import SystemClock
    from gateway.operate.context import load_all
    from gateway.operate.triage.reading import run as triage_run

    def database() -> str | Path:
        loaded, paths = load_all(config_file)
        return loaded.config.storage.url or paths.database

    return await triage_run(asked, database, SystemClock().now_ms, click.echo)
