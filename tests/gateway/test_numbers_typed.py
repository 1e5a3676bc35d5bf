"""Numbers on the command line: whatever somebody types, it is taken or refused in words."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from gateway.cli.command import cli
from gateway.cli.numbers import MOST, Number, WholeNumber

ODD = (
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e400",
    "9" * 40,
    "-" + "9" * 5_000,
    "9" * 5_000,
    "1_0x",
    "",
    " ",
    "0x10",
    "\u0661\u0661x",
)


def commands(of: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, of
    if isinstance(of, click.Group):
        context = click.Context(of)
        for name in of.list_commands(context):
            if (inner := of.get_command(context, name)) is not None:
                yield from commands(inner, (*path, name))


NUMBERS = [
    (path, option)
    for path, command in commands(cli)
    for option in command.params
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
]


def test_every_number_of_every_command_is_of_a_kind_with_bounds() -> None:
    assert len(NUMBERS) > 8
    assert [(path, one.name) for path, one in NUMBERS if not isinstance(one.type, Number | WholeNumber)] == []


@pytest.mark.parametrize(("path", "option"), NUMBERS)
def test_a_number_that_is_none_or_far_too_large_is_refused_in_words(
    path: tuple[str, ...], option: click.Parameter
) -> None:
    for typed in ODD:
        ran = CliRunner().invoke(cli, [*path, f"{option.opts[-1]}={typed}", "--no-such-option"])
        assert ran.exit_code == 2, (path, typed, ran.output)
        assert ran.exception is None or isinstance(ran.exception, SystemExit)


def test_what_is_refused_is_named_with_its_bounds() -> None:
    for kind, typed in ((Number(), "nan"), (Number(), "inf"), (WholeNumber(), str(MOST + 1)), (Number(0, 5), "nan")):
        with pytest.raises(click.BadParameter) as refused:
            kind.convert(typed, None, None)
        assert typed in refused.value.message
    assert (Number().convert("1.5", None, None), WholeNumber(1).convert("7", None, None)) == (1.5, 7)
