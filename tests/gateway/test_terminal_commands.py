"""What is typed with a slash in ``outspoken chat``."""

from __future__ import annotations

from pathlib import Path

from tests.gateway.test_process import environment, outspoken
from tests.ports import free_port


def test_commands_of_chats_are_no_words_for_the_model_and_paths_are(tmp_path: Path) -> None:
    typed = "/remind in 1 minute tea\n/new say milk\n/nonsense\n/tmp/notes.txt\n/quit\n"
    talk = outspoken(environment(tmp_path, free_port()), "chat", stdin=typed)
    assert talk.returncode == 0
    assert "/remind works in the chats and on the web page, but not in a terminal." in talk.stderr
    assert "remind in 1 minute" not in talk.stdout
    assert "A new conversation." in talk.stderr
    assert "You wrote “say milk”" in talk.stdout
    assert "There is no command /nonsense" in talk.stderr
    assert "You wrote “/tmp/notes.txt”" in talk.stdout
