"""Commands whose argument is an id as any page shows it: some of them begin with a minus sign, as those of Telegram's groups do."""

from __future__ import annotations

from collections.abc import Sequence

import click
from typing_extensions import override


class IdCommand(click.Command):
    """A command that takes ids: what begins with a minus sign and a digit is one, and no option."""

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ids_last(args))


def ids_last(args: Sequence[str]) -> list[str]:
    """The arguments with such ids behind all options, where no option is looked for. Pure."""
    end = args.index("--") if "--" in args else len(args)
    ids = [one for one in args[:end] if one[:1] == "-" and one[1:2].isdigit()]
    if not ids:
        return [*args]
    return [*(one for one in args[:end] if one not in ids), "--", *ids, *args[end + 1 :]]
