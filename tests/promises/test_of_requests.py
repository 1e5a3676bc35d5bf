"""docs/api.md: what a request may say, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.promises.user import User, code, text

NOT_OFFERED = "not offered here"


def test_a_repeated_request_has_what_came_of_it_and_belongs_to_its_session_and_its_person(user: User):
    once = {"Idempotency-Key": "the-same"}
    first = user.completion("list files", headers=once, user="one")
    again = user.completion("list files", headers=once, user="one")
    other = user.completion("list files", headers=once, user="two")
    inside = user.completion("list files", headers=once, user="one", session="there")
    assert again.json() == first.json()
    assert len({one.json()["id"] for one in (first, other, inside)}) == 3
    assert code(user.completion("list files please", headers=once, user="one")) == (422, "idempotency_key_reused")


def test_a_user_has_two_hundred_characters_and_not_one_more(user: User):
    assert user.completion("list files", user="u" * 200).status_code == 200
    assert user.completion("list files", user="u" * 201).status_code == 400


@pytest.mark.parametrize("field", ["models", "route", "api_base", "api_key"])
def test_what_would_lead_past_the_operators_settings_is_refused_by_name(user: User, field: str):
    more: dict[str, Any] = {field: "x"}
    refused = user.completion("list files", **more)
    assert code(refused) == (400, "unsupported_parameter")
    assert refused.json()["error"]["param"] == field


@pytest.mark.parametrize("name", ["Errors", "Disconnect", "Tools", "Approvals"])
def test_a_word_that_a_header_does_not_know_is_refused_by_the_headers_name(user: User, name: str):
    refused = user.completion("list files", session="there", headers={f"X-Outspoken-{name}": "perhaps"})
    assert code(refused) == (400, "invalid_header")
    assert f"X-Outspoken-{name}" in refused.json()["error"]["message"]


def test_an_option_that_is_misspelt_is_not_passed_over(user: User):
    refused = user.completion("list files", outspoken={"tols": "none"})
    assert refused.status_code == 400
    assert "outspoken.tols" in refused.json()["error"]["message"]


def test_whose_tools_are_used_is_what_comes_first_in_the_list(user: User):
    mine: dict[str, Any] = {
        "type": "function",
        "function": {"name": "mine", "parameters": {"type": "object", "properties": {}}},
    }
    both = {"X-Outspoken-Tools": "both"}
    assert NOT_OFFERED in text(user.completion("list files", tool_choice="none", headers=both))
    assert NOT_OFFERED in text(user.completion("list files", tools=[]))
    assert NOT_OFFERED in text(user.completion("list files", tools=[mine]))
    assert NOT_OFFERED not in text(user.completion("list files", tools=[mine], headers=both))
    assert NOT_OFFERED in text(user.completion("list files", headers={"X-Outspoken-Task": "title", **both}))


def test_a_failure_is_told_as_the_header_says_else_as_it_suits_the_client(user: User):
    page, fault = {"User-Agent": "Mozilla/5.0"}, "rehearse unauthorised"
    by_status = user.completion(fault)
    assert code(by_status) == (401, "not_authorised")
    assert by_status.headers["x-should-retry"] == "false"
    for heads in ({"X-Outspoken-Errors": "words"}, page):
        said = user.completion(fault, headers=heads)
        assert text(said).startswith("[outspoken] ")
        assert said.json()["choices"][0]["finish_reason"] == "length"
    assert user.completion(fault, headers={**page, "X-Outspoken-Errors": "status"}).status_code == 401
    assert user.completion(fault, headers=page, response_format={"type": "json_object"}).status_code == 401


def test_a_refused_request_is_explained_by_the_id_in_its_header_and_without_its_words(user: User):
    refused = user.completion("my secret swordfish", n=2)
    assert refused.status_code == 400
    status, story, _ = user.command("explain", refused.headers["x-request-id"])
    assert status == 0
    assert "It was refused" in story
    assert "HTTP 400" in story
    assert "swordfish" not in story
    assert len(story.splitlines()) <= 15
    assert user.command("explain", "req_that_is_not_there")[0] == 1


def test_a_body_that_is_no_json_or_too_large_is_refused_with_its_code(user: User):
    def sent(body: bytes) -> tuple[int, str]:
        return code(user.http.post("/v1/chat/completions", content=body))

    assert sent(b"{") == (400, "invalid_json")
    assert sent(b'{"a":"' + b"x" * 2_000_000 + b'"}') == (413, "request_too_large")


def test_words_that_are_in_a_tools_name_call_none_of_the_gateways_tools(user: User):
    text(user.completion("write list.txt: what to do with a file", session="rehearses"))
    assert "what to do with a file" in text(user.completion("read list.txt", session="rehearses"))
    asked = user.completion("would you delete or send a message about a file?", session="rehearses").json()
    assert asked["outspoken"]["tool_calls"] == 0
