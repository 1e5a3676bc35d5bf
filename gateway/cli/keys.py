"""``outspoken keys``: keys of the API under names, made, looked at, changed and revoked; through the gateway if one runs, else in its database."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from gateway.cli.numbers import MOST_MONEY, Number, WholeNumber

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_core.jsonvalue import Json

F = TypeVar("F", bound=Callable[..., object])
NANOS = 1_000_000_000
DAY_SECONDS = 24 * 3600


@click.group()
def keys() -> None:
    """Keys for programs that use the API, each with its owner and limits.

    The key in [server] api_key goes on beside them and may do everything.
    """


_TERMS = (
    click.option("--owner", help="Whose requests these are: memory, files, limits go by it. Without one: nobody's."),
    click.option(
        "--names-users/--no-names-users",
        default=None,
        help="Its requests may name their user (X-OpenWebUI-User-Id, X-Outspoken-User).",
    ),
    click.option(
        "--models",
        help="Models and agents it may ask for, separated by commas, the first if none is named; empty: all.",
    ),
    click.option("--tools", help="Tools of the gateway that it is offered, separated by commas."),
    click.option("--no-tools", is_flag=True, help="No tools of the gateway."),
    click.option("--all-tools", is_flag=True, help="All tools of the gateway."),
    click.option("--day-tokens", type=WholeNumber(), help="Tokens in a day; 0: as [budgets] key_tokens."),
    click.option("--day-money", type=Number(untold=MOST_MONEY), help="Money in a day; 0: as [budgets] key_money."),
    click.option("--per-minute", type=WholeNumber(0, 100_000), help="Requests in a minute; 0: no limit."),
    click.option(
        "--errors",
        type=click.Choice(["words", "status", "default"]),
        help="Where nothing came of a request: words in the answer, or an HTTP status.",
    ),
    click.option("--thinking", type=click.Choice(["show", "hide", "default"]), help="What the model thinks."),
    click.option(
        "--tools-from",
        type=click.Choice(["none", "client", "gateway", "both", "default"]),
        help="Whose tools its requests use where they do not say themselves, and no others where they do.",
    ),
    click.option(
        "--expires-days",
        type=Number(0, 36_500),
        help="It opens nothing any more after so many days; 0: never.",
    ),
)


def _with_terms(command: F) -> F:
    """The options of what a key may."""
    for option in reversed(_TERMS):
        command = option(command)
    return command


def _list(text: str) -> list[Json]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _terms(given: Mapping[str, object]) -> dict[str, Json]:
    """What was said of the terms; what was not stays as it is."""
    found: dict[str, Json] = {}
    for option, name in (("owner", "owner"), ("day_tokens", "day_tokens"), ("per_minute", "minute_requests")):
        value = given.get(option)
        if isinstance(value, str | int):
            found[name] = value
    if isinstance(named := given.get("names_users"), bool):
        found["names_users"] = named
    if isinstance(models := given.get("models"), str):
        found["models"] = _list(models)
    if isinstance(tools := given.get("tools"), str):
        found["tools"] = _list(tools)
    if sum(bool(given.get(one)) for one in ("tools", "no_tools", "all_tools")) > 1:
        raise click.UsageError("Give one of --tools, --no-tools and --all-tools.")
    if given.get("no_tools"):
        found["tools"] = []
    if given.get("all_tools"):
        found["tools"] = None
    if isinstance(money := given.get("day_money"), float):
        found["day_nanos"] = round(money * NANOS)
    if isinstance(errors := given.get("errors"), str):
        found["errors"] = None if errors == "default" else errors
    if isinstance(thinking := given.get("thinking"), str):
        found["thinking"] = {"show": True, "hide": False}.get(thinking)
    if isinstance(source := given.get("tools_from"), str):
        found["tools_from"] = None if source == "default" else source
    if isinstance(days := given.get("expires_days"), float):
        found["expires_at"] = round((time.time() + days * DAY_SECONDS) * 1000) if days else 0
    return found


@keys.command("add")
@click.argument("name")
@_with_terms
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def add_command(config_file: Path | None, name: str, *, as_json: bool, **given: object) -> None:
    """Make a key called NAME and print it, this once: it is kept as a digest only."""
    _guarded(config_file, "add", name, {"terms": _terms(given)}, as_json=as_json)


@keys.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def list_command(config_file: Path | None, *, as_json: bool) -> None:
    """List all keys, also those that were revoked, with what they used today and when they were used last."""
    _guarded(config_file, "list", "", {}, as_json=as_json)


@keys.command("show")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def show_command(config_file: Path | None, name: str, *, as_json: bool) -> None:
    """Show what the key NAME stands for and may; not the key, which nobody has but who was given it."""
    _guarded(config_file, "show", name, {}, as_json=as_json)


@keys.command("change")
@click.argument("name")
@_with_terms
@click.pass_obj
def change_command(config_file: Path | None, name: str, **given: object) -> None:
    """Change what the key NAME may; what is not named here stays. It counts from the next request on."""
    terms = _terms(given)
    if not terms:
        raise click.UsageError("Say what is to change, such as --day-tokens 500000.")
    _guarded(config_file, "change", name, {"terms": terms})


@keys.command("rotate")
@click.argument("name")
@click.option(
    "--keep-minutes",
    default=0,
    type=WholeNumber(0, 7 * 24 * 60),
    help="The one before is good for so long; 0: no more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def rotate_command(config_file: Path | None, name: str, keep_minutes: int, *, as_json: bool) -> None:
    """Make another key for NAME, with the same owner and limits, and print it, this once."""
    _guarded(config_file, "rotate", name, {"keep_seconds": keep_minutes * 60}, as_json=as_json)


@keys.command("revoke")
@click.argument("name")
@click.pass_obj
def revoke_command(config_file: Path | None, name: str) -> None:
    """Make the key NAME open nothing any more, at once. What it began ends; its name is never given again."""
    _guarded(config_file, "revoke", name, {})


def _guarded(
    config_file: Path | None, verb: str, name: str, more: Mapping[str, Json], *, as_json: bool = False
) -> None:
    from gateway.cli.guarded import guarded

    guarded(lambda: _done(config_file, verb, name, more, as_json=as_json))


async def _done(config_file: Path | None, verb: str, name: str, more: Mapping[str, Json], *, as_json: bool) -> int:
    """Through the daemon if one runs; else in its database, which nobody else holds then."""
    import json

    from adapters.terminal.keylines import key_lines, keys_lines
    from gateway.cli.guarded import PROBLEM
    from gateway.operate.context import here

    found = await here(config_file)
    remote = found.remote_if_any()
    looks = verb in ("list", "show")
    secret = ""
    tables: Sequence[Mapping[str, Json]]
    if remote is None:
        from gateway.operate.context import configure_logs
        from gateway.operate.offline import keys_of

        configure_logs(found.config, quiet=True)
        tables, secret = await keys_of(found.config, found.paths, "list" if looks else verb, name, more)
    elif looks:
        tables = await remote.keys()
    else:
        table, secret = await remote.key(verb, name, more)
        tables = [table]
    if verb == "show":
        tables = [one for one in tables if one.get("name") == name]
        if not tables:
            click.echo(f"There is no key called {name}. outspoken keys list shows all.", err=True)
            return PROBLEM
    if as_json:
        whole: dict[str, Json] = {"keys": [dict(one) for one in tables]} if verb == "list" else {**tables[0]}
        click.echo(json.dumps(whole | ({"key": secret} if secret else {}), indent=2))
        return 0
    currency, now = found.config.budgets.currency, round(time.time() * 1000)
    click.echo("\n".join(keys_lines(tables, currency, now) if verb == "list" else key_lines(tables[0], currency, now)))
    if secret:
        click.echo("This is the key. It is shown this once; whoever has it is this key:", err=True)
        click.echo(secret)
    return 0
