"""The text of Word, Excel and PowerPoint files since 2007, and what lies in an archive. Runs in a worker.

They are zip archives of XML. What one says that it unpacks to is looked at before anything is unpacked: `zipfile` never gives more than that.
"""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_core.documents import told
from agent_core.documents.told import NoTextThere, Told

MOST_ENTRIES = 20_000
MOST_BYTES = 200 * 1024 * 1024
"""That an Office file may unpack to, pictures included."""
MOST_XML_BYTES = 48 * 1024 * 1024
"""Of one piece of XML: as a tree it takes several times as much."""
MOST_CHARS = 1_500_000
NAMES_SHOWN = 200
_TOLD_CELLS = 200
"""Cells of a row."""


def read_zip(data: bytes, until: float) -> Told:
    """The text of an Office file, or the names in an archive. Raises `NoTextThere`."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise NoTextThere(told.DAMAGED_ARCHIVE) from error
    names = {entry.filename for entry in entries}
    reader = next((read for mark, read in _READERS if mark in names), None)
    if reader is None:
        return _names(entries)
    if len(entries) > MOST_ENTRIES:
        raise NoTextThere(told.TOO_MANY.format(count=len(entries), most=MOST_ENTRIES))
    if any(entry.flag_bits & 1 for entry in entries):
        raise NoTextThere(told.ENCRYPTED)
    whole = sum(entry.file_size for entry in entries)
    xml = max((entry.file_size for entry in entries if entry.filename.endswith((".xml", ".rels"))), default=0)
    if whole > MOST_BYTES or (xml > MOST_XML_BYTES and reader is not _sheets):
        raise NoTextThere(told.TOO_LARGE.format(size=max(whole, xml) // 2**20))
    try:
        return reader(data, until)
    except (NoTextThere, MemoryError, RecursionError, ImportError):
        raise
    except Exception as error:
        raise NoTextThere(told.DAMAGED_OFFICE.format(error=type(error).__name__)) from error


def _names(entries: list[zipfile.ZipInfo]) -> Told:
    shown = [f"{_printable(one.filename)}  {one.file_size} bytes" for one in entries[:NAMES_SHOWN]]
    if not shown:
        raise NoTextThere(told.EMPTY_ARCHIVE)
    more = [f"(and {len(entries) - NAMES_SHOWN} more)"] if len(entries) > NAMES_SHOWN else []
    count = f"{len(entries)} file{'' if len(entries) == 1 else 's'}"
    return Told("\n".join([*shown, *more]), f"zip archive, {count}, which were not unpacked")


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in name)[:300]


def _document(data: bytes, until: float) -> Told:
    import docx
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    found = docx.Document(io.BytesIO(data))

    def lines() -> Iterator[str]:
        for block in found.iter_inner_content():
            if isinstance(block, Paragraph):
                style = str(block.style.name if block.style is not None else "")
                mark = "#" * int(style[-1]) + " " if style.startswith("Heading ") and style[-1].isdigit() else ""
                yield mark + block.text
            else:
                yield from _rows(block)

    def _rows(table: Table) -> Iterator[str]:
        for row in table.rows:
            yield " | ".join(cell.text.replace("\n", " ") for cell in row.cells)

    text, cut = bounded(lines(), until)
    return Told(text, f"Word document{cut}")


def _sheets(data: bytes, until: float) -> Told:
    import openpyxl

    library: Any = openpyxl
    book: Any = library.load_workbook(io.BytesIO(data), read_only=True, data_only=True)

    def lines() -> Iterator[str | None]:
        for sheet in book.worksheets:
            yield f"--- sheet {sheet.title} ---"
            # A stray cell at the edge makes each empty row as wide as there are columns.
            if hasattr(sheet, "reset_dimensions"):
                sheet.reset_dimensions()
            for row in sheet.iter_rows(values_only=True):
                yield _row(row) if row else None

    text, cut = bounded(lines(), until)
    count = len(book.sheetnames)
    return Told(text, f"Excel workbook, {count} sheet{'' if count == 1 else 's'}{cut}")


def _row(row: Sequence[object]) -> str | None:
    cells = ["" if value is None else _cell(value) for value in row[:_TOLD_CELLS]]
    while cells and not cells[-1]:
        cells.pop()
    more = sum(value is not None for value in row[_TOLD_CELLS:])
    line = [",".join(cells)] if cells else []
    return " ".join([*line, f"(further right {more} more)"] if more else line) or None


def _cell(value: object) -> str:
    """As in a CSV file."""
    text = str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n\r') else text


def _slides(data: bytes, until: float) -> Told:
    import pptx

    found = pptx.Presentation(io.BytesIO(data))

    def lines() -> Iterator[str]:
        for number, slide in enumerate(found.slides, 1):
            yield f"--- slide {number} ---"
            for shape in slide.shapes:
                yield from _of_shape(shape)
            if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
                yield f"(notes) {slide.notes_slide.notes_text_frame.text}"

    text, cut = bounded(lines(), until)
    count = len(found.slides)
    return Told(text, f"PowerPoint presentation, {count} slide{'' if count == 1 else 's'}{cut}")


def _of_shape(shape: Any) -> Iterator[str]:
    if shape.has_text_frame:
        yield str(shape.text_frame.text)
    if getattr(shape, "has_table", False):
        for row in shape.table.rows:
            yield " | ".join(str(cell.text) for cell in row.cells)
    for inner in getattr(shape, "shapes", ()):
        yield from _of_shape(inner)


def bounded(lines: Iterable[str | None], until: float) -> tuple[str, str]:
    """The lines as long as there is time and room; what to say if there was not enough. Raises `NoTextThere` if nothing is there.

    None is no line: it only lets the time be looked at.
    """
    found: list[str] = []
    chars, cut = 0, ""
    for line in lines:
        if chars > MOST_CHARS or time.monotonic() > until:
            cut = ", of which the beginning was read"
            break
        if line is None:
            continue
        found.append(line)
        chars += len(line) + 1
    if not any(line.strip() and not line.startswith("--- ") for line in found):
        raise NoTextThere(told.NO_TEXT)
    return "\n".join(found).strip(), cut


_READERS = (("word/document.xml", _document), ("xl/workbook.xml", _sheets), ("ppt/presentation.xml", _slides))
"""By what each is known."""
