"""What of OpenAI's API is not here is told with what to do instead."""

from __future__ import annotations

import pytest

from adapters.http.instead import instead


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/v1/responses/compact", "previous_response_id"),
        ("/v1/conversations/c/items", "the input of a response"),
        ("/v1/conversations/c/items/i", "the input of a response"),
        ("/v1/chat/completions/chatcmpl-1", "/v1/responses"),
        ("/v1/completions", "/v1/chat/completions"),
        ("/v1/embeddings", "provider"),
        ("/v1/vector_stores/x/files", "file_data"),
        ("/v1/threads/x/runs", "agents"),
    ],
)
def test_it_is_told(path: str, words: str) -> None:
    assert words in instead(path)


@pytest.mark.parametrize("path", ["/v1/responses/resp_1", "/v1/models", "/v1/nonsense", "/embeddings", ""])
def test_nothing_else_is(path: str) -> None:
    assert instead(path) == ""


@pytest.mark.parametrize("path", ["/chat/completions", "//v1/chat/completions", "/v1//chat/completions", "/v1/chat/completions/", "/v1/v1/chat/completions", "/api/chat/completions", "/openai/deployments/gpt-5/chat/completions"])  # fmt: skip
def test_an_address_that_is_nearly_right_is_told_the_right_one(path: str) -> None:
    assert "POST /v1/chat/completions." in instead(path)
    assert "POST /v1/responses." in instead(path.replace("chat/completions", "responses"))


def test_what_is_right_is_not_misspelt() -> None:
    assert "address" not in instead("/v1/chat/completions") + instead("/v1/responses")
