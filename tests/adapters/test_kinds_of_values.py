"""What stands in the configuration is read as it was meant, and what could be a secret is never repeated."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from adapters.contract.settings import http_url, listed, proxy_url

NAMES = st.lists(st.text("ab@-1", min_size=1, max_size=4), max_size=4)


@given(NAMES, st.sampled_from([",", ", ", " ,", ",,"]), st.sampled_from(["", ",", " ", ", ,"]))
def test_a_list_from_the_environment_holds_what_is_named_and_nothing_else(
    names: list[str], between: str, end: str
) -> None:
    assert listed(between.join(names) + end) == names
    assert listed(json.dumps(names)) == listed(f" {json.dumps(names)}") == names


@pytest.mark.parametrize(
    "more",
    [
        "ada:hunter2@e.org",
        "ada@e.org",
        ":hunter2@e.org",
        "e.org/v1?key=hunter2",
        "e.org/v1#hunter2",
        "e.org:x",
        "e.org:0",
        "",
    ],
)
def test_an_address_holds_no_secret_and_what_is_said_of_it_none_either(more: str) -> None:
    with pytest.raises(PydanticCustomError) as said:
        http_url(f"https://{more}")
    assert "hunter2" not in str(said.value)


@pytest.mark.parametrize("address", ["https://e.org/v1", "http://[::1]:8080", "https://e.org"])
def test_an_address_is_kept_without_a_slash_at_its_end(address: str) -> None:
    assert http_url(address) == http_url(f"{address}/") == address
    assert proxy_url("ada:hunter2@e.org:3128") == "http://ada:hunter2@e.org:3128", "a proxy may want to know who we are"
