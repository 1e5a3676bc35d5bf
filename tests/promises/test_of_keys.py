"""docs/keys.md."""

from __future__ import annotations

import json
from typing import Any

from tests.promises.user import User, bearer, code, secret_of, text

ASKED = "what do you remember about dog"


def test_what_is_remembered_is_the_owners_by_each_of_their_keys_and_nobody_elses(user: User):
    ada, too, bob = (
        user.key("ada-1", "--owner", "ada"),
        user.key("ada-2", "--owner", "ada"),
        user.key("bob", "--owner", "bob"),
    )
    text(user.completion("remember that my dog is called Rex", ada, session="home"))
    assert "Rex" in text(user.completion(ASKED, too, session="elsewhere"))
    assert "Nothing is remembered" in text(user.completion(ASKED, bob, session="home"))
    by_field = user.completion(ASKED, bob, session="asked", user="ada")
    by_header = user.completion(ASKED, bob, session="asked", headers={"X-Outspoken-User": "ada"})
    assert "Rex" not in text(by_field) + text(by_header)


def test_a_key_that_names_users_has_a_person_for_each_of_them(user: User):
    family, ada = user.key("family", "--owner", "family", "--names-users"), user.key("first", "--owner", "first")
    text(
        user.completion(
            "remember that my dog is called Tom", family, session="a", headers={"X-Outspoken-User": "first"}
        )
    )
    again = user.completion(ASKED, family, session="b", headers={"X-OpenWebUI-User-Id": "first"})
    other = user.completion(ASKED, family, session="b", headers={"X-OpenWebUI-User-Id": "second"})
    assert "Tom" in text(again)
    assert "Nothing is remembered" in text(other)
    assert "Nothing is remembered" in text(user.completion(ASKED, ada, session="a"))


def test_a_name_is_used_once_also_when_its_key_is_revoked(user: User):
    key = user.key("once")
    assert user.command("keys", "revoke", "once")[0] == 0
    assert user.command("keys", "add", "once")[0] == 1
    assert user.command("keys", "rotate", "once")[0] == 1
    assert key not in user.command("keys", "show", "once")[1] + user.command("keys", "list")[1]


def test_a_rotated_key_is_good_as_long_as_it_was_left_and_no_longer(user: User):
    first = user.key("turned")
    second = secret_of(user.command("keys", "rotate", "turned", "--keep-minutes", "60")[1])
    assert [_good(user, key) for key in (first, second)] == [200, 200]
    third = secret_of(user.command("keys", "rotate", "turned")[1])
    assert [_good(user, key) for key in (first, second, third)] == [401, 401, 200]


def test_what_a_revoked_key_had_begun_is_answered_and_nothing_more_is_asked_fetched_or_cancelled(user: User):
    key = user.key("leaves", "--owner", "lea")
    kept = user.response("list files", key).json()["id"]
    body = {"model": "outspoken", "stream": True, "messages": [{"role": "user", "content": "count to 30 slowly"}]}
    with user.http.stream("POST", "/v1/chat/completions", headers=bearer(key), json=body) as stream:
        lines = stream.iter_lines()
        next(lines)
        assert user.command("keys", "revoke", "leaves")[0] == 0
        assert user.completion("list files", key).status_code == 401
        assert user.http.get(f"/v1/responses/{kept}", headers=bearer(key)).status_code == 401
        assert user.http.post(f"/v1/responses/{kept}/cancel", headers=bearer(key)).status_code == 401
        chunks = [json.loads(line[5:]) for line in lines if line.startswith("data: {")]
    assert next(chunk["outspoken"]["exit"] for chunk in chunks if "outspoken" in chunk) == "answered"


def test_a_key_has_its_models_and_the_first_stands_for_outspoken(user: User):
    key = user.key("models", "--models", "rehearsal")
    listed = user.http.get("/v1/models", headers=bearer(key)).json()["data"]
    assert [one["id"] for one in listed] == ["rehearsal"]
    assert code(user.completion("list files", key, model="another")) == (404, "model_not_found")
    answers = [user.completion("list files", key, model=model).json() for model in ("outspoken", "rehearsal")]
    assert [one["outspoken"]["model"] for one in answers] == ["rehearsal", "rehearsal"]


def test_a_key_without_tools_is_offered_none_and_one_with_tools_from_nobody_may_bring_none(user: User):
    bare, limited = user.key("bare", "--no-tools"), user.key("limited", "--tools-from", "none")
    tool: dict[str, Any] = {
        "type": "function",
        "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}},
    }
    assert "not offered here" in text(user.completion("list files", bare))
    assert "not offered here" in text(user.completion("list files", limited))
    assert code(user.completion("list files", limited, tools=[tool])) == (403, "tools_not_allowed")
    wants = user.completion("list files", limited, headers={"X-Outspoken-Tools": "gateway"})
    assert code(wants) == (403, "tools_not_allowed")


def test_a_rate_lets_exactly_so_many_through_and_a_repeated_request_has_its_answer(user: User):
    key = user.key("rated", "--per-minute", "2")
    first = user.completion("list files", key, headers={"Idempotency-Key": "rated-1"})
    second = user.completion("list files", key)
    third = user.completion("list files", key)
    assert [one.headers["x-ratelimit-remaining-requests"] for one in (first, second)] == ["1", "0"]
    assert code(third) == (429, "rate_limit_exceeded")
    assert 0 < int(third.headers["Retry-After"]) <= 60
    again = user.completion("list files", key, headers={"Idempotency-Key": "rated-1"})
    assert again.json()["id"] == first.json()["id"]


def test_a_days_tokens_are_used_to_the_end_and_then_refused_until_midnight(user: User):
    key = user.key("counted", "--day-tokens", "30")
    assert user.completion("list files", key).status_code in {200, 429}
    refused = user.completion("list files", key)
    assert code(refused) == (429, "insufficient_quota")
    assert 0 < int(refused.headers["Retry-After"]) <= 24 * 3600
    assert "x-ratelimit-limit-tokens" in refused.headers


def _good(user: User, key: str) -> int:
    return user.http.get("/v1/models", headers=bearer(key)).status_code
