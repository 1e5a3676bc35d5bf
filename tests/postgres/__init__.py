"""The daemon on PostgreSQL, in the suites that it passes on SQLite: what they import here runs once more with a server beneath it.

A representative part of each; with TESTS_ALL_POSTGRES set (`make soak`) all of it, but for what looks into the file itself.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from importlib import import_module
from typing import Any

WHOLE = bool(os.environ.get("TESTS_ALL_POSTGRES"))


def suite_of(module: str, some: Collection[str], of_the_file: Collection[str] = ()) -> Mapping[str, Any]:
    """The tests of a module, by name: `some` of them, or all that are not about SQLite's file."""
    found = {name: value for name, value in vars(import_module(module)).items() if name.startswith("test_")}
    missing = {*some, *of_the_file} - found.keys()
    assert not missing, f"{module} has no {missing}"
    return {name: found[name] for name in found if (WHOLE and name not in of_the_file) or name in some}
