"""Files as people send them, and as nobody should: made by code, each with what is to be found in it."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import docx
import openpyxl
import pptx
import pypdf

WORDS = "The meeting is on Tuesday"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 64


def pdf(pages: Sequence[str], *, content: bytes | None = None, filters: str = "") -> bytes:
    """A PDF with a line of text on each page, written by hand."""
    objects: list[bytes] = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, text in enumerate(pages):
        stream = content if content is not None else f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode()
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R /Resources << /Font << /F1 3 0 R >> >> >>"
        objects.append(page.encode())
        objects.append(f"<< /Length {len(stream)} {filters} >>\nstream\n".encode() + stream + b"\nendstream")
    out, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    at = len(out)
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode()
    return bytes(out + f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{at}\n%%EOF".encode())


def encrypted_pdf(password: str, owner: str = "") -> bytes:
    writer = pypdf.PdfWriter(clone_from=pypdf.PdfReader(io.BytesIO(pdf([WORDS]))))
    writer.encrypt(password, owner or None, algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _saved(document: Any) -> bytes:
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word() -> bytes:
    document: Any = docx.Document()
    document.add_heading("Plan", 1)
    document.add_paragraph(WORDS)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "milk", "3"
    return _saved(document)


def excel(edge: int = 0) -> bytes:
    """`edge`: the column of a cell in the last row that there can be."""
    library: Any = openpyxl
    book: Any = library.Workbook()
    book.active.append(["name", "count"])
    book.active.append([WORDS, 3])
    if edge:
        book.active.cell(row=1_048_576, column=edge, value="edge")
    return _saved(book)


def powerpoint() -> bytes:
    show: Any = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[0])
    slide.shapes.title.text = WORDS
    slide.notes_slide.notes_text_frame.text = "say hello"
    return _saved(show)


def archive(entries: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return out.getvalue()


def locked() -> bytes:
    """A Word file whose entries say that they want a key."""
    data = bytearray(word())
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = -1
        while (at := data.find(mark, at + 1)) >= 0:
            data[at + flags] |= 1
    return bytes(data)


def bomb() -> bytes:
    """A Word file that unpacks to more than anybody reads."""
    return archive({"word/document.xml": b"<a>" + b"x" * 60_000_000 + b"</a>", "[Content_Types].xml": b"<x/>"})


def pdf_bomb() -> bytes:
    """A page of a few hundred kilobytes that unpacks to 300 MB."""
    return pdf(["x"], content=zlib.compress(b"q " * 150_000_000, 9), filters="/Filter /FlateDecode")


def entities() -> bytes:
    """A Word file whose entities grow by ten at each of ten levels."""
    levels = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(10))
    text = f'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "ha">{levels}]><x>&l10;</x>'
    with_word = dict(entries(word()))
    return archive({**with_word, "word/document.xml": text.encode()})


def outer() -> bytes:
    """A Word file that wants to read a file of the machine."""
    text = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>'
    return archive({**dict(entries(word())), "word/document.xml": text.encode()})


def entries(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


READ: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "PDF": (lambda: pdf([WORDS, "second"]), WORDS),
    "PDF without an ending": (lambda: b"junk before\n" + pdf([WORDS]), WORDS),
    "PDF that only its owner may change": (lambda: encrypted_pdf("", "owner"), WORDS),
    "PDF of 10 000 pages": (lambda: pdf([WORDS] * 10_000), WORDS),
    "Word": (word, WORDS),
    "Excel": (excel, f"{WORDS},3"),
    "PowerPoint": (powerpoint, WORDS),
    "PowerPoint with notes": (powerpoint, "(notes) say hello"),
    "text": (WORDS.encode, WORDS),
    "UTF-8 with a mark": (lambda: WORDS.encode("utf-8-sig"), WORDS),
    "UTF-16": (lambda: WORDS.encode("utf-16"), WORDS),
    "UTF-16 without a mark": (lambda: WORDS.encode("utf-16-be"), WORDS),
    "UTF-16 without a mark, the other way round": (lambda: WORDS.encode("utf-16-le"), WORDS),
    "UTF-32": (lambda: WORDS.encode("utf-32"), WORDS),
    "Windows-1252": (lambda: f"{WORDS} – für Ünsinn".encode("cp1252"), f"{WORDS} – für Ünsinn"),
    "SVG": (f"<svg xmlns='http://www.w3.org/2000/svg'><text>{WORDS}</text></svg>".encode, WORDS),
    "a text of 15 MB": (lambda: WORDS.encode() + b"\nline" * 3_000_000, WORDS),
    "archive in an archive": (lambda: archive({"inner.zip": archive({"a.txt": b"a"})}), "inner.zip"),
    "archive with a way out": (lambda: archive({"../../etc/passwd": b"a"}), "../../etc/passwd"),
}
"""What can be read, and what has to be in its text."""

UNREAD: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "empty": (lambda: b"", "it is empty"),
    "blank": (lambda: b" \n \n", "blanks"),
    "encrypted PDF": (lambda: encrypted_pdf("secret"), "encrypted"),
    "scan": (lambda: pdf(["", ""], content=b"q Q"), "only pictures"),
    "damaged PDF": (lambda: b"%PDF-1.7\nnothing of it is there", "damaged PDF"),
    "half a Word file": (lambda: word()[:5000], "damaged archive"),
    "a Word file of something else": (lambda: archive({"word/document.xml": b"<x/>"}), "damaged Office file"),
    "bomb": (bomb, "unpacks to"),
    "old Word": (lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "before 2007"),
    "encrypted Word": (
        lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
        "encrypted",
    ),
    "Word with a key": (locked, "encrypted"),
    "gzip": (lambda: b"\x1f\x8b\x08\0" + b"\0" * 20, "archive"),
    "program": (lambda: b"\x7fELF\x02\x01\x01" + b"\0" * 100, "program"),
    "noise": (lambda: bytes(range(256)) * 50, "neither text"),
    "PNG that is called .txt": (lambda: PNG, "image/png"),
    "HEIC": (lambda: b"\0\0\0\x18ftypheic\0\0\0\0", "image/heic"),
    "voice": (lambda: b"OggS\0\x02" + b"\0" * 20, "audio/ogg"),
}
"""What cannot, and a word of the reason."""

HARD: Mapping[str, Callable[[], bytes]] = {"PDF bomb": pdf_bomb, "entities": entities, "entity of a file": outer}
"""What may end either way, but within the limits, and without a word of the machine's own."""
