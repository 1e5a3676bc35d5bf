"""What stands in ``docs/architecture.md`` and is printed from the source: ``python -m tests.architecture`` writes it anew."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tests import glossary, rooms

PAGE = rooms.ROOT / "docs" / "architecture.md"
PRINTED: Mapping[str, Callable[[], str]] = {"words": glossary.table, "rooms": rooms.picture}
"""What stands between ``<!-- printed: NAME -->`` and ``<!-- /printed -->``."""


def page(text: str) -> str:
    """The page with everything in it that is printed."""
    for name, printed in PRINTED.items():
        place = re.compile(rf"(<!-- printed: {name} -->\n).*?(<!-- /printed -->)", re.DOTALL)
        text, found = place.subn(rf"\1\n{printed().replace(chr(92), chr(92) * 2)}\n\n\2", text)
        if found != 1:
            raise LookupError(f"{PAGE.name} has {found} places for {name}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
