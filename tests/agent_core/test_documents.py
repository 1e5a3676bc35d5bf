"""Whatever is in a file, there is a text or a reason, within the limits of a worker."""

from __future__ import annotations

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.documents import office
from agent_core.documents.kinds import FileKind, kind_of
from agent_core.documents.reading import JOB, MOST_BYTES, work
from agent_core.documents.told import SCAN, SCAN_SO_FAR
from agent_core.jsonvalue import Json
from agent_core.text.tongue import known_sentence, speaking
from agent_core.workers.pool import Workers, WorkFailed
from gateway.chats.readout import NOT_HEARD
from tests.agent_core.oddfiles import HARD, READ, UNREAD, WORDS, archive, entries, excel, pdf, word


def found(data: bytes, seconds: float = 1) -> dict[str, Json]:
    told = work({"seconds": seconds}, data)
    assert isinstance(told, dict)
    return told


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_read(name: str) -> None:
    make, words = READ[name]
    told = found(make())
    assert words in str(told.get("text")), told.get("why")
    assert len(str(told["text"]).encode()) <= MOST_BYTES


def test_a_heading_of_a_document_is_one_in_its_text() -> None:
    assert str(found(word())["text"]).splitlines()[:2] == ["# Plan", WORDS]


@pytest.mark.parametrize("name", UNREAD)
def test_what_cannot_be_read_has_a_reason(name: str) -> None:
    make, why = UNREAD[name]
    told = found(make())
    assert why in str(told.get("why")), told
    assert "text" not in told


@pytest.mark.parametrize("name", UNREAD)
def test_each_reason_is_one_of_our_sentences(name: str) -> None:
    why = str(found(UNREAD[name][0]()).get("why"))
    with speaking("de"):
        assert known_sentence(why) != why
        assert known_sentence(NOT_HEARD.format(why=why)).endswith(known_sentence(why))


async def test_what_is_made_to_do_harm_comes_to_a_limit_and_the_next_file_is_read() -> None:
    async with Workers() as workers:
        for make in HARD.values():
            try:
                told = await workers.run(JOB, {"seconds": 5}, make())
            except WorkFailed:
                continue
            assert isinstance(told, dict)
            assert "root:" not in str(told)
            assert len(str(told.get("text", told.get("why")))) <= MOST_BYTES
        told = await workers.run(JOB, {}, word())
        assert isinstance(told, dict)
        assert WORDS in str(told["text"])


def test_a_long_pdf_is_read_as_far_as_there_is_time_and_says_so() -> None:
    make, _ = READ["PDF of 10 000 pages"]
    assert "of which the first" in str(found(make(), 0.2)["about"])


@pytest.mark.parametrize(("seconds", "said"), [(60, SCAN), (0, SCAN_SO_FAR.format(count=1))])
def test_of_a_long_scan_only_what_was_looked_at_is_said_to_have_no_text(seconds: float, said: str) -> None:
    assert found(pdf(["", "", ""]), seconds)["why"] == said


