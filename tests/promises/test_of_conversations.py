"""docs/api-sessions.md: conversations and files, by API."""

from __future__ import annotations

import pytest

from tests.promises.user import User, bearer, code

SESSIONS, CONVERSATIONS = "/v1/outspoken/sessions", "/v1/conversations"


@pytest.fixture(scope="module")
def keys(user: User) -> tuple[str, str, str]:
    """Two of one owner, and somebody else's."""
    one, same, other = (user.key(name, "--owner", name.partition("-")[0]) for name in ("cora-1", "cora-2", "dan-1"))
    return one, same, other


def test_a_conversation_is_its_owners_by_each_key_and_does_not_exist_for_anybody_else(
    user: User, keys: tuple[str, str, str]
):
    one, same, other = keys
    assert user.completion("list files", one, session="mine").status_code == 200
    by_id = user.http.get(f"{CONVERSATIONS}/mine", headers=bearer(same)).json()["outspoken"]["session"]
    for name in ("mine", by_id):
        assert user.http.get(f"{CONVERSATIONS}/{name}", headers=bearer(same)).status_code == 200
        for key in (other, ""):
            for path in (f"{CONVERSATIONS}/{name}", f"{CONVERSATIONS}/{name}/items", f"{SESSIONS}/{name}/export"):
                assert code(user.http.get(path, headers=bearer(key))) == (404, "conversation_not_found")
            assert user.http.post(f"{SESSIONS}/{name}/reset", headers=bearer(key)).status_code == 404
            assert user.http.delete(f"{CONVERSATIONS}/{name}", headers=bearer(key)).status_code == 404
    assert user.http.get(SESSIONS, headers=bearer(other)).json()["data"] == []


def test_an_export_is_the_same_to_the_byte_as_long_as_nothing_happens(user: User, keys: tuple[str, str, str]):
    one, same, _ = keys
    user.completion("list files", one, session="written")
    first, again = (user.http.get(f"{SESSIONS}/written/export", headers=bearer(key)) for key in (one, same))
    assert first.content == again.content
    user.completion("list files", one, session="written")
    assert user.http.get(f"{SESSIONS}/written/export", headers=bearer(one)).content != first.content


def test_after_a_reset_no_model_is_told_what_was_said_and_the_export_has_it(user: User, keys: tuple[str, str, str]):
    one, *_ = keys
    user.completion("list files", one, session="anew")
    assert user.http.post(f"{SESSIONS}/anew/reset", headers=bearer(one)).json()["outspoken"]["turns"] == 0
    assert user.http.get(f"{CONVERSATIONS}/anew/items", headers=bearer(one)).json()["data"] == []
    user.completion("list files", one, session="anew")
    export = user.http.get(f"{SESSIONS}/anew/export", headers=bearer(one)).json()
    assert [turn["told"] for turn in export["turns"]] == [False, True]


def test_what_is_deleted_is_gone_with_its_files_and_its_name_is_free(user: User, keys: tuple[str, str, str]):
    one, *_ = keys
    user.completion("write notes.txt: swordfish", one, session="short-lived")
    gone = user.http.get(f"{CONVERSATIONS}/short-lived", headers=bearer(one)).json()["outspoken"]["session"]
    assert user.http.delete(f"{CONVERSATIONS}/short-lived", headers=bearer(one)).json()["deleted"] is True
    for name in ("short-lived", gone):
        assert user.http.delete(f"{CONVERSATIONS}/{name}", headers=bearer(one)).status_code == 404
    user.completion("list files", one, session="short-lived")
    export = user.http.get(f"{SESSIONS}/short-lived/export", headers=bearer(one))
    assert len(export.json()["turns"]) == 1
    assert export.json()["files"] == []
    assert "swordfish" not in export.text


def test_metadata_has_sixteen_texts_and_not_one_more(user: User, keys: tuple[str, str, str]):
    def made(number: int) -> int:
        metadata = {str(each): "x" for each in range(number)}
        return user.http.post(CONVERSATIONS, headers=bearer(keys[0]), json={"metadata": metadata}).status_code

    assert (made(16), made(17)) == (200, 400)


def test_a_wrong_question_is_told_which_part_of_it_is_wrong(user: User, keys: tuple[str, str, str]):
    def asked(**query: str) -> tuple[int, str, str]:
        answer = user.http.get(SESSIONS, headers=bearer(keys[0]), params=query)
        return (*code(answer), answer.json()["error"]["param"])

    assert asked(limit="0") == (400, "invalid_value", "limit")
    assert asked(limit="101") == (400, "invalid_value", "limit")
    assert asked(order="up") == (400, "invalid_value", "order")
    assert asked(after="nobody") == (404, "conversation_not_found", "after")


def test_a_method_that_is_not_possible_is_told_which_are(user: User):
    refused = user.http.patch(f"{CONVERSATIONS}/any")
    assert code(refused) == (405, "method_not_allowed")
    assert "DELETE" in refused.headers["Allow"]
