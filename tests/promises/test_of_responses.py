"""docs/api.md: responses that are kept, and those in the background."""

from __future__ import annotations

from tests.promises.user import User, bearer, until


def test_a_kept_response_is_its_owners_and_one_that_is_not_to_be_kept_is_not_there(user: User):
    one, same, other = (
        user.key("ria-1", "--owner", "ria"),
        user.key("ria-2", "--owner", "ria"),
        user.key("sam", "--owner", "sam"),
    )
    kept = user.response("list files", one).json()
    assert user.http.get(f"/v1/responses/{kept['id']}", headers=bearer(same)).json() == kept
    assert user.http.get(f"/v1/responses/{kept['id']}", headers=bearer(other)).status_code == 404
    passing = user.response("list files", one, store=False).json()["id"]
    assert user.http.get(f"/v1/responses/{passing}", headers=bearer(one)).status_code == 404
    assert user.http.delete(f"/v1/responses/{kept['id']}", headers=bearer(other)).status_code == 404
    assert user.http.delete(f"/v1/responses/{kept['id']}", headers=bearer(one)).json()["deleted"] is True
    assert user.http.get(f"/v1/responses/{kept['id']}", headers=bearer(one)).status_code == 404


def test_a_response_in_the_background_is_queued_at_once_and_cancelled_by_nobody_else(user: User):
    one, other = user.key("tim", "--owner", "tim"), user.key("uma", "--owner", "uma")
    begun = user.response("write a long answer", one, background=True).json()
    cancel = f"/v1/responses/{begun['id']}/cancel"
    assert begun["status"] == "queued"
    assert user.http.post(cancel, headers=bearer(other)).status_code == 404
    for _ in range(2):
        assert user.http.post(cancel, headers=bearer(one)).json()["status"] == "cancelled"
    assert user.response("list files", one, background=True, store=False).status_code == 400


def test_what_was_accepted_in_the_background_comes_to_its_end_over_a_kill(user: User):
    key = user.key("val", "--owner", "val")
    begun = user.response("count to 30 slowly", key, background=True).json()["id"]
    user.kill()
    user.start()

    def status() -> str:
        return user.http.get(f"/v1/responses/{begun}", headers=bearer(key)).json()["status"]

    until(lambda: status() not in {"queued", "in_progress"}, "it has no end")
    assert status() == "completed"


def test_a_tool_that_openai_carries_out_is_refused_by_name_and_web_search_is_left_out(user: User):
    refused = user.response("list files", tools=[{"type": "file_search", "vector_store_ids": ["v"]}])
    assert refused.status_code == 400
    assert "file_search" in refused.json()["error"]["message"]
    searched = user.response("list files", tools=[{"type": "web_search"}]).json()
    assert any("web_search" in each for each in searched["outspoken"]["left_out"])
