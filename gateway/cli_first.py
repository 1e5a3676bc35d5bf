"""The commands of the first run: ``outspoken doctor`` and ``outspoken setup``."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.pass_obj
def doctor(config_file: Path | None, as_json: bool) -> None:
    """Look at everything that a gateway needs, and say what to fix and where to click.

    Configuration, directories, database, port, model, and each platform's tokens and rights, by calls that change nothing. The
    exit status is 0 if there is no problem, 1 if there is one, 78 if the configuration has to be changed first.
    """
    from gateway.cli import guarded

    guarded(lambda: _doctor(config_file, as_json=as_json))


async def _doctor(config_file: Path | None, *, as_json: bool) -> int:
    import json

    from gateway.ops import doctor as work
    from gateway.ops.checkup import exit_status

    findings = await work.diagnose(config_file, os.environ)
    status = exit_status(findings)
    click.echo(json.dumps(work.as_json(findings, status), indent=2) if as_json else "\n".join(work.lines(findings)))
    return status
