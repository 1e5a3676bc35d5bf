"""Ids that begin with a minus sign are ids wherever they stand among the arguments."""

from __future__ import annotations

import click
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from gateway.cli.ids import IdCommand, ids_last


@click.command(cls=IdCommand)
@click.argument("id_")
@click.option("--json", "as_json", is_flag=True)
@click.option("--at", default="")
def shown(id_: str, as_json: bool, at: str) -> None:
    click.echo(f"{id_} {as_json} {at}")


@given(st.integers(-(10**15), 10**15), st.permutations([["--json"], ["--at", "14:05"]]), st.integers(0, 2))
def test_an_id_is_taken_as_it_stands(number: int, options: list[list[str]], place: int) -> None:
    words = [*options[:place], [str(number)], *options[place:]]
    result = CliRunner().invoke(shown, [one for group in words for one in group])
    assert result.output == f"{number} True 14:05\n"


def test_what_is_no_id_is_an_option_still() -> None:
    assert "No such option" in CliRunner().invoke(shown, ["--jsn", "1"]).output
    assert ids_last(["--json", "--", "-5"]) == ["--json", "--", "-5"]
