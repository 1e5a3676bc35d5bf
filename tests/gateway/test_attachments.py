"""What comes with a message lies in its conversation's folder, once."""

from __future__ import annotations

from pathlib import Path

from gateway.chats.attachments import save


def test_the_same_bytes_are_stored_once_in_a_folder_whatever_they_are_called(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    assert [save(folder, f"photo-{number}.jpg", b"same") for number in range(30)] == ["photo-0.jpg"] * 30
    assert save(folder, "photo-0.jpg", b"else") == "photo-0-2.jpg"
    assert save(folder, "other.jpg", b"else") == "photo-0-2.jpg"
    assert sorted(one.name for one in folder.iterdir()) == ["photo-0-2.jpg", "photo-0.jpg"]
    assert (folder / "photo-0.jpg").read_bytes() == b"same"


def test_what_lies_elsewhere_is_not_taken_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "workspace"
    (folder / "deep").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(b"same")
    (folder / "link.jpg").symlink_to(tmp_path / "secret")
    assert save(folder, "photo.jpg", b"same") == "photo.jpg"
    assert not (folder / "photo.jpg").is_symlink()
