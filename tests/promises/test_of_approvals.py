"""docs/approvals.md and docs/api-sessions.md: what waits for somebody's word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.promises.user import User, bearer, code, text, until

WAITS = {"X-Outspoken-Approvals": "wait"}
WAITING = "/v1/outspoken/approvals"


def test_what_waits_is_seen_and_decided_by_its_owner_alone_once_and_for_all(user: User):
    one, same, other = (
        user.key("eva-1", "--owner", "eva"),
        user.key("eva-2", "--owner", "eva"),
        user.key("fritz", "--owner", "fritz"),
    )
    call = "delete not-there.txt"
    with ThreadPoolExecutor(1) as aside:
        answer = aside.submit(user.completion, call, one, session="asks", headers=WAITS)
        until(lambda: bool(_waiting(user, one)), "nobody is asked")
        (asked,) = _waiting(user, one)
        assert (asked["tool"], asked["conversation"]) == ("delete_file", "asks")
        assert _waiting(user, other) == []

        def refused(approve: object, key: str, **more: str) -> tuple[int, str]:
            said = {"approve": approve, **more}
            return code(user.http.post(f"{WAITING}/{asked['id']}", headers=bearer(key), json=said))

        assert refused(True, other) == (404, "approval_not_found")
        assert refused("yes", one) == (400, "invalid_value")
        assert refused(True, one, lasts="for ever") == (400, "invalid_value")
        state = user.http.get("/v1/conversations/asks", headers=bearer(one)).json()["outspoken"]["state"]
        assert state == "waiting_for_approval"
        listed = user.command("approvals", "list")
        assert "delete_file" in listed[1]
        first = user.http.post(f"{WAITING}/{asked['id']}", headers=bearer(same), json={"approve": True})
        assert (first.status_code, first.json()["status"]) == (200, "approved")
        assert refused(False, one) == (409, "already_decided")
        assert "not-there.txt" in text(answer.result())
    again = user.http.post(f"{WAITING}/{asked['id']}", headers=bearer(one), json={"approve": True})
    assert (again.status_code, again.json()) == (200, first.json())
    assert refused(False, one) == (409, "already_decided")


def test_where_nobody_can_be_found_a_call_is_not_run_and_waiting_is_refused(user: User):
    call = "delete notes.txt"
    assert code(user.completion(call, headers=WAITS)) == (400, "unsupported_value")
    user.completion("write notes.txt: still here", session="unasked")
    user.completion(call, session="unasked")
    assert "still here" in text(user.completion("read notes.txt", session="unasked"))


def _waiting(user: User, key: str) -> list[dict[str, object]]:
    return user.http.get(WAITING, headers=bearer(key)).json()["data"]
