"""The text of a PDF, page by page, by `pypdf`. Runs in a worker.

A page's content may unpack to much more than the file has, or take for ever: `pypdf` bounds the first, `until` and the worker's limits the second.
"""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING

from agent_core.documents import told
from agent_core.documents.told import NoTextThere, Told

if TYPE_CHECKING:
    from pypdf import PdfReader

MOST_CHARS = 1_500_000


def read_pdf(data: bytes, until: float) -> Told:
    """Its text. `until`: by the monotonic clock; what is read by then counts. Raises `NoTextThere`."""
    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    try:
        reader = PdfReader(io.BytesIO(data), strict=False)
        return _told(reader, until)
    except NoTextThere:
        raise
    except (PyPdfError, ValueError, KeyError, TypeError, IndexError, AttributeError, OSError, AssertionError) as error:
        raise NoTextThere(told.DAMAGED_PDF.format(error=type(error).__name__)) from error


def _told(reader: PdfReader, until: float) -> Told:
    if reader.is_encrypted and not reader.decrypt(""):
        raise NoTextThere(told.ENCRYPTED)
    count = len(reader.pages)
    pieces: list[str] = []
    chars, lost, read = 0, 0, 0
    for number in range(count):
        if read and (time.monotonic() > until or chars > MOST_CHARS):
            break
        read += 1
        try:
            text = reader.pages[number].extract_text().strip()
        except (MemoryError, RecursionError):
            raise
        except Exception:  # noqa: BLE001 - whatever one odd page raises; the others are read
            lost += 1
            continue
        if text:
            pieces.append(f"--- page {number + 1} ---\n{text}")
            chars += len(text)
    if not pieces:
        if lost == read:
            raise NoTextThere(told.NO_PAGE)
        raise NoTextThere(told.SCAN if read == count else told.SCAN_SO_FAR.format(count=read))
    about = f"PDF, {count} page{'' if count == 1 else 's'}"
    if read < count:
        about += f", of which the first {read} were read"
    if lost:
        about += f", {lost} of them could not be read"
    return Told("\n\n".join(pieces), about)
