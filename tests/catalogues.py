"""The catalogues of sentences: what the source says, and what stands in each language. ``python -m tests.catalogues`` brings them up to date.

Babel reads the source, and the page's words stand in its table: whatever `speak`, `speak_many`, `sentence`, `clause` and an exit's `told` are given is a sentence, and so is the title of an exit (`ends`).
"""

from __future__ import annotations

import io
import re
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_file
from babel.messages.pofile import read_po, write_po

from adapters.http.pagewords import sentences_of
from agent_core.text.tongue import ENGLISH, FOLDER, LANGUAGES

ROOT = Path(__file__).parents[1]
PACKAGES = ("agent_core", "adapters", "gateway")
KEYWORDS = {"speak": None, "sentence": None, "clause": None, "told": None, "speak_many": (1, 2), "ends": (3,)}
_CALLED = re.compile(rf"\b(?:{'|'.join(KEYWORDS)})\s*\(")
OTHERS = tuple(tag for tag in LANGUAGES if tag != ENGLISH)
PAGE = "adapters/http/webpage/words.js"


def template() -> Catalog:
    """Every sentence of the source, with the files that say it."""
    made = Catalog(project="outspoken", charset="utf-8")
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path == FOLDER.parent / "text" / "tongue.py":
                continue
            # Babel takes each file apart by tokens, which takes its time
            if not _CALLED.search(path.read_text("utf-8")):
                continue
            for _, message, _, _ in extract_from_file("python", path, KEYWORDS):
                if message:
                    made.add(message, locations=[(path.relative_to(ROOT).as_posix(), 0)])
    for message in sentences_of((ROOT / PAGE).read_text("utf-8")):
        made.add(message, locations=[(PAGE, 0)])
    return made


def stored(language: str) -> Catalog:
    """A language as it stands in the repository; without a sentence if it does not."""
    path = FOLDER / f"{language}.po"
    if not path.exists():
        return Catalog(locale=language, project="outspoken")
    with path.open("rb") as file:
        return read_po(file, locale=language)


def written(catalogue: Catalog) -> bytes:
    """As it is stored: no dates and no lines, so that a diff shows sentences alone."""
    out = io.BytesIO()
    write_po(out, catalogue, width=0, omit_header=False, include_lineno=False, ignore_obsolete=True)
    kept = [line for line in out.getvalue().decode().splitlines() if not line.startswith(_DATED)]
    return ("\n".join(kept).rstrip() + "\n").encode()


_DATED = (
    '"POT-Creation-Date', '"PO-Revision-Date', '"Last-Translator', '"Generated-By', '"Language-Team', '"Report-Msgid', '"Project-Id', '"MIME',
    "# Translations", "# Copyright", "# This file", "# FIRST", "#\n",
)  # fmt: skip


def update(language: str) -> int:
    """Take in what the source says now; how many sentences have no words yet."""
    catalogue, source = stored(language), template()
    catalogue.update(source, no_fuzzy_matching=True)
    (FOLDER / f"{language}.po").write_bytes(written(catalogue))
    return sum(1 for one in catalogue if one.id and not all(forms(one)))


def forms(message: Message) -> list[str]:
    """What a sentence is in a language, in each form that it has."""
    said = message.string
    return [str(one or "") for one in said] if isinstance(said, list | tuple) else [str(said or "")]


def sources(message: Message) -> list[str]:
    """What it is in English: one, or one and many."""
    return [str(one) for one in message.id] if isinstance(message.id, list | tuple) else [str(message.id)]


if __name__ == "__main__":
    for tag in OTHERS:
        if (FOLDER / f"{tag}.po").exists():
            print(f"{tag}: {update(tag)} sentences without words")
