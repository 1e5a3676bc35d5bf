"""``outspoken audit``: which laws what is stored breaks."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.numbers import MOST_SECONDS, Number


@click.command()
@click.option(
    "--late", type=Number(untold=MOST_SECONDS), default=None, metavar="SECONDS",
    help="How long something may wait before it counts as forgotten; else [audit] late_seconds.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def audit(config_file: Path | None, late: float | None, *, as_json: bool) -> None:
    """Look through the whole database for a message, a turn, a part of an answer or an amount that is not as it must be.

    Reads only; the gateway may be running. The exit status is 0 if every law is kept, 1 if one is broken, 75 or 78 if that cannot be
    found out.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _audit(config_file, late, as_json=as_json))


async def _audit(config_file: Path | None, late: float | None, *, as_json: bool) -> int:
    import json

    from agent_core.ports import SystemClock
    from gateway.laws import words
    from gateway.operate.auditing import audited
    from gateway.operate.context import load_all

    def progress(words: str) -> None:
        if not as_json:
            click.echo(words, err=True)

    loaded, paths = load_all(config_file)
    found = await audited(loaded.config, paths, SystemClock(), late, progress)
    click.echo(json.dumps(words.report(found), indent=2) if as_json else "\n".join(words.lines(found)))
    return 1 if found.breaches else 0
