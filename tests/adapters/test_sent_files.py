"""Files that the agent sent, as they are served: no bytes and no name make one a document of ours."""

from __future__ import annotations

from email.message import Message
from urllib.parse import unquote

from hypothesis import example, given
from hypothesis import strategies as st

from adapters.http.sessions.sentfiles import (
    _BY_NAME,
    UNSAID,
    disposition,
    file_id,
    files_in,
    named_file,
    sent_files,
    type_of,
)
from agent_core.failures.exits import ExitCode
from agent_core.turn.view import Bubble, BubbleKind
from tests.adapters.scripted import ended
from tests.adapters.scripted import example as exit_of

ACTIVE = ("html", "svg", "xml", "javascript", "ecmascript", "css", "xslt", "wasm", "swf", "x-shockwave")
BEGINNINGS = [b"<!doctype html><script>", b"<svg xmlns='http://www.w3.org/2000/svg'>", b"<?xml version='1.0'?>", b"%PDF-1.7", b"\x89PNG\r\n\x1a\n",
              b"GIF89a", b"\0asm", b"PK\x03\x04", b"RIFF....WEBP", b"\x00\x00\x00\x18ftypavif", b""]  # fmt: skip
names = st.text(min_size=1, max_size=60) | st.sampled_from(
    ["a.html", "b.svg", "c.js", "d.xhtml", "e.csv", "f.json", "g.docx", "h.HTM"]
)


@given(st.sampled_from(BEGINNINGS), st.binary(max_size=40), names)
def test_no_file_has_a_type_that_a_browser_would_run(begins: bytes, rest: bytes, name: str):
    told = type_of(begins + rest, name)
    assert not any(one in told.replace("openxmlformats", "") for one in ACTIVE)
    assert told.partition("/")[0] in ("image", "audio", "video", "text", "application")
    if told.startswith("text/"):
        assert told.partition(";")[0] in {"text/plain", *_BY_NAME.values()}


def test_a_type_is_that_of_the_bytes_and_of_texts_that_of_the_name():
    png = b"\x89PNG\r\n\x1a\n...."
    assert type_of(png, "page.html") == "image/png"
    assert type_of(b"a,b\n1,2\n", "table.csv") == "text/csv; charset=utf-8"
    assert type_of(b"<script>alert(1)</script>", "page.html") == "text/plain; charset=utf-8"
    assert type_of(b"<svg onload='x()'/>", "chart.svg") == "text/plain; charset=utf-8"
    assert type_of(b"PK\x03\x04....", "plan.xlsx") == _BY_NAME[".xlsx"]
    for name, told in _BY_NAME.items():  # and of what is packed, if it is an office file's
        office = told.startswith("application/vnd.")
        assert type_of(b"PK\x03\x04....", f"page{name}") == (told if office else "application/zip")
    assert type_of(b"PK\x03\x04....", "page.html") == "application/zip"
    assert type_of(b"\0\1\2", "a.txt") == UNSAID


@given(names)
@example('a"; filename*=evil\r\nSet-Cookie: x=1')
@example("Ergebnisse für Zoë – 表.csv")
def test_a_name_stays_a_name_in_its_header(name: str):
    header = disposition(name)
    assert header.isascii()
    assert header.isprintable()
    parsed = Message()
    parsed["Content-Disposition"] = header
    assert parsed.get_content_disposition() == "attachment"
    assert unquote(header.rpartition("UTF-8''")[2]) == name.encode("utf-8", "replace").decode()


def test_an_id_leads_to_its_turn_and_bubble_and_nothing_else_does():
    sent = Bubble("call_1.file", BubbleKind.FILE, "a b.csv", final=True, path="/somewhere/hash/a b.csv")
    name = file_id("t_1a", sent)
    found = named_file(name)
    assert found is not None
    assert found[0] == "t_1a"
    assert named_file(f"{name}x") is None
    assert named_file("file_t_1a_..%2f") is None
    assert file_id("t_1a", Bubble("note", BubbleKind.NOTE, "words", final=True)) == ""
    over = ended(exit_of(ExitCode.ANSWERED), sent)
    assert files_in(over.turn, over.view) == [(file_id(over.turn, sent), "a b.csv")]
    (told,) = sent_files(over, "my talk/1")
    assert isinstance(told, dict)
    assert str(told["url"]).startswith("/v1/outspoken/sessions/my%20talk%2F1/files/file_t_")
