"""``outspoken approvals``: what waits for somebody's word, wherever it is asked; to look at one, to give it or to deny it. Asks the gateway that runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from adapters.terminal.operator import Remote, Table


@click.group()
def approvals() -> None:
    """Calls that wait for a person's approval: see docs/approvals.md."""


@approvals.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def approvals_list(config_file: Path | None, as_json: bool) -> None:
    """List what waits: what, where, who asked, since when and until when."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _list(config_file, as_json=as_json))


@approvals.command("show")
@click.argument("id_", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def approvals_show(config_file: Path | None, id_: str, as_json: bool) -> None:
    """Show all of one: the question, every argument, and what would become of a file. ID may be the end of it alone."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _show(config_file, id_, as_json=as_json))


@approvals.command("approve")
@click.argument("id_", metavar="ID")
@click.option(
    "--for", "lasts", type=click.Choice(["once", "conversation", "always"]), default="once", help="For how long it counts."
)  # fmt: skip
@click.pass_obj
def approvals_approve(config_file: Path | None, id_: str, lasts: str) -> None:
    """Let the call ID run."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _decide(config_file, id_, approve=True, lasts=lasts))


@approvals.command("deny")
@click.argument("id_", metavar="ID")
@click.pass_obj
def approvals_deny(config_file: Path | None, id_: str) -> None:
    """Do not let the call ID run; its turn goes on without it."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _decide(config_file, id_, approve=False, lasts="once"))


async def _remote(config_file: Path | None) -> Remote | None:
    from gateway.operate.context import here

    remote = (await here(config_file)).remote_if_any()
    if remote is None:
        click.echo("No gateway of this configuration runs, so nothing waits. Start it: outspoken run", err=True)
    return remote


async def _list(config_file: Path | None, *, as_json: bool) -> int:
    import orjson

    from adapters.terminal.approvals import approvals_lines

    remote = await _remote(config_file)
    if remote is None:
        return 1
    found = await remote.approvals()
    whole = orjson.dumps({"approvals": [*found]}, option=orjson.OPT_INDENT_2).decode()
    click.echo(whole if as_json else "\n".join(approvals_lines(found)))
    return 0


async def _named(remote: Remote, name: str) -> Table | None:
    """The one that is meant; None, and said why, if it is none or not one alone."""
    from adapters.terminal.approvals import not_one_words

    found = [one for one in await remote.approvals() if name and str(one.get("id")).endswith(name)]
    if len(found) != 1:
        click.echo(not_one_words(name, len(found)), err=True)
        return None
    return found[0]


async def _show(config_file: Path | None, name: str, *, as_json: bool) -> int:
    import orjson

    from adapters.terminal.approvals import approval_lines

    remote = await _remote(config_file)
    one = await _named(remote, name) if remote is not None else None
    if one is None:
        return 1
    click.echo(orjson.dumps(one, option=orjson.OPT_INDENT_2).decode() if as_json else "\n".join(approval_lines(one)))
    return 0


async def _decide(config_file: Path | None, name: str, *, approve: bool, lasts: str) -> int:
    from adapters.terminal.approvals import offers_of

    remote = await _remote(config_file)
    if remote is None:
        return 1
    if not name.startswith("appr_"):  # whole, it is asked as it is: it may be over, and that is said then
        one = await _named(remote, name)
        if one is None:
            return 1
        name = str(one.get("id"))
        if approve and lasts not in (offers := offers_of(one)):
            click.echo(f"It can be approved only so: {', '.join(offers)}. Nothing was decided.", err=True)
            return 1
    done = await remote.decide_call(name, approve=approve, lasts=lasts)
    how = {"conversation": " for its conversation", "always": " always for such calls"}.get(str(done.get("lasts")), "")
    click.echo(f"Approved{how}: it runs now." if done.get("status") == "approved" else "Denied: it does not run.")
    return 0
