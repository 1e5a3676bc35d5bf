"""A page's bytes as text that can be read: unpacked, decoded, and without its markup. Runs in a worker.

Whoever wrote the page chose all of it. So nothing is unpacked beyond a limit; only the encodings of the web are decoded, by the table that
browsers have (https://encoding.spec.whatwg.org), because Python's own has codecs that are no encodings, or take for ever; HTML is
read by a browser's parser. That parser needs long for some pages (200 000 elements within each other): these come to the worker's
limit, and the model is told so.
"""

from __future__ import annotations

import codecs
import re
import zlib
from typing import Any
from urllib.parse import urljoin

from agent_core.jsonvalue import Json

MAX_BYTES = 1_000_000
"""Of a page, on its way and unpacked."""
MAX_CHARS = 400_000
"""Of the text, with all the addresses in it."""
MAX_ADDRESS = 2_000
HTML = ("text/html", "application/xhtml+xml")
PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""How pages may be packed, and what zlib calls it."""
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xfe\xff", "utf-16be"), (b"\xff\xfe", "utf-16le"))
_DECLARED = re.compile(
    rb"""<(?:meta|\?xml)\b[^>]{0,300}?(?:charset|encoding)\s{0,9}=\s{0,9}["']?([\w.:-]{1,40})""", re.IGNORECASE
)
_DECLARED_WITHIN = 1024
_SKIPPED = frozenset({"script", "style", "noscript", "template", "svg", "head", "-comment"})
_LINES = frozenset(
    [
        "address",
        "article",
        "aside",
        "br",
        "dd",
        "div",
        "dl",
        "dt",
        "figcaption",
        "figure",
        "footer",
        "form",
        "header",
        "hr",
        "li",
        "main",
        "nav",
        "section",
        "tr",
    ]
)
_APART = frozenset(["blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ol", "p", "pre", "table", "ul"])
"""What has an empty line around it."""
_CELLS = frozenset(("td", "th"))


class NoText(Exception):
    """The page holds no text; the words are for the model."""


def work(request: dict[str, Json], blob: bytes) -> Json:
    """A job for a worker. Asked: ``packed``, ``kind``, ``charset``, ``url``, and the page's bytes."""
    try:
        data, beyond = unpacked(blob, str(request["packed"]))
        kind = str(request["kind"])
        encoding = encoding_of(data, str(request["charset"]), html=kind in HTML)
        text, unread = decoded(data, encoding), False
        if kind in HTML:
            text, unread = readable(text, str(request["url"]))
    except NoText as error:
        return {"status": "failed", "text": str(error), "facts": {}}
    if unread or len(text) > MAX_CHARS:
        note = f"\n(cut at {MAX_CHARS} characters)"
    else:
        note = f"\n(cut at {MAX_BYTES} bytes)" if beyond else ""
    return {"status": "ok", "text": text[:MAX_CHARS] + note, "facts": {"bytes": len(data), "charset": encoding}}


def unpacked(data: bytes, packed: str) -> tuple[bytes, bool]:
    """At most `MAX_BYTES` of what was packed, and whether there was more. Raises `NoText`."""
    if packed in ("", "identity"):
        return data[:MAX_BYTES], len(data) > MAX_BYTES
    if packed not in PACKED:
        raise NoText("The page is packed in a way that was not asked for, so it is not shown.")
    reader = zlib.decompressobj(PACKED[packed])
    try:
        found = reader.decompress(data, MAX_BYTES)
    except zlib.error:
        if packed != "deflate":
            raise NoText("The page is packed, and cannot be unpacked.") from None
        return _deflated(data)
    return found, bool(reader.unconsumed_tail) or not reader.eof


def _deflated(data: bytes) -> tuple[bytes, bool]:
    """Some servers leave out the head that the standard asks for."""
    reader = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = reader.decompress(data, MAX_BYTES)
    except zlib.error:
        raise NoText("The page is packed, and cannot be unpacked.") from None
    return found, bool(reader.unconsumed_tail) or not reader.eof


