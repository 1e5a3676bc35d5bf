"""``outspoken tools``: what tools there are, and a try of one that an operator wrote, without a model and without a gateway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from agent_core.jsonvalue import Json
    from agent_core.tools.python.tool import PythonTool
    from gateway.operate.trying import ListedTool


@click.group()
def tools() -> None:
    """The tools of the agent, and those that you write: see docs/tools.md."""


@tools.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def tools_list(config_file: Path | None, as_json: bool) -> None:
    """List the gateway's tools, your own and those of MCP servers (which are begun for it), how safe each is to run again, and what is wrong with those that cannot be used."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _list(config_file, as_json=as_json))


@tools.command("try")
@click.argument("name")
@click.argument("arguments", default="{}")
@click.pass_obj
def tools_try(config_file: Path | None, name: str, arguments: str) -> None:
    """Run the tool NAME of your own with ARGUMENTS, a JSON object. It is really run, in an empty folder."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _try(config_file, name, arguments))


async def _list(config_file: Path | None, *, as_json: bool) -> int:
    import orjson

    from gateway.operate.context import configure_logs, load_all
    from gateway.operate.servers import listed_of
    from gateway.operate.trying import listed

    loaded, _ = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    found, unusable = await listed(loaded.config)
    brought, away = await listed_of(loaded.config)
    found, unusable = [*found, *brought], [*unusable, *away]
    if as_json:
        told: dict[str, Json] = {
            "tools": [one.as_json() for one in found],
            "unusable": [{"source": one.source, "why": one.why} for one in unusable],
        }
        click.echo(orjson.dumps(told, option=orjson.OPT_INDENT_2))
    else:
        click.echo("\n".join(lines(found)))
    for one in unusable:
        click.echo(f"{one.source}: {one.why}.", err=True)
    return 1 if unusable else 0


def lines(found: list[ListedTool]) -> list[str]:
    """A line for each tool. Pure."""
    wide = max((len(one.name) for one in found), default=0)
    said = {True: "", False: "  (taken out by the configuration)"}
    return [f"{one.name:<{wide}}  {one.effect:<6}  {one.source}{said[one.offered]}" for one in found]


async def _try(config_file: Path | None, name: str, arguments: str) -> int:
    from agent_core.tools.base import ToolStatus
    from gateway.operate.context import configure_logs, load_all
    from gateway.operate.trying import NotTried, tried

    loaded, _ = load_all(config_file)
    configure_logs(loaded.config, quiet=True)

    def shown(tool: PythonTool, words: str) -> None:
        click.echo(f"{tool.spec.name}: {words}", err=True)

    try:
        outcome, printed = await tried(loaded.config, name, arguments, shown)
    except NotTried as error:
        click.echo(str(error), err=True)
        return 1
    if printed:
        click.echo(f"It printed:\n{printed.rstrip()}", err=True)
    click.echo(outcome.text)
    return 0 if outcome.status is ToolStatus.OK else 1
