"""What the command line says before anything is chosen: the next step, the completion of a shell; and what it makes of odd terminals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agent_core.records import dataclass
from gateway.version import program_version

SHELLS = ("bash", "zsh", "fish")


@dataclass(frozen=True, slots=True)
class MachineStanding:
    """How things stand on this machine."""

    problem: str = ""
    """Why the configuration cannot be used; empty if it can."""
    trouble: str = ""
    """Why the gateway that runs cannot be asked; empty if none runs, or it answers."""
    url: str = ""
    """Where a gateway answers; empty if none does."""
    wanted_url: str = ""
    """Where one would answer; empty if nobody knows before it has started."""
    rehearsal: bool = True
    """No model is set up."""
    platforms: tuple[str, ...] = ()
    """Those that are configured."""
    offered: tuple[str, ...] = ()
    """All that there are, as people call them."""


def next_steps(standing: MachineStanding) -> Sequence[str]:
    """What to type next, the nearest first. Pure."""
    if standing.problem:
        return (
            standing.problem,
            "",
            "  outspoken config check   after you have changed it",
            "  outspoken doctor         everything that is wrong, with what to do",
        )
    if standing.trouble:
        return (standing.trouble, "", "  outspoken doctor         everything that is wrong, with what to do")
    steps = ["  outspoken --help         everything else, with examples"]
    if standing.rehearsal or not standing.platforms:
        missing = ", ".join((*(["a model"] if standing.rehearsal else []), *standing.offered))
        steps.insert(0, f"  outspoken setup          connect {missing}")
    if standing.url:
        head = f"A gateway runs at {standing.url} (the web chat is there)."
        return (
            head,
            "",
            "  outspoken chat           talk to it in this terminal",
            "  outspoken status         how it is doing",
            *steps,
        )
    model = "No gateway is running, and no model is set up: a rehearsal model answers, which needs no key."
    where = f"the web chat is then at {standing.wanted_url}" if standing.wanted_url else "it says where the web chat is"
    head = model if standing.rehearsal else "A model is set up, and no gateway is running."
    return (
        head,
        "",
        f"  outspoken run            start it; {where}",
        "  outspoken chat           or just talk, in this terminal",
        *steps,
    )


async def standing(config_file: Path | None) -> MachineStanding:
    """Look how things stand; raises nothing that a configuration can cause."""
    from adapters.platforms import titles
    from gateway.config.paths import PathsError
    from gateway.config.reading import ConfigError
    from gateway.operate.context import configured_url, find_gateway, load_all, none_answers

    try:
        loaded, paths = load_all(config_file)
    except (ConfigError, PathsError) as error:
        return MachineStanding(problem=str(error))
    config = loaded.config
    found = await find_gateway(config, paths)
    if found.pid:
        return MachineStanding(trouble=none_answers(found, config))
    return MachineStanding(
        url=found.url,
        wanted_url=configured_url(config),
        rehearsal=config.model.rehearsal,
        platforms=tuple(one.name for one, _ in config.chats()),
        offered=titles(),
    )


async def say_next(config_file: Path | None) -> int:
    """Print what to do next."""
    click.echo(f"outspoken {program_version()}: one LLM agent, many chats, never silent.\n")
    click.echo("\n".join(next_steps(await standing(config_file))))
    return 0


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script with which a SHELL completes commands and options at the Tab key."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(context.find_root().command, {}, "outspoken", "_OUTSPOKEN_COMPLETE").source())
