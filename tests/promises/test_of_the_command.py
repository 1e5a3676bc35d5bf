"""docs/webhooks.md, docs/health.md, docs/explain.md: what whoever runs the gateway asks in a shell."""

from __future__ import annotations

from tests.promises.user import User


def test_a_gateway_without_webhooks_says_so_and_names_no_address_of_its_own(user: User):
    for words in (("webhooks", "list"), ("webhooks", "test", "deploy")):
        _, said, errors = user.command(*words)
        assert "/api/" not in said + errors
        assert "configured" in said + errors


def test_each_question_about_health_is_answered_by_its_exit_status(user: User):
    assert [user.command("health", each)[0] for each in ("alive", "ready", "well")] == [0, 0, 0]


def test_what_is_not_there_has_a_status_of_its_own_and_words(user: User):
    for words in (("explain", "nothing-of-the-kind"), ("replay", "t_nope"), ("bundle", "t_nope")):
        status, said, errors = user.command(*words)
        assert (status, said) == (1, "")
        assert errors.endswith(".")


def test_a_turn_is_explained_by_its_own_id_and_that_of_its_request_in_fifteen_lines_without_words(user: User):
    answer = user.completion("todo: swordfish, halibut")
    for one in (answer.json()["outspoken"]["turn"], answer.headers["x-request-id"]):
        status, story, _ = user.command("explain", one)
        assert status == 0
        assert 3 <= len(story.splitlines()) <= 15
        assert "turn was answered" in story
        assert "swordfish" not in story


def test_an_answer_is_explained_by_the_id_that_its_program_has(user: User):
    made, completion = user.response("hello").json(), user.completion("hello").json()
    for answer, names in ((made, (made["id"], made["output"][0]["id"])), (completion, (completion["id"],))):
        for name in names:
            status, story, errors = user.command("explain", name)
            assert status == 0, errors
            assert answer["outspoken"]["turn"] in story.splitlines()[0]
    session, _, number = made["id"].removeprefix("resp_").rpartition("_")
    for nobody in (f"resp_{session}_999999", f"resp_s_00000000000000000000_{number}"):
        assert user.command("explain", nobody)[0] == 1
