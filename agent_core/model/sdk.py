"""The SDK without what nobody here asks for: `import openai` loads five hundred modules of types, of which a call needs a tenth.

A package of these is put in place empty, and filled by its own code when something is asked of it: whoever uses it finds all of it. Of a
start of the SDK's, that is two thirds of the time and half of the memory (120 of 300 ms, 8 of 18 MiB).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any, cast

from typing_extensions import override

LATER = ("openai.types", "openai.resources")
"""Packages that are loaded when something is asked of them, and the packages within."""
_FILLING = RLock()


class _Later(ModuleType):
    """A package whose code has not run yet. Its modules can be imported all the same."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _FILLING:
            spec = self.__spec__
            if type(self) is _Later and spec is not None and isinstance(spec.loader, _Loader):
                self.__class__ = cast("type[_Later]", ModuleType)
                spec.loader.real.exec_module(self)
        return getattr(self, name)


class _Loader(Loader):
    def __init__(self, real: Loader) -> None:
        self.real = real

    @override
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    @override
    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Later


class _Finder(MetaPathFinder):
    @override
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(tuple(f"{each}." for each in LATER)):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            return None
        spec.loader = _Loader(spec.loader)
        return spec


def lighten() -> None:
    """From here on; once a process."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
