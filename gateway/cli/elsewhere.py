"""Commands whose modules are loaded when somebody types or lists them: a gateway that runs needs one command of forty."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click
from typing_extensions import override

from gateway.cli.examples import with_examples


def config_first(words: list[str]) -> list[str]:
    """What was typed, with the configuration file in front: it may be named behind the command, too. Behind `--` nothing is an option."""
    end = words.index("--") if "--" in words else len(words)
    first, rest, left = list[str](), list[str](), iter(words[:end])
    for word in left:
        if word == "--config":
            if (value := next(left, None)) is None:
                return [word]  # click says what is missing
            first += (word, value)
        elif word.startswith("--config="):
            first.append(word)
        else:
            rest.append(word)
    return first + rest + words[end:]


class LateCommands(click.Group):
    """The group of all: with commands of its own, and with some of other modules."""

    elsewhere: Mapping[str, str] = {}
    """The modules of these, by their names; each has its command under that name."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, config_first(args))

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*self.commands, *self.elsewhere})

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = self.elsewhere.get(cmd_name)
        if cmd_name not in self.commands and module is not None:
            found: click.Command = getattr(import_module(module), cmd_name)
            with_examples(found, cmd_name)
            self.add_command(found)
        return super().get_command(ctx, cmd_name)

    @override
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None:
            for name in self.elsewhere:  # the nearest name is looked for among those that are there
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)
