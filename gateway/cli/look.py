"""The commands that look: ``outspoken explain``, ``outspoken bundle``, ``outspoken health``. They read, and change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.ids import IdCommand
from gateway.cli.numbers import MOST_SECONDS, Number

if TYPE_CHECKING:
    from gateway.config.paths import Paths
    from gateway.config.sections import Config


@click.command(cls=IdCommand)
@click.argument("id_", metavar="[ID]", default="")
@click.option("--chat", default="", metavar="PLATFORM/CHAT", help="Instead of an ID: a chat, together with --at.")
@click.option("--at", default="", metavar="TIME", help='When somebody wrote there: "14:05" or "2026-11-21 14:05".')
@click.option("--show-text", is_flag=True, help="Show what was said; else only how long it was.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def explain(config_file: Path | None, id_: str, chat: str, at: str, show_text: bool, as_json: bool) -> None:
    """Say in at most 15 lines what became of something, and why.

    ID is what you have: a turn, a session, a message (its number here, or the platform's id), a delivery, an API request, an
    error reference (err_…), an incident. "Why was there no answer?" is asked with --chat and --at. The gateway may be running.
    The exit status is 1 if nothing is stored of it.
    """
    from gateway.cli.guarded import guarded

    if bool(id_) == bool(chat) or bool(chat) != bool(at):
        raise click.UsageError("Name an ID, or a chat and a time with --chat and --at.")
    guarded(lambda: _explain(config_file, id_, chat, at, show_text=show_text, as_json=as_json))


async def _explain(config_file: Path | None, id_: str, chat: str, at: str, *, show_text: bool, as_json: bool) -> int:
    from datetime import datetime

    import orjson

    from agent_core.ports import SystemClock
    from agent_core.store.reading import open_reads
    from gateway.config.reading import redactor_of
    from gateway.explain.ids import when
    from gateway.explain.story import Explainer, local_zone
    from gateway.operate.context import load_all

    loaded, paths = load_all(config_file)
    asked = round(when(at, datetime.now(local_zone())).timestamp() * 1000) if chat else 0
    async with open_reads(loaded.config.storage.url or paths.database) as reads:
        days = loaded.config.retention.bodies_days
        explainer = Explainer(reads, SystemClock().now_ms, show_text=show_text, kept_days=days)
        found = await explainer.chat_at(chat, asked) if chat else await explainer.of(id_)
    text = orjson.dumps(found.body(), option=orjson.OPT_INDENT_2).decode() if as_json else found.text(local_zone())
    click.echo(redactor_of(loaded.config).redact(text))
    return 0 if found.found else 1


@click.command(cls=IdCommand)
@click.argument("turn")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Where to; else outspoken-TURN.tar.gz here."
)
@click.pass_obj
def bundle(config_file: Path | None, turn: str, output: Path | None) -> None:
    """Write one archive about a TURN that can be handed on: no secret and no word of the conversation is in it.

    "outspoken replay --file ARCHIVE" decides the turn again on another machine.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _bundle(config_file, turn, output))


@click.command()
@click.argument("question", type=click.Choice(["alive", "ready", "well"]), default="alive")
@click.option(
    "--timeout",
    default=4.0,
    show_default=True,
    type=Number(untold=MOST_SECONDS),
    help="Seconds to wait for the answer.",
)
@click.pass_obj
def health(config_file: Path | None, question: str, timeout: float) -> None:
    """Ask the gateway of this configuration how it is, for supervisors: exit status 0 is yes, 1 is no.

    \b
    alive  its event loop turns: whoever would start it again asks this
    ready  it can take messages and keep them: whoever would send people elsewhere asks this
    well   besides, all platforms are connected, and there is nothing to tell operators: for people
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _health(config_file, question, timeout))


async def _health(config_file: Path | None, question: str, seconds: float) -> int:
    from adapters.checks.probe import Question
    from adapters.checks.probe import health as ask
    from gateway.operate.context import configured_url, load_all

    loaded, _ = load_all(config_file)
    url, key = configured_url(loaded.config), loaded.config.server.operator_key
    if not url:
        click.echo("[server] port is 0, so nobody knows where the gateway listens. Set a port.", err=True)
        return 1
    asked = Question(question)
    secret = key.get_secret_value() if key and asked is Question.WELL else None
    said = await ask(url, asked, secret, seconds)
    click.echo(f"{question}: yes" if said.yes else "\n".join((f"{question}: no", *said.why)), err=not said.yes)
    return 0 if said.yes else 1


async def _metrics(config: Config, paths: Paths) -> str:
    """What the gateway on this machine has counted; empty if none runs, or it does not answer."""
    from adapters.terminal.operator import GatewayLost, GatewayRefused
    from gateway.operate.context import Here, find_gateway

    found = await find_gateway(config, paths)
    if not found.url:
        return f"# {found.trouble}\n" if found.trouble else ""
    try:
        return await Here(config, paths, found).remote().metrics()
    except (GatewayLost, GatewayRefused) as error:
        return f"# {error}\n"


async def _bundle(config_file: Path | None, turn: str, output: Path | None) -> int:
    import os

    from gateway.operate.bundle import write
    from gateway.operate.context import load_all

    loaded, paths = load_all(config_file)
    to = output or Path(f"outspoken-{turn}.tar.gz")
    click.echo(await write(turn, to, loaded.config, paths, os.environ, await _metrics(loaded.config, paths)))
    return 0
