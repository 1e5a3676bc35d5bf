"""The commands of the first run: ``outspoken doctor`` and ``outspoken setup``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click
from typing_extensions import override

from gateway.cli.numbers import Number

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option(
    "--seconds",
    default=15.0,
    show_default=True,
    type=Number(1, 600),
    help="How long it may take: a server that loads its model first, or a large database, may need more.",
)
@click.pass_obj
def doctor(config_file: Path | None, as_json: bool, seconds: float) -> None:
    """Look at everything that a gateway needs, and say what to fix and where to click.

    Configuration, directories, database, port, model, and each platform's tokens and rights, by calls that change nothing, side by
    side. What has ended is said meanwhile on standard error. The exit status is 0 if there is no problem, 1 if there is one, 78 if
    the configuration has to be changed first.
    """
    from gateway.cli.guarded import guarded

    guarded(lambda: _doctor(config_file, seconds, as_json=as_json))


async def _doctor(config_file: Path | None, seconds: float, *, as_json: bool) -> int:
    import json

    from gateway.observe.logging import silence
    from gateway.operate.doctor import looks as work
    from gateway.operate.doctor.looks import exit_status

    def progress(words: str) -> None:
        if not as_json:
            click.echo(words, err=True)

    with silence():
        findings = await work.diagnose(config_file, os.environ, seconds, progress)
    status = exit_status(findings)
    click.echo(json.dumps(work.as_json(findings, status), indent=2) if as_json else "\n".join(work.lines(findings)))
    return status


class ServiceChoice(click.ParamType[str]):
    """A model, or one of the platforms. Which there are is looked up when somebody asks, not at each start of the program."""

    name = "topic"

    @override
    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"[{'|'.join(self._names())}]"

    @override
    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(click.Choice(self._names()).convert(value, param, ctx))

    @override
    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return click.Choice(self._names()).shell_complete(ctx, param, incomplete)

    @staticmethod
    def _names() -> list[str]:
        from adapters.platforms import names

        return ["model", *names()]


class WithPlatforms(click.Command):
    """A command that also has the options which platforms bring along; they come as ``platforms``, by section and key."""

    @override
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        *own, help_ = super().get_params(ctx)
        return [*own, *(option for option, _ in _options()), help_]

    @override
    def invoke(self, ctx: click.Context) -> object:
        given = {key: str(ctx.params.pop(option.name or "", "") or "") for option, key in _options()}
        ctx.params["platforms"] = given
        return super().invoke(ctx)


def _options() -> list[tuple[click.Option, tuple[str, str]]]:
    """The options of all platforms, each with its section and key; two that have the same name bear their platform's."""
    from adapters.platforms import platforms

    found: dict[str, tuple[click.Option, tuple[str, str]]] = {}
    for one in platforms():
        for key, words in one.setup_options.items():
            name = key if key not in found else f"{one.name}_{key}"
            found[name] = (click.Option([f"--{name.replace('_', '-')}"], default="", help=words), (one.name, key))
    return [*found.values()]


@click.command(cls=WithPlatforms)
@click.argument("topics", nargs=-1, type=ServiceChoice())
@click.option("--yes", is_flag=True, help="Ask nothing: what is not given by the environment or here is not set up.")
@click.option("--base-url", default="", help="Address of an OpenAI-compatible API (or OPENAI_BASE_URL).")
@click.option("--model", default="", help="Name of the model.")
@click.pass_obj
def setup(
    config_file: Path | None,
    topics: tuple[str, ...],
    yes: bool,
    base_url: str,
    model: str,
    platforms: Mapping[tuple[str, str], str],
) -> None:
    """Set up a model and the chat platforms: asks for each (or only for TOPICS), tries every token, and then writes it.

    Everything is written into the file .env beside the configuration file, which only you can read; the configuration file
    itself is not touched. Tokens are typed unseen, or come from the environment (OPENAI_API_KEY, TELEGRAM_BOT_TOKEN,
    DISCORD_BOT_TOKEN, SLACK_BOT_TOKEN, SLACK_APP_TOKEN), never from the command line, where others could read them.

    \b
      outspoken setup                                      # asks for everything
      outspoken setup discord                              # only Discord
      TELEGRAM_BOT_TOKEN=… outspoken setup telegram --yes  # in a script
    """
    from gateway.config.paths import PathsError, find_paths
    from gateway.operate.setup.prompts import Prompts
    from gateway.operate.setup.services import Given
    from gateway.operate.setup.wizard import Wizard

    given = Given({("model", "base_url"): base_url, ("model", "name"): model, **platforms})
    try:
        file = config_file or find_paths(os.environ).config_file
        status = Wizard(Prompts(asks=not yes), file, os.environ, given).run(topics)
    except PathsError as error:
        click.echo(str(error), err=True)
        status = 78
    except (KeyboardInterrupt, click.Abort):
        click.echo("\nStopped. What was not complete was not written.", err=True)
        status = 130
    sys.stdout.flush()
    sys.exit(status)
