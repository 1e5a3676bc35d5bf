"""``outspoken webhooks``: how the receivers of webhooks are doing; to try one, to send again, to turn one on. Asks the gateway that runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from adapters.terminal.operator import Remote


@click.group()
def webhooks() -> None:
    """Programs that are told what happens: see docs/webhooks.md."""


@webhooks.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def webhooks_list(config_file: Path | None, as_json: bool) -> None:
    """Say how each receiver is doing, and what it was not told."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _list(config_file, as_json=as_json))


@webhooks.command("test")
@click.argument("name")
@click.pass_obj
def webhooks_test(config_file: Path | None, name: str) -> None:
    """Send the receiver NAME a message that says nothing but that it is a test."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _act(config_file, "test", name))


@webhooks.command("resend")
@click.argument("name")
@click.argument("id_", metavar="[ID]", default="")
@click.pass_obj
def webhooks_resend(config_file: Path | None, name: str, id_: str) -> None:
    """Send the receiver NAME again what was given up; or the one message with that ID, whatever became of it."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _act(config_file, "resend", name, id_))


@webhooks.command("on")
@click.argument("name")
@click.pass_obj
def webhooks_on(config_file: Path | None, name: str) -> None:
    """Tell the receiver NAME again, which had answered 410 (gone)."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _act(config_file, "on", name))


async def _remote(config_file: Path | None) -> Remote | None:
    from gateway.operate.context import here

    found = await here(config_file)
    remote = found.remote_if_any()
    if remote is None:
        click.echo("No gateway of this configuration runs, so nothing is sent. Start it: outspoken run", err=True)
    return remote


async def _list(config_file: Path | None, *, as_json: bool) -> int:
    import orjson

    from adapters.terminal.operator import webhook_lines

    remote = await _remote(config_file)
    if remote is None:
        return 1
    found = await remote.webhooks()
    text = orjson.dumps([*found], option=orjson.OPT_INDENT_2).decode() if as_json else "\n".join(webhook_lines(found))
    click.echo(text)
    return 0


async def _act(config_file: Path | None, verb: str, name: str, one: str = "") -> int:
    remote = await _remote(config_file)
    if remote is None:
        return 1
    said = await remote.webhook(verb, name, one)
    match verb:
        case "test":
            words = f"It is on its way as {said.get('sent')}; outspoken webhooks list says what came of it."
        case "resend":
            words = f"{said.get('again')} on the way again."
        case _:
            words = "It is told again." if said.get("changed") else "It was on."
    click.echo(words)
    return 0
