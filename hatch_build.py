"""Compiles the catalogues of sentences (``agent_core/languages/*.po``) when the package is built, also when a checkout is installed."""

from __future__ import annotations

from pathlib import Path

from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

LANGUAGES = Path(__file__).parent / "agent_core" / "languages"


def compile_catalogues() -> None:
    """Write a ``.mo`` beside each ``.po`` that is newer than its own. It appears whole: half of one would be newer, too, and nobody's language could be spoken."""
    for written in sorted(LANGUAGES.glob("*.po")):
        compiled = written.with_suffix(".mo")
        if compiled.exists() and compiled.stat().st_mtime_ns >= written.stat().st_mtime_ns:
            continue
        with written.open("rb") as source:
            catalogue = read_po(source, locale=written.stem)
        part = compiled.with_name(f"{compiled.name}.part")
        with part.open("wb") as target:
            write_mo(target, catalogue)
        part.replace(compiled)


if __name__ == "__main__":
    compile_catalogues()
else:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface

    class Catalogues(BuildHookInterface):  # type: ignore[type-arg]
        """Asked by hatchling before it collects files."""

        def initialize(self, version: str, build_data: dict[str, object]) -> None:
            del version, build_data
            compile_catalogues()
