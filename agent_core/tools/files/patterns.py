"""Regular expressions that a model chooses, by RE2: its time grows with the text alone, whatever the pattern.

The binding is untyped; nobody else needs to know it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from agent_core.tools.files.workspace import PathRefused

COMPILED_BYTES = 16 * 1024 * 1024
_WITHOUT = (
    "Patterns are those of RE2: no look-ahead or look-behind, no back-references, no possessive or atomic groups."
)
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def _end_as_in_re2(escaped: re.Match[str]) -> str:
    """Python's ``\\Z``, which RE2 calls ``\\z``."""
    return r"\z" if escaped.group() == r"\Z" else escaped.group()


def compiled(pattern: str) -> Callable[[str], bool]:
    """Whether a line holds what the pattern describes, in upper or lower case. Raises `PathRefused`."""
    import re2

    library: Any = re2
    options = library.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.max_mem = COMPILED_BYTES
    try:
        search = library.compile(_ESCAPED.sub(_end_as_in_re2, pattern), options).search
    except library.error as error:
        words = error.args[0] if error.args else ""
        said = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
        raise PathRefused(
            f"The regular expression cannot be read: {said[:200]}. {_WITHOUT} Search for something simpler, "
            "then read the lines that are found."
        ) from None
    except UnicodeEncodeError:
        raise PathRefused("The regular expression holds half a character, which no text can have.") from None
    return lambda line: search(line) is not None
