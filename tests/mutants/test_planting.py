"""A mutant that is planted in the running process is what the tests meet; and those are asked first that are quick and near."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.mutants.making import mutants
from tests.mutants.planting import NotPlanted, Planter
from tests.mutants.reach import Seen, nearest

SOURCE = """
MOST = 3

class Door:
    def opens(self, who):
        def known(name):
            return name == "ada"
        return known(who)

def room(n):
    return n < 5
"""


def imported(folder: Path) -> ModuleType:
    file = folder / "door.py"
    file.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("door", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_planted_is_run_by_whoever_has_imported_it(tmp_path: Path) -> None:
    module = imported(tmp_path)
    door, room, planter = module.Door(), module.room, Planter()
    assert not room(5)
    assert door.opens("ada")
    for one in mutants("door.py", SOURCE):
        if one.within and one.kind == "comparison":
            planter.plant(tmp_path, "door.py", one.tree)
    assert room(5)
    assert not door.opens("ada")
    named = {one.within for one in mutants("door.py", SOURCE)}
    assert named == {"", "Door.opens", "room"}


def test_what_is_done_at_the_import_cannot_be_planted(tmp_path: Path) -> None:
    imported(tmp_path)
    constant = next(one for one in mutants("door.py", SOURCE) if not one.within)
    with pytest.raises(NotPlanted):
        Planter().plant(tmp_path, "door.py", constant.tree)


def test_quick_tests_are_asked_first_and_one_of_each_row_of_parameters() -> None:
    here = frozenset({"m.py:f"})
    tests = {
        "a[1]": Seen(0.01, here),
        "a[2]": Seen(0.01, here),
        "b": Seen(0.011, here),
        "slow": Seen(9, here),
        "elsewhere": Seen(0.001, frozenset()),
    }
    assert nearest("m.py:f", tests, 10) == ["a[1]", "b", "a[2]", "slow"]
    assert nearest("m.py:f", tests, 1) == ["a[1]", "b", "a[2]"]
    assert nearest("m.py:g", tests, 1) == []
