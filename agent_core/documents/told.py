"""What is found in a file, or why nothing is."""

from __future__ import annotations

from agent_core.records import dataclass
from agent_core.text.tongue import clause

EMPTY = clause("it is empty")
ENCRYPTED = clause("it is encrypted, and its password is not known")
OLD_OFFICE = clause("it is an Office file of the kind before 2007; saved as .docx, .xlsx, .pptx or PDF it can be read")
ARCHIVE = clause("it is an archive ({kind}), which is not looked into")
PROGRAM = clause("it is a program")
OTHER_KIND = clause("it is no text ({kind})")
NO_READER = clause("what reads such files is not installed here (the extra outspoken[documents])")
DAMAGED_ARCHIVE = clause("it is a damaged archive")
EMPTY_ARCHIVE = clause("it is an empty archive")
TOO_MANY = clause("it holds {count} pieces, and at most {most} are looked through")
TOO_LARGE = clause("it unpacks to {size} MB, which is more than is read of such a file")
DAMAGED_OFFICE = clause("it is a damaged Office file ({error})")
DAMAGED_PDF = clause("it is a damaged PDF ({error})")
NO_TEXT = clause("there is no text in it")
NO_PAGE = clause("no page of it could be read")
SCAN = clause("there is no text in it, only pictures (a scan, for example)")
SCAN_SO_FAR = clause(
    "there is no text in its first {count} pages, only pictures (a scan, for example); for more there was no time"
)
UNKNOWN = clause("it is neither text nor anything else that can be read here")
BLANKS = clause("there is nothing but blanks in it")


@dataclass(frozen=True, slots=True)
class Told:
    """The text of a file."""

    text: str
    about: str
    """What it is, in a few words: "PDF, 12 pages"."""
    plain: bool = False
    """The file itself is this text."""


class NoTextThere(Exception):
    """There is no text to be had; the words go on from "it was not read, because …"."""
