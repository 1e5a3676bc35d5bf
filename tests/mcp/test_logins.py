"""What is kept of a login: for the gateway's user alone, whole or not at all; and what a browser brings back from one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agent_core.tools.mcp.link import McpLink
from agent_core.tools.mcp.logins import LoginFile
from agent_core.tools.mcp.oauth import EARLY_SECONDS, LoginNeeded, StoredLogin, came_back
from agent_core.tools.mcp.terms import ServerTerms


def test_it_is_for_the_gateways_user_alone_and_what_was_kept_before_stays(tmp_path: Path) -> None:
    file = LoginFile.of(tmp_path / "logins", "desk")
    assert file.read() == {}
    file.keep(tokens={"access_token": "a"}, expires_at=5.0)
    file.keep(tokens={"access_token": "b"})
    assert file.read() == {"tokens": {"access_token": "b"}, "expires_at": 5.0}
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [one.name for one in file.path.parent.iterdir()] == [file.path.name]
    file.path.write_bytes(b"half of it: {")
    assert file.read() == {}
    file.forget()
    file.forget()
    assert file.read() == {}


def test_no_server_is_given_what_another_one_gave(tmp_path: Path) -> None:
    LoginFile.of(tmp_path, "desk").keep(tokens={"access_token": "of the desk"})
    assert LoginFile.of(tmp_path, "shop").read() == {}
    LoginFile.of(tmp_path, "shop").forget()
    assert LoginFile.of(tmp_path, "desk").read() == {"tokens": {"access_token": "of the desk"}}


@pytest.mark.parametrize(("until", "known"), [(1_000.0, 1_000.0 - EARLY_SECONDS), (None, None), ("soon", None)])
async def test_a_token_is_over_a_while_before_its_end(tmp_path: Path, until: float | None, known: float | None) -> None:
    file = LoginFile.of(tmp_path, "desk")
    file.keep(tokens={"access_token": "a", "token_type": "Bearer", "refresh_token": "r"}, expires_at=until)
    login = StoredLogin(ServerTerms("desk", "desk__", url="https://desk.example/mcp"), file, McpLink())
    await login._initialize()
    assert login.context.token_expiry_time == known
    assert login.context.current_tokens is not None
    assert login.context.current_tokens.refresh_token == "r"


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("error=access_denied&error_description=You+said+no", "refused there: You said no"),
        ("error=access_denied&code=c1", "refused there: access_denied"),
        ("state=s", "holds no code"),
        ("code=&state=s", "holds no code"),
    ],
)
def test_a_login_that_came_to_nothing_says_why(query: str, words: str) -> None:
    with pytest.raises(LoginNeeded, match=words):
        came_back(f"http://127.0.0.1/callback?{query}")


def test_a_login_that_came_back_is_taken_whole() -> None:
    found = came_back(" http://127.0.0.1/callback?code=c%201&state=s&iss=https%3A%2F%2Fa.example \n")
    assert (found.code, found.state, found.iss) == ("c 1", "s", "https://a.example")
