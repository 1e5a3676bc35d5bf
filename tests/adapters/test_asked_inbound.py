"""In which conversation a request of the API is stored: the one that it names, one of its own that is kept, or one that nobody can name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapters.contract.base import SessionKey, once
from adapters.contract.callers import Caller, scope_of
from adapters.http.api.asked import ApiRequest
from agent_core.messages import Message
from tests.adapters.test_responses_read import asked


def request(session: str = "", *, kept: bool = False, errand: bool = False, key: str = "") -> ApiRequest:
    base = asked()
    return replace(base, session=session, kept=kept, wish=replace(base.wish, errand=errand), caller=Caller(key))


@pytest.mark.parametrize(("key", "realm"), [("", ""), ("k1", "key:k1")])
@pytest.mark.parametrize("kept", [True, False])
def test_a_named_conversation_is_its_realms_own_and_a_title_is_no_part_of_it(key: str, realm: str, kept: bool) -> None:
    named = request("chat 1", kept=kept, key=key)
    assert named.inbound("k", "", "x_1").session == SessionKey("api", "key", "chat 1", person=realm)
    assert request("chat 1", errand=True, key=key).inbound("k", "", "x_1").session == once("x_1")


def test_what_is_kept_is_in_a_conversation_of_its_own_and_what_is_not_in_none() -> None:
    assert request(kept=True).inbound("k", "", "x_1").session == SessionKey("api", "response", "x_1")
    assert request().inbound("k", "", "x_1").session == once("x_1")
    assert request(kept=True, errand=True).inbound("k", "", "x_1").session == once("x_1")


def test_ids_of_requests_are_those_of_their_realm_person_and_conversation() -> None:
    found = [request(), request("a"), request("b"), request("a", key="r"), request("a", key="q"), request(key="r")]
    assert found[0].whose == ""
    assert len({one.whose for one in found}) == len(found)


@pytest.mark.parametrize("history", [(), ({"role": "user", "content": "before"},)])
@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("errand", [True, False])
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("session", ["", "chat 1"])
def test_only_what_somebody_can_find_waits_for_an_approval(
    history: tuple[Message, ...], session: str, *, waits: bool, errand: bool, kept: bool
) -> None:
    one = request(session, kept=kept, errand=errand)
    one = replace(one, history=history, wish=replace(one.wish, waits=waits))
    assert one.waits_unseen is (waits and not errand and not kept and not session)
    assert one.inbound("k", "", "x_1").can_approve is (waits and not errand)


@pytest.mark.parametrize(
    ("key", "person", "whose"), [("", "", "bob"), ("k1", "", ""), ("k1", "ada", "ada"), ("", "ada", "bob")]
)
def test_what_a_request_says_of_its_person_counts_only_where_its_key_is_the_gateways_own(
    key: str, person: str, whose: str
) -> None:
    one = replace(request(), user="bob", caller=Caller(key, person))
    assert one.person == whose
    assert one.inbound("k", "", "x_1").memory_scope == (scope_of(whose) if whose else "api")
