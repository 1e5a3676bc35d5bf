"""What a page's bytes are, without a worker: packed or not it has a bound, and its words are read in the encoding that counts most."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest

from agent_core.tools.web.pages import MAX_BYTES, MAX_CHARS, NoText, decoded, encoding_of, readable, unpacked, work


def bare(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


PACKERS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "as it is": ("", bytes),
    "identity": ("identity", bytes),
    "gzip": ("gzip", gzip.compress),
    "deflate": ("deflate", zlib.compress),
    "deflate without its head": ("deflate", bare),
}


@pytest.mark.parametrize("how", PACKERS)
def test_however_it_is_packed_a_page_has_a_bound_and_says_whether_there_was_more(how: str) -> None:
    named, pack = PACKERS[how]
    assert unpacked(pack(b"x" * 1_000), named) == (b"x" * 1_000, False)
    found, more = unpacked(pack(b"x" * (2 * MAX_BYTES)), named)
    assert (len(found), more) == (MAX_BYTES, True)
    if "as it is" not in how and how != "identity":
        cut, more = unpacked(pack(bytes(range(256)) * 40)[:-20], named)
        assert (more, bytes(range(256)).startswith(cut[:256])) == (True, True)


@pytest.mark.parametrize("named", ["gzip", "deflate", "br"])
def test_what_cannot_be_unpacked_has_a_reason(named: str) -> None:
    with pytest.raises(NoText, match="packed"):
        unpacked(b"\xffno such thing", named)


SAID = b'<meta charset="iso-8859-2"><p>'


@pytest.mark.parametrize(
    ("data", "charset", "html", "encoding"),
    [
        (b"\xef\xbb\xbf" + SAID, "koi8-r", True, "utf-8"),  # its mark, whatever else is said
        (SAID, "koi8-r", True, "koi8-r"),  # then its headers
        (SAID, "no such thing", True, "iso-8859-2"),  # then its own words
        (SAID, "", False, "utf-8"),  # which only a page has
        (b'<?xml version="1.0" encoding="utf-16"?>', "", True, "utf-8"),  # it could be read
        (b" " * 1_100 + SAID, "", True, "utf-8"),  # and only at its beginning
        ("schön".encode(), "", True, "utf-8"),
        ("schön".encode()[:-2], "", True, "utf-8"),  # cut within a character
        ("schön".encode("latin-1"), "", True, "windows-1252"),
    ],
)
def test_of_all_that_is_said_of_an_encoding_what_is_nearest_to_the_bytes_counts(
    data: bytes, charset: str, html: bool, encoding: str
) -> None:
    assert encoding_of(data, charset, html=html) == encoding


def test_what_is_no_text_is_said_to_be_none() -> None:
    assert decoded("a".encode("utf-16le"), "utf-16le") == "a"
    with pytest.raises(NoText, match="no text"):
        decoded(b"a\0b", "utf-8")


def test_a_page_is_read_with_its_links_and_without_what_nobody_sees() -> None:
    page = '<head><title>no</title></head><script>no</script><h1>Big</h1><ul><li>one <a href="/a">more</a><li>two</ul><a href="#x">here</a>'
    told, unread = readable(page, "https://example.com/b/c")
    assert not unread
    assert told.splitlines() == ["Big", "", "- one more (https://example.com/a)", "- two", "", "here"]


def test_cells_of_a_table_are_told_apart() -> None:
    page = "<table><tr><th>Year<th>People<tr><td>19<td>84</table>"
    assert readable(page, "https://example.com") == ("Year | People\n19 | 84", False)


@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
@pytest.mark.parametrize(
    ("page", "cut"),
    [
        ("x" * 10, ""),
        ("x" * MAX_CHARS, ""),
        ("x" * (MAX_CHARS + 1), f"(cut at {MAX_CHARS} characters)"),
        ("x " * MAX_BYTES, f"(cut at {MAX_CHARS} characters)"),
        ("é" * (MAX_BYTES // 2), f"(cut at {MAX_CHARS} characters)"),
        ("😀" * (MAX_BYTES // 3), f"(cut at {MAX_BYTES} bytes)"),
    ],
    ids=["short", "as much as may be", "one more", "far more", "more characters", "more bytes"],
)
def test_a_page_that_is_cut_says_where_and_a_whole_one_says_nothing(kind: str, page: str, cut: str) -> None:
    told = work({"packed": "", "kind": kind, "charset": "utf-8", "url": "https://example.com"}, page.encode())
    assert isinstance(told, dict)
    words, _, said = str(told["text"]).partition("\n(")
    assert (f"({said}" if said else "") == cut
    assert len(words) <= MAX_CHARS


def test_a_page_whose_end_is_not_read_for_all_its_gaps_says_so() -> None:
    page = "<p>" * (MAX_CHARS * 5 // 8) + "the end"
    told = work({"packed": "", "kind": "text/html", "charset": "", "url": "https://example.com"}, page.encode())
    assert isinstance(told, dict)
    assert "the end" in str(told["text"]) or "(cut at" in str(told["text"])


def test_what_is_cut_is_said_to_be() -> None:
    asked = {"packed": "", "kind": "text/plain", "charset": "", "url": "https://example.com"}
    whole, cut = (work({**asked}, b"x" * size) for size in (10, MAX_BYTES + 1))
    assert (whole["text"], "(cut at" in str(cut["text"])) == ("x" * 10, True)  # type: ignore[index, call-overload]