def encoding_of(data: bytes, charset: str, *, html: bool) -> str:
    """The name of the encoding: by the page's first bytes, by its headers, by its own words, or as most pages are."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return name
    if (named := _named(charset)) is not None:
        return named
    if html and (found := _DECLARED.search(data, 0, _DECLARED_WITHIN)) is not None:
        named = _named(found.group(1).decode("ascii", "ignore"))
        if named is not None:  # words that could be read are in no encoding of two bytes
            return "utf-8" if named.startswith("utf-16") else named
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # its last character may be cut
    except UnicodeDecodeError:
        return "windows-1252"
    return "utf-8"


def _named(label: str) -> str | None:
    """The encoding of the web that goes by this name."""
    import webencodings

    library: Any = webencodings  # it has no types
    found = library.lookup(label.encode("ascii", "ignore").decode())
    return None if found is None else str(found.name)


def decoded(data: bytes, encoding: str) -> str:
    """The text, in an encoding of the web; what is none in it is replaced. Raises `NoText`."""
    if b"\0" in data[:2000] and not encoding.startswith("utf-16"):
        raise NoText("This is no text, so it is not shown.")
    import webencodings

    library: Any = webencodings
    text, _ = library.decode(data, library.lookup(encoding), errors="replace")
    return str(text)


def readable(html: str, base: str) -> tuple[str, bool]:
    """The text of a page, with the addresses that its links lead to; and whether the page goes on behind it."""
    from selectolax.lexbor import LexborHTMLParser, LexborNode

    writer = _Writer(base)
    root = LexborHTMLParser(html).root
    node: LexborNode | None = root
    while node is not None and writer.has_room:
        tag = node.tag or ""
        inside = None if tag in _SKIPPED else node.child
        if tag == "-text":
            writer.text(node.text_content or "")
        elif tag not in _SKIPPED:
            writer.open(tag, node.attributes.get("href") or "" if tag == "a" else "")
        if inside is not None:
            node = inside
            continue
        while node is not None:
            if node.tag not in _SKIPPED:
                writer.close(node.tag or "")
            if node.mem_id == (root.mem_id if root is not None else 0):
                node = None
            elif node.next is not None:
                node = node.next
                break
            else:
                node = node.parent
    return writer.done(), node is not None


_WHITE = re.compile(r"\s+")


class _Writer:
    """Lines of text, as the page's tags come and go."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._links: list[str] = []
        self._verbatim = 0
        self._pieces: list[str] = []
        self._room = MAX_CHARS

    @property
    def has_room(self) -> bool:
        return self._room > 0

    def _write(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._room -= len(text)

    @property
    def _at_start(self) -> bool:
        """Of a line."""
        return not self._pieces or self._pieces[-1].endswith("\n")

    def text(self, text: str) -> None:
        if not self._verbatim:
            text = _WHITE.sub(" ", text)
            text = text.lstrip() if self._at_start else text
        self._write(text)

    def open(self, tag: str, address: str) -> None:
        self._around(tag)
        if tag == "li":
            self._write("- ")
        elif tag in _CELLS and not self._at_start:
            self._write(" | ")
        elif tag == "a":
            self._links.append(address)
        self._verbatim += tag == "pre"

    def close(self, tag: str) -> None:
        self._verbatim -= tag == "pre"
        self._around(tag)
        if tag == "a" and self._links and (address := self._whole(self._links.pop())):
            self._write(f" ({address})")

    def _around(self, tag: str) -> None:
        if (tag in _LINES or tag in _APART) and not self._at_start:
            self._write("\n")
        if tag in _APART:
            self._write("\n")

    def _whole(self, address: str) -> str:
        """A link's address from the root on; empty for one that leads nowhere else."""
        if not address or address.startswith("#") or len(address) > MAX_ADDRESS:
            return ""
        try:
            whole = urljoin(self._base, address.strip())
        except ValueError:
            return ""
        return whole if whole.startswith(("http://", "https://", "mailto:")) else ""

    def done(self) -> str:
        """All of it, with at most one empty line in a row."""
        out: list[str] = []
        for line in "".join(self._pieces).splitlines():
            shown = line.rstrip()
            if shown or (out and out[-1]):
                out.append(shown)
        return "\n".join(out).strip("\n")
