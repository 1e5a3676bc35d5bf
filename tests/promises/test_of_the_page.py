"""docs/web.md: conversations of a browser, links to them, what is put aside, temporary ones, instructions."""

from __future__ import annotations

from typing import Any

import httpx

from tests.promises.user import Browser, User, code, until

WORDS = "remember that my fish is called swordfish"


def test_what_is_said_in_one_browser_nobody_sees_in_another_nor_without_one(user: User):
    mine, other = Browser(user, "browser-of-ann"), Browser(user, "browser-of-ben")
    mine.says("c-of-one-browser", "list files")
    assert mine.listed("c-of-one-browser")
    assert other.sees("c-of-one-browser") == []
    assert other.listed("c-of-one-browser") is None
    for act in (other.get, other.delete):
        path = "/api/conversations/c-of-one-browser"
        assert act(f"{path}/export" if act == other.get else path).status_code == 404
    assert other.post("/api/conversations/c-of-one-browser", title="mine now").status_code == 404
    assert user.http.get("/api/conversations").json()["conversations"] == []


def test_the_same_id_again_is_the_same_message_and_with_other_words_none(user: User):
    mine = Browser(user, "browser-of-ann")
    first, again = (mine.send("c-twice-the-same", "list files", "message-0001") for _ in range(2))
    assert (first.status_code, first.json()["duplicate"]) == (202, False)
    assert (again.status_code, again.json()["duplicate"]) == (202, True)
    assert mine.send("c-twice-the-same", "something else", "message-0001").status_code == 422
    assert len(mine.says("c-twice-the-same", "/usage")) == 2


def test_a_link_shows_a_conversation_as_it_was_and_only_to_who_has_the_latest_one(user: User):
    mine, other, session = Browser(user, "browser-of-cleo"), Browser(user, "browser-of-ben"), "c-shown-to-others"
    link = f"/api/conversations/{session}/link"
    assert mine.post(link).status_code == 404
    mine.says(session, "write list.txt: buy a halibut")
    first = mine.post(link).json()["link"]
    shown = shared(user, first).text
    assert "write list.txt" in shown
    mine.says(session, WORDS)
    assert shared(user, first).text == shown
    assert other.post(link).status_code == 404
    second = mine.post(link).json()["link"]
    assert code(shared(user, first)) == (404, "link_not_found")
    assert "swordfish" in shared(user, second).text
    assert first not in mine.get("/api/conversations").text + mine.get(f"/api/conversations/{session}/export").text
    mine.says(session, "/undo")
    assert "swordfish" not in shared(user, second).text
    assert other.delete(link).status_code == 404
    assert shared(user, second).status_code == 200
    assert mine.delete(link).json()["done"] is True
    assert shared(user, second).status_code == 404
    third = mine.post(link).json()["link"]
    assert mine.delete(f"/api/conversations/{session}").status_code == 200
    assert shared(user, third).status_code == 404


def test_a_link_holds_nothing_that_tools_were_given_or_gave(user: User):
    mine, session = Browser(user, "browser-of-dora"), "c-with-tools-in-it"
    mine.says(session, "write given.txt: halibut and then list files")
    page = shared(user, mine.post(f"/api/conversations/{session}/link").json()["link"]).json()
    tools = [bubble for message in page["messages"] for bubble in message["bubbles"] if bubble["kind"] == "activity"]
    assert tools
    assert all("halibut" not in str(bubble) and "given.txt" not in bubble["text"] for bubble in tools)
    page = user.http.get("/shared")
    assert "noindex" in page.headers["X-Robots-Tag"]
    assert page.headers["Referrer-Policy"] == "no-referrer"


def test_what_is_put_aside_is_found_keeps_its_title_and_comes_back_when_something_happens(user: User):
    mine, session = Browser(user, "browser-of-ed"), "c-to-be-put-aside"
    mine.says(session, "list files")
    path = f"/api/conversations/{session}"
    assert mine.post(path, archived=True).json()["archived"] is True
    assert mine.post(path, archived=True).json()["archived"] is True
    assert mine.post(path, title="t" * 200).json()["archived"] is True
    assert code(mine.post(path, title="t" * 201)) == (400, "invalid_value")
    assert mine.listed(session, search="list files")
    mine.says(session, "list files now")
    listed = mine.listed(session)
    assert listed is not None
    assert (listed["archived"], listed["title"], listed["named"]) == (False, "t" * 200, True)
    assert mine.post(path, title="").json()["title"] == "list files"


def test_a_temporary_one_is_in_no_list_has_no_link_and_knows_nothing_of_ones_memory(user: User):
    mine, session = Browser(user, "browser-of-fay"), "c-t-not-for-long-0001"
    mine.says("c-with-a-memory-of-it", WORDS)
    said = mine.says(session, "what do you remember about fish")
    assert "swordfish" not in answers(said)
    assert mine.listed(session) is None
    assert mine.post(f"/api/conversations/{session}/link").status_code in {400, 404, 409}
    assert mine.delete(f"/api/conversations/{session}").status_code == 200
    assert mine.sees(session) == []
    assert mine.delete(f"/api/conversations/{session}").status_code == 404


def test_instructions_are_ones_own_have_four_thousand_characters_and_are_taken_back(user: User):
    mine, other = Browser(user, "browser-of-gil"), Browser(user, "browser-of-ben")
    assert mine.post("/api/instructions", text="ü" * 4_000).status_code == 200
    assert code(mine.post("/api/instructions", text="ü" * 4_001)) == (400, "invalid_value")
    assert mine.get("/api/instructions").json()["text"] == "ü" * 4_000
    assert other.get("/api/instructions").json()["text"] == ""
    mine.post("/api/instructions", text="Be brief.")
    assert "Be brief." in str(mine.says("c-asks-for-wishes", "/instructions")[-1]["bubbles"])
    mine.says("c-asks-for-wishes", "/instructions off")
    assert mine.get("/api/instructions").json()["text"] == ""


def test_what_is_said_shown_and_wished_for_is_there_after_a_kill(user: User):
    mine, session = Browser(user, "browser-of-hal"), "c-before-the-kill"
    before = mine.says(session, "list files")
    link = mine.post(f"/api/conversations/{session}/link").json()["link"]
    mine.post("/api/instructions", text="Be kind.")
    mine.post(f"/api/conversations/{session}", pinned=True, archived=True)
    assert mine.send(session, "count to 30 slowly").status_code == 202
    until(lambda: mine.sees(session)[-1]["state"] == "open", "it does not begin")
    user.kill()
    user.start()
    assert [one["person"] for one in mine.sees(session)] == ["list files", "count to 30 slowly"]
    mine.until_answered(session, "count to 30 slowly")
    after = mine.sees(session)
    assert answers(before) in answers(after)
    assert [one["exit"] for one in after] == ["answered", "answered"]
    assert "list files" in shared(user, link).text
    assert "count to 30" not in shared(user, link).text
    assert mine.get("/api/instructions").json()["text"] == "Be kind."
    listed = mine.listed(session)
    assert listed is not None
    assert (listed["pinned"], listed["archived"]) == (True, False)


def shared(user: User, link: str) -> httpx.Response:
    """What a stranger with the link is shown."""
    return user.http.post("/api/shared", json={"link": link})


def answers(messages: list[dict[str, Any]]) -> str:
    return "\n".join(
        bubble["text"] for message in messages for bubble in message["bubbles"] if bubble["kind"] == "answer"
    )