@pytest.mark.parametrize("odd", [{1}, {2}, {3}, {1, 2}, {1, 3}, {2, 3}])
def test_a_page_that_cannot_be_read_costs_no_other(odd: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = pypdf.PageObject.extract_text

    def read(page: pypdf.PageObject) -> str:
        if page.page_number is not None and page.page_number + 1 in odd:
            raise ValueError("odd")
        return reads(page)

    monkeypatch.setattr(pypdf.PageObject, "extract_text", read)
    told = found(pdf(["page one", "page two", "page three"]), 60)
    for number, words in enumerate(("page one", "page two", "page three"), 1):
        assert (words in str(told["text"])) == (number not in odd)
    assert f"{len(odd)} of them could not be read" in str(told["about"])


@given(
    st.binary(max_size=400),
    st.sampled_from([b"", b"%PDF-1.4\n", b"PK\x03\x04", b"\xff\xfe", b"RIFF", b"\0\0\0\x18ftyp"]),
)
def test_whatever_the_bytes_there_is_a_text_or_a_reason(data: bytes, begins: bytes) -> None:
    told = found(begins + data, 1)
    assert bool(str(told.get("text", "")).strip()) != bool(told.get("why"))


@pytest.mark.parametrize(
    ("data", "claimed", "kind"),
    [
        (b"\x1aE\xdf\xa3....", "audio/webm", FileKind.SOUND),
        (b"\x1aE\xdf\xa3....", "video/webm", FileKind.VIDEO),
        (b"\0\0\0\x20ftypisom", "audio/mp4", FileKind.SOUND),
        (b"\0\0\0\x20ftypM4A ", "", FileKind.SOUND),
        (b"RIFF....WEBP", "application/octet-stream", FileKind.PICTURE),
        (b"GIF89a", "text/plain", FileKind.PICTURE),
        (b"words", "image/png", FileKind.TEXT),
        (b"caff\xc3\xa8 e latte", "text/plain", FileKind.TEXT),
        (b"MZ: the paper of Halle", "text/plain", FileKind.TEXT),
        (b"ID3 tags, and how to write them", "text/plain", FileKind.TEXT),
        (b"OggS is the mark of a page", "text/plain", FileKind.TEXT),
        (b"fLaC and other marks", "text/plain", FileKind.TEXT),
        (b"BZh is how bzip2 begins", "text/plain", FileKind.TEXT),
        (b"the ftyp box", "text/plain", FileKind.TEXT),
        (b"MZ\x90\0\3\0\0\0", "", FileKind.PROGRAM),
        (b"ID3\x04\0\0\0\0", "", FileKind.SOUND),
        (b"caff\0\1\0\0desc", "", FileKind.SOUND),
        (b"OggS\0\2\0\0", "", FileKind.SOUND),
        (b"fLaC\0\0\0\x22", "", FileKind.SOUND),
        (b"BZh91AY&SY\x12", "", FileKind.PACKED),
    ],
)
def test_bytes_say_what_a_file_is_and_its_type_only_whether_one_listens(
    data: bytes, claimed: str, kind: FileKind
) -> None:
    assert kind_of(data, claimed)[0] is kind


@pytest.mark.parametrize("column", [1, 16_384])
def test_a_stray_cell_at_the_edge_of_a_sheet_hides_nothing(column: int) -> None:
    told = found(excel(column), 15)
    assert WORDS in str(told["text"])
    assert ("edge" if column == 1 else "(further right 1 more)") in str(told["text"])
    assert "of which the beginning was read" not in str(told["about"])


@pytest.mark.parametrize(("most", "read"), [(200_000, False), (2_000_000, True)])
def test_a_document_is_unpacked_if_all_of_it_is_small_enough_whatever_it_holds(
    most: int, read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office, "MOST_BYTES", most)
    told = found(archive({**dict(entries(word())), "word/media/big.png": b"x" * 400_000}))
    assert (WORDS in str(told.get("text"))) is read
    assert ("unpacks to" in str(told.get("why"))) is not read


@pytest.mark.parametrize(("more", "cut"), [(0, False), (1, True), (1_000, True)])
def test_of_a_text_that_is_too_long_it_is_said_that_only_its_beginning_is_there(more: int, cut: bool) -> None:
    told = found("é".encode() * (MOST_BYTES // 2) + b"x" * more)
    assert str(told["about"]).endswith(", of whose text the beginning was kept") is cut
    assert told["plain"] is not cut
    assert str(told["text"]) == "é" * (MOST_BYTES // 2)


def test_of_a_sheet_that_is_longer_than_is_kept_the_beginning_is_read_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(office, "MOST_CHARS", 60)
    rows = [None, "a" * 40, None, "b" * 40, "c" * 40]
    text, cut = office.bounded(iter(rows), float("inf"))
    assert (text, cut) == ("a" * 40 + "\n" + "b" * 40, ", of which the beginning was read")
    assert office.bounded(iter(rows[:2]), float("inf")) == ("a" * 40, "")
