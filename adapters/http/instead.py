"""What of OpenAI's API is not here, and what to do instead: told to whoever asks for it. Pure."""

from __future__ import annotations

import re

_INSTEAD = (
    (r"responses/compact", ("There is no compaction to ask for: the gateway shortens a conversation by itself when it has to. Go on with "
     "previous_response_id or conversation.")),
    (r"responses/input_tokens(/count)?", "Tokens are not counted beforehand: usage of a response says how many there were."),
    (r"conversations/[^/]+/items(/[^/]+)?", ("A conversation holds what was asked and answered in it. Send items as the input of a response that "
     "names it in conversation; to begin it anew: POST /v1/outspoken/sessions/ID/reset.")),
    (r"(chat/)?completions(/[^/]+(/messages)?)?", ("Here is POST /v1/chat/completions, which keeps nothing. What is kept are responses: "
     "POST /v1/responses.")),
    (r"messages(/.*)?", "This is the shape of Anthropic's API. Here are OpenAI's: POST /v1/chat/completions and POST /v1/responses."),
    (r"(assistants|threads)(/.*)?", "OpenAI has ended its Assistants. Here are POST /v1/responses, conversations and agents (GET /v1/models)."),
    (r"files(/.*)?|uploads(/.*)?|containers(/.*)?|vector_stores(/.*)?", ("Files come within the messages (file_data), or lie in the workspace that the "
     "agent's tools have.")),
    (r"(embeddings|moderations|images|audio|videos|realtime|batches|fine_tuning|evals|skills|chatkit)(/.*)?", ("The gateway answers "
     "conversations. Ask the model's provider for this directly.")),
)  # fmt: skip
_ASKED = ("chat/completions", "responses")
_BEFORE = ("v1", "openai", "api")


def instead(path: str) -> str:
    """What to do instead of asking for this path; empty if there is nothing to say."""
    meant = _meant(path)
    if meant and path != f"/v1/{meant}":
        return f"The API's address ends in /v1, without a slash behind it: POST /v1/{meant}."
    asked = path.removeprefix("/v1/").strip("/")
    return next((words for pattern, words in _INSTEAD if path.startswith("/v1/") and re.fullmatch(pattern, asked)), "")


def _meant(path: str) -> str:
    """What programs ask for that were given an address without /v1, with it twice, with a slash too many, or Azure's; empty if it is none of these."""
    names = [name for name in path.split("/") if name]
    for meant in _ASKED:
        last = meant.split("/")
        if names[-len(last) :] == last and (len(names) == len(last) or names[0] in _BEFORE):
            return meant
    return ""
