"""``outspoken db``: check the database, back it up, put a backup back."""

from __future__ import annotations

from pathlib import Path

import click

FILE = click.Path(dir_okay=False, resolve_path=True, path_type=Path)


@click.group()
def db() -> None:
    """Check the database, back it up while the gateway runs, or put a backup back."""


@db.command("check")
@click.option(
    "--quick", is_flag=True, help="Only whether pages can be read; not indexes against tables, nor references."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def check_command(config_file: Path | None, quick: bool, as_json: bool) -> None:
    """Look at every page of the database, its schema, its references and its deliveries. Changes nothing; the gateway may be running.

    The exit status is 0 if all is sound, 1 if something is damaged, 75 if it cannot be opened just now, 78 if a person must change something.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _check(config_file, quick=quick, as_json=as_json))


async def _check(config_file: Path | None, *, quick: bool, as_json: bool) -> int:
    import json

    from gateway.operate.context import load_all
    from gateway.operate.database import checked
    from gateway.operate.doctor import looks as work
    from gateway.operate.doctor.looks import exit_status

    loaded, paths = load_all(config_file)
    findings = await checked(loaded.config, paths, thorough=not quick)
    status = exit_status(findings)
    click.echo(json.dumps(work.as_json(findings, status), indent=2) if as_json else "\n".join(work.lines(findings)))
    return status


@db.command("backup")
@click.argument("file", type=FILE)
@click.pass_obj
def backup_command(config_file: Path | None, file: Path) -> None:
    """Write a whole copy of the database to FILE, while the gateway runs. FILE must not be there yet.

    The copy is looked at before it gets its name, and only you can read it. The exit status is 1 if there is none.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _backup(config_file, file))


async def _backup(config_file: Path | None, file: Path) -> int:
    from gateway.operate import database as work
    from gateway.operate.context import load_all

    loaded, paths = load_all(config_file)
    database = work.sqlite_path(loaded.config, paths)
    if database is None:
        click.echo(work.postgres_words(loaded.config, paths), err=True)
        return 1
    workspaces = loaded.config.tools.workspace or paths.workspaces
    click.echo("\n".join(await work.backup(database, file, paths, workspaces)))
    return 0


@db.command("restore")
@click.argument("file", type=FILE)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with what was open in the backup; right if it is of the moment when the gateway stopped.",
)
@click.pass_obj
def restore_command(config_file: Path | None, file: Path, resume: bool) -> None:
    """Put the backup FILE in the place of the database; the gateway must be stopped. The database that is there is kept beside it.

    What was open when the backup was made is set aside, because it was most likely done since: nobody is answered twice. The exit status
    is 1 if nothing was changed, 75 if a gateway runs.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _restore(config_file, file, resume=resume))


async def _restore(config_file: Path | None, file: Path, *, resume: bool) -> int:
    from agent_core.ports import SystemClock
    from gateway.operate import database as work
    from gateway.operate.context import load_all

    loaded, paths = load_all(config_file)
    database = work.sqlite_path(loaded.config, paths)
    if database is None:
        click.echo(work.postgres_words(loaded.config, paths), err=True)
        return 1
    done = await work.restore(file, database, SystemClock().now_ms(), resume=resume)
    click.echo("\n".join(work.restored_lines(done, database, resume=resume)))
    return 0
