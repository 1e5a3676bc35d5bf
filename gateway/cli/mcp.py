"""``outspoken mcp``: the servers of tools of this configuration, looked at and tried without a model and without a gateway."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.cli.numbers import WholeNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.jsonvalue import Json


@click.group()
def mcp() -> None:
    """Servers of tools (Model Context Protocol): see docs/mcp.md."""


@mcp.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def mcp_list(config_file: Path | None, as_json: bool) -> None:
    """Begin each server, say what it can do and how safe each tool is to run again, and end it."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _list(config_file, as_json=as_json))


@mcp.command("try")
@click.argument("server")
@click.argument("tool")
@click.argument("arguments", default="{}")
@click.pass_obj
def mcp_try(config_file: Path | None, server: str, tool: str, arguments: str) -> None:
    """Run TOOL of the server SERVER with ARGUMENTS, a JSON object. It is really run; files of its result are put into ./mcp."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _try(config_file, server, tool, arguments))


@mcp.command("serve")
@click.option("--url", default="", help="Address of the gateway, if it runs elsewhere.")
@click.option("--operator", is_flag=True, help="Offer what operators may as well: explain anything, triage, send.")
@click.pass_obj
def mcp_serve(config_file: Path | None, url: str, operator: bool) -> None:
    """Be a server of tools on standard input and output, for agents and editors that begin it: they can ask the running gateway.

    OUTSPOKEN_KEY is the key with which it is asked. See docs/mcp-server.md.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _serve(config_file, url, operator=operator))


@mcp.command("login")
@click.argument("server")
@click.option(
    "--port", default=0, type=WholeNumber(0, 65_535), help="Where the browser comes back to; 0 takes a free one."
)
@click.pass_obj
def mcp_login(config_file: Path | None, server: str, port: int) -> None:
    """Log in at SERVER, in a browser here or on another machine. The login is kept in the state directory and renewed by the gateway."""
    from gateway.cli.guarded import guarded

    guarded(lambda: _login(config_file, server, port))


async def _login(config_file: Path | None, server: str, port: int) -> int:
    import sys
    import time
    from importlib.util import find_spec

    from gateway.config.misfits import MCP_FIX, NO_MCP
    from gateway.operate.context import configure_logs, load_all, prepare_places
    from gateway.operate.mcplogin import log_in
    from gateway.operate.servers import entry_of
    from gateway.operate.trying import NotTried

    loaded, paths = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    prepare_places(paths)
    try:
        entry = entry_of(loaded.config, server)
        if find_spec("mcp") is None:
            click.echo(f"{NO_MCP} {MCP_FIX}", err=True)
            return 78
        words = await log_in(entry, paths.state_dir / "mcp", port, click.echo, sys.stdin.readline, time.time)
    except NotTried as error:
        click.echo(str(error), err=True)
        return 1
    click.echo(f"{server}: {words}. A gateway that runs uses it from the next call on.")
    return 0


async def _serve(config_file: Path | None, url: str, *, operator: bool) -> int:
    from importlib.util import find_spec

    from gateway.config.misfits import MCP_FIX
    from gateway.operate.context import caller_key, configure_logs, configured_url, load_all
    from gateway.version import program_version

    if find_spec("mcp") is None:
        click.echo(f"The package that speaks the protocol is not there. {MCP_FIX}", err=True)
        return 78
    from adapters.mcpserver.doing import GatewayWay
    from adapters.mcpserver.stdio import serve_stdio
    from adapters.terminal.ask import whoever_is_here

    loaded, _ = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    server = loaded.config.server
    operator_key = server.operator_key.get_secret_value() if operator and server.operator_key else None
    where = url.rstrip("/") or configured_url(loaded.config)
    if not where:
        click.echo(
            "[server] port is 0, so nobody knows where the gateway is: say --url http://127.0.0.1:PORT.", err=True
        )
        return 78
    way = GatewayWay(where, caller_key(loaded.config), operator_key, operates=operator, user=whoever_is_here())
    await serve_stdio(program_version(), way)
    return 0


async def _list(config_file: Path | None, *, as_json: bool) -> int:
    import orjson

    from gateway.operate.context import configure_logs, load_all
    from gateway.operate.servers import looked_at
    from gateway.operate.trying import NotTried

    loaded, _ = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    try:
        found = await looked_at(loaded.config)
    except NotTried as error:
        click.echo(str(error), err=True)
        return 1
    if as_json:
        click.echo(orjson.dumps({"servers": found}, option=orjson.OPT_INDENT_2))
    else:
        click.echo("\n".join(lines(found)))
    return 0 if all(isinstance(one, dict) and one.get("state") == "ready" for one in found) else 1


def lines(found: Sequence[Json]) -> list[str]:
    """Each server, and below it its tools. Pure."""
    out: list[str] = []
    for one in found:
        assert isinstance(one, dict)
        tools = one["tools"]
        assert isinstance(tools, list)
        login = [f"  {one['login']}"] if one.get("login") else []
        why = f" – {one['words']}" if one["words"] else ""
        about = f" ({one['about']})" if one["about"] else ""
        out.append(f"{one['server']}{about}: {one['state']}{why}")
        out += login
        for tool in tools:
            assert isinstance(tool, dict)
            asks = "  (needs approval)" if tool["approval"] else ""
            off = "" if tool["name"] else "  (taken out by the configuration)"
            out.append(f"  {tool['name'] or tool['tool']}  {tool['class']}{asks}{off}")
        left_out, stderr = one["left_out"], one["stderr"]
        out += [f"  not offered: {words}" for words in (left_out if isinstance(left_out, list) else [])]
        if one["state"] != "ready" and isinstance(stderr, list):
            out += [f"  it wrote: {line}" for line in stderr]
    return out or ["No server is configured: see docs/mcp.md."]


async def _try(config_file: Path | None, server: str, tool: str, arguments: str) -> int:
    from agent_core.tools.base import ToolStatus
    from gateway.operate.context import configure_logs, load_all
    from gateway.operate.servers import tried
    from gateway.operate.trying import NotTried

    loaded, _ = load_all(config_file)
    configure_logs(loaded.config, quiet=True)
    try:
        outcome = await tried(
            loaded.config, server, tool, arguments, lambda words: click.echo(f"{tool}: {words}", err=True)
        )
    except NotTried as error:
        click.echo(str(error), err=True)
        return 1
    click.echo(outcome.text)
    return 0 if outcome.status is ToolStatus.OK else 1
