"""What a file is, by its first bytes: a name's ending and what a platform says of it are often wrong. Pure.

Sources: the formats' own marks, as `file` knows them too (https://www.garykessler.net/library/file_sigs.html).
"""

from __future__ import annotations

from enum import StrEnum


class FileKind(StrEnum):
    """What can be done with a file depends on it."""

    EMPTY = "empty"
    PICTURE = "picture"
    SOUND = "sound"
    VIDEO = "video"
    PDF = "pdf"
    ZIP = "zip"
    """An archive, or an Office file, which is one."""
    OLD_OFFICE = "old_office"
    """Office files of before 2007."""
    PACKED = "packed"
    """An archive that is not looked into."""
    PROGRAM = "program"
    TEXT = "text"
    """Perhaps: whether it can be read as text is seen when it is read."""


_BEGINNINGS: tuple[tuple[bytes, FileKind, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", FileKind.PICTURE, "image/png"),
    (b"\xff\xd8\xff", FileKind.PICTURE, "image/jpeg"),
    (b"GIF87a", FileKind.PICTURE, "image/gif"),
    (b"GIF89a", FileKind.PICTURE, "image/gif"),
    (b"II*\0", FileKind.PICTURE, "image/tiff"),
    (b"MM\0*", FileKind.PICTURE, "image/tiff"),
    (b"OggS", FileKind.SOUND, "audio/ogg"),
    (b"ID3", FileKind.SOUND, "audio/mpeg"),
    (b"fLaC", FileKind.SOUND, "audio/flac"),
    (b"#!AMR", FileKind.SOUND, "audio/amr"),
    (b"\xff\xfb", FileKind.SOUND, "audio/mpeg"),
    (b"\xff\xf3", FileKind.SOUND, "audio/mpeg"),
    (b"\xff\xfa", FileKind.SOUND, "audio/mpeg"),
    (b"\xff\xf2", FileKind.SOUND, "audio/mpeg"),
    (b"\xff\xf1", FileKind.SOUND, "audio/aac"),
    (b"\xff\xf9", FileKind.SOUND, "audio/aac"),
    (b"caff", FileKind.SOUND, "audio/x-caf"),
    (b"\x1aE\xdf\xa3", FileKind.VIDEO, "video/webm"),
    (b"PK\x03\x04", FileKind.ZIP, "application/zip"),
    (b"PK\x05\x06", FileKind.ZIP, "application/zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", FileKind.OLD_OFFICE, "application/x-ole-storage"),
    (b"\x1f\x8b", FileKind.PACKED, "application/gzip"),
    *((b"BZh%d1AY&SY" % size, FileKind.PACKED, "application/x-bzip2") for size in range(1, 10)),
    (b"\xfd7zXZ\0", FileKind.PACKED, "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", FileKind.PACKED, "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", FileKind.PACKED, "application/vnd.rar"),
    (b"\x28\xb5\x2f\xfd", FileKind.PACKED, "application/zstd"),
    (b"\x7fELF", FileKind.PROGRAM, "application/x-executable"),
    (b"MZ", FileKind.PROGRAM, "application/x-dosexec"),
)
_LETTERS = frozenset({b"OggS", b"ID3", b"fLaC", b"caff", b"MZ"})
"""Marks with which a text may begin as well: a coffee, a newspaper, a page about tags."""
HEAD = 16
"""Where these are marks, there is a zero in so many bytes, and in no text."""
_INSIDE_BOXES: tuple[tuple[bytes, FileKind, str], ...] = (
    (b"heic", FileKind.PICTURE, "image/heic"),
    (b"heix", FileKind.PICTURE, "image/heic"),
    (b"mif1", FileKind.PICTURE, "image/heif"),
    (b"avif", FileKind.PICTURE, "image/avif"),
    (b"M4A ", FileKind.SOUND, "audio/mp4"),
    (b"M4B ", FileKind.SOUND, "audio/mp4"),
)
_INSIDE_RIFF: tuple[tuple[bytes, FileKind, str], ...] = (
    (b"WEBP", FileKind.PICTURE, "image/webp"),
    (b"WAVE", FileKind.SOUND, "audio/wav"),
    (b"AVI ", FileKind.VIDEO, "video/x-msvideo"),
)
PDF_WITHIN = 1024
"""A PDF may have something before its head (ISO 32000, annex H)."""


def kind_of(data: bytes, claimed: str = "") -> tuple[FileKind, str]:
    """What bytes are, and their MIME type. `claimed`, the type that came with them, tells only whether a container of sound and
    pictures is to be listened to."""
    if not data:
        return FileKind.EMPTY, ""
    if b"%PDF-" in data[:PDF_WITHIN]:
        return FileKind.PDF, "application/pdf"
    binary = b"\0" in data[:HEAD]
    found = next(
        (
            (kind, mime)
            for begins, kind, mime in _BEGINNINGS
            if data.startswith(begins) and (binary or begins not in _LETTERS)
        ),
        None,
    )
    if data[4:8] == b"ftyp" and binary:
        found = _named(_INSIDE_BOXES, data) or (FileKind.VIDEO, "video/mp4")
    elif data.startswith(b"RIFF"):
        found = _named(_INSIDE_RIFF, data)
    elif data.startswith(b"BM") and len(data) > 14 and data[6:10] == b"\0\0\0\0":
        found = FileKind.PICTURE, "image/bmp"
    if found is None:
        return FileKind.TEXT, "text/plain"
    if found[0] is FileKind.VIDEO and claimed.startswith("audio/"):
        return FileKind.SOUND, claimed
    if found[0] is FileKind.SOUND and claimed.startswith("video/") and found[1] == "audio/ogg":
        return FileKind.VIDEO, claimed
    return found


def _named(inside: tuple[tuple[bytes, FileKind, str], ...], data: bytes) -> tuple[FileKind, str] | None:
    return next(((kind, mime) for name, kind, mime in inside if data[8:12] == name), None)
