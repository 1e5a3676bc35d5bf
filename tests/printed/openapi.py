"""``docs/openapi.json``: the document that ``/openapi.json`` serves.

``python -m tests.printed.openapi > docs/openapi.json``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys

import orjson

from adapters.http.openapi.document import document
from gateway.version import program_version


def printed() -> str:
    """The whole file."""
    return orjson.dumps(document(program_version()), option=orjson.OPT_INDENT_2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(printed())
