"""A file's text, whatever it is: which reader it goes to, and what is said where there is none. Runs in a worker.

Whoever made the file chose all of it, so what reads it has limits of memory and time and is a process of its own.

Law (tests/agent_core/test_documents.py): whatever the bytes, there is a text or a reason.
"""

from __future__ import annotations

import time
from typing import assert_never

from agent_core.documents.kinds import FileKind, kind_of
from agent_core.documents.told import (
    ARCHIVE,
    EMPTY,
    ENCRYPTED,
    NO_READER,
    OLD_OFFICE,
    OTHER_KIND,
    PROGRAM,
    NoTextThere,
    Told,
)
from agent_core.jsonvalue import Json
from agent_core.workers.pool import Job

SECONDS = 20.0
"""After these a reader ends with what it has; one that does not look at the clock is stopped by the worker's limit."""
MOST_BYTES = 1_900_000
"""Of the text, as UTF-8: a little less than the file tools read of a file."""
JOB = Job("agent_core.documents.reading:work", SECONDS + 10)
_OWN_MARK = b"E\0n\0c\0r\0y\0p\0t\0e\0d\0P\0a\0c\0k\0a\0g\0e\0"
"""In the directory of what Office encrypts, which is no zip archive then."""


def work(request: dict[str, Json], blob: bytes) -> Json:
    """A job for a worker: ``text`` and ``about``, or ``why`` there is none."""
    until = time.monotonic() + float(str(request.get("seconds", SECONDS)))
    try:
        told = read_document(blob, until)
    except NoTextThere as error:
        return {"why": str(error)}
    except ImportError:
        return {"why": NO_READER}
    text, cut = _within(told.text)
    about = f"{told.about}, of whose text the beginning was kept" if cut else told.about
    return {"text": text, "about": about, "plain": told.plain and not cut}


def read_document(data: bytes, until: float) -> Told:
    """The text of a file. Raises `NoTextThere`, or `ImportError` where a library is missing."""
    kind, mime = kind_of(data)
    match kind:
        case FileKind.EMPTY:
            raise NoTextThere(EMPTY)
        case FileKind.PDF:
            from agent_core.documents.pdf import read_pdf

            return read_pdf(data, until)
        case FileKind.ZIP:
            from agent_core.documents.office import read_zip

            return read_zip(data, until)
        case FileKind.TEXT:
            from agent_core.documents.plain import read_plain

            return read_plain(data)
        case FileKind.OLD_OFFICE:
            raise NoTextThere(ENCRYPTED if _OWN_MARK in data else OLD_OFFICE)
        case FileKind.PACKED:
            raise NoTextThere(ARCHIVE.format(kind=mime.partition("/")[2].removeprefix("x-")))
        case FileKind.PROGRAM:
            raise NoTextThere(PROGRAM)
        case FileKind.PICTURE | FileKind.SOUND | FileKind.VIDEO:
            raise NoTextThere(OTHER_KIND.format(kind=mime))
        case _:
            assert_never(kind)


def _within(text: str) -> tuple[str, bool]:
    """As much as may be kept, without half characters; whether there was more."""
    whole = text.replace("\r\n", "\n").replace("\0", "").encode("utf-8", "replace")
    return whole[:MOST_BYTES].decode("utf-8", "ignore"), len(whole) > MOST_BYTES
