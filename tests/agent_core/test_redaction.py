"""Secrets do not come out, whatever they are put into."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_core.text.alterations import piece_length, squeezed
from agent_core.text.redaction import MASK, SHORTEST_SECRET, Redactor, is_secret_name

NOBODY = Redactor()
# Built from pieces, so that no scanner takes this file for a leak.
TELEGRAM = "123456789:" + "AAH" + "abcdefghijklmnopqrstuvwxyz0123456"
DISCORD = "MTE" + "4NzQ2NTIzMjE2NzY1NDMyMQ" + ".GhIjKl." + "abcdefghijklmnopqrstuvwxyz0123456789ab"
SLACK = "xoxb-" + "123456789012-abcdefghijkl"

awkward = st.text(alphabet='ab1*=:/ "\\\n%+ü{}@&', min_size=SHORTEST_SECRET, max_size=24)
secrets = st.one_of(st.text(min_size=SHORTEST_SECRET, max_size=40), awkward).filter(
    lambda text: len(text.strip()) >= SHORTEST_SECRET
)
surroundings = st.one_of(
    st.text(max_size=60), awkward, st.sampled_from(["password=", "Bearer ", "sk-", MASK, "://u:", "token: "])
)


@given(secret=secrets, before=surroundings, after=surroundings)
@example(secret="***abc", before="***", after="abc")
@example(secret="password=***", before="password=hunter2 ", after="")
def test_a_known_secret_put_anywhere_never_comes_out(secret: str, before: str, after: str) -> None:
    redactor = Redactor.of([secret])
    assert secret not in redactor.redact(f"{before}{secret}{after}")
    assert secret not in redactor.redact(f"{before}{after}")


@given(first=secrets, second=secrets, between=surroundings)
@example(first="aaaaaab", second="aabcccc", between="")
@example(first="abcd***", second="123456", between="")
def test_of_several_secrets_none_comes_out(first: str, second: str, between: str) -> None:
    redacted = Redactor.of([first, second]).redact(f"{first}{between}{second}{between}{first}")
    assert first not in redacted
    assert second not in redacted


@given(
    secret=st.text(min_size=9, max_size=40).filter(lambda text: len(text.strip()) >= 9), before=st.binary(max_size=5)
)
def test_encoded_forms_of_a_known_secret_are_found(secret: str, before: bytes) -> None:
    redactor = Redactor.of([secret])
    raw = secret.encode()
    for form in (quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        assert form not in redactor.redact(f"<{form}>")
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        encoded = encode(before + raw + b"!?").decode()
        assert MASK in redactor.redact(encoded)
        assert redactor.redact(encoded) != encoded


@given(st.text())
def test_text_that_holds_nothing_secret_shaped_is_left_alone(text: str) -> None:
    assume_plain = "".join(character for character in text if character.isspace() or character in "abcdfghijlmnqruvz,.")
    assert NOBODY.redact(assume_plain[:36]) == assume_plain[:36]


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Incorrect API key provided: sk-proj-abc123def456.", "Incorrect API key provided: ***"),
        ("Authorization: Bearer abc123def456", "Authorization: Bearer ***"),
        ("{'Authorization': 'Basic dXNlcjpwYXNzd29yZA=='}", "{'Authorization': 'Basic ***'}"),
        (f"poll {TELEGRAM} failed", "poll *** failed"),
        (f"/bot{TELEGRAM}/getMe", "/bot***/getMe"),
        (f"login with {DISCORD} failed", "login with *** failed"),
        (f"{SLACK} was revoked", "*** was revoked"),
        ("password=hunter2&user=bob", "password=***&user=bob"),
        ('{"password": "two words", "user": "bob"}', '{"password": "***", "user": "bob"}'),
        ("postgresql+asyncpg://bob:hunter2@db/main", "postgresql+asyncpg://bob:***@db/main"),
        ("GET https://host:8080/v1?api_key=abcdefgh&x=1", "GET https://host:8080/v1?api_key=***&x=1"),
        ("GET https://host/v1?key=abcdefgh#top", "GET https://host/v1?key=***#top"),
        ("OPENAI_API_KEY=abcdefgh outspoken run", "OPENAI_API_KEY=*** outspoken run"),
        ("Set-Cookie: a=b; c=d\nnext line", "Set-Cookie: ***\nnext line"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\nxyz\n-----END PRIVATE KEY----- end", "*** end"),
    ],
)
def test_the_usual_shapes_of_secrets_are_masked_and_their_names_stay(text: str, redacted: str) -> None:
    assert NOBODY.redact(text) == redacted
    assert NOBODY.redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens=4096, completion_tokens: 123456",
        "Bearer authentication required",
        "a basic understanding of the bearer of news",
        "disk-usage-statistics of a task-force-of-many",
        "turn t_01jzabcdef failed at gateway/observe/logging.py:12 after 3 s",
        "https://127.0.0.1:8787/v1/chat/completions?model=gpt",
        "12:34:56 2026-11-20T10:00:00Z",
    ],
)
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert NOBODY.redact(text) == text


def test_a_short_secret_is_not_looked_for_inside_words() -> None:
    assert Redactor.of(["abc", "", "  "]).redact("abcdef") == "abcdef"


def test_a_secret_read_from_a_file_with_a_line_break_is_found_without_it() -> None:
    assert Redactor.of(["hunter2-and-more\n"]).redact("got hunter2-and-more!") == "got ***!"


@pytest.mark.parametrize(
    "name", ["Authorization", "x-api-key", "apiKey", "api_keys", "bot_token", "Cookie", "client_secret"]
)
def test_names_of_secrets_are_known(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["max_tokens", "turn_tokens", "api_key_file", "api_key_env", "key", "session", "author"]
)
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not is_secret_name(name)


def test_the_redactor_does_not_show_what_it_knows() -> None:
    redactor = Redactor.of(["swordfish"])
    assert "swordfish" not in f"{redactor} {redactor!r}"


def test_lone_surrogates_and_binary_secrets_do_not_raise() -> None:
    odd = "ab\ud800cd\x00\x1befgh"
    assert odd not in Redactor.of([odd]).redact(f"<{odd}>")


@pytest.mark.parametrize(
    "piece",
    [
        "1",
        "a:",
        "://",
        "-----BEGIN PRIVATE KEY-----",
        "bearer ",
        "cookie:",
        'password="',
        "a.b-c_d",
        "sk-",
        "-eyJabcdefgh",
        "eyJabcdefgh.",
        "-eyJabcdefgh.a",
        "abc***",
        "sk-ab",
        "...a",
    ],
)
def test_no_text_makes_it_slow(piece: str) -> None:
    text = (piece * 200_000)[:200_000]
    started = time.process_time()
    NOBODY.redact(text)
    Redactor.of(["sk-" + "abcdef0123456789", "sk-ab" * 8]).redact(text)
    assert time.process_time() - started < 2  # some 0.1 s here; a quadratic pattern takes minutes


# ---------------------------------------------------------------------- a secret that somebody repeats in another form

bodies = st.text(
    alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", min_size=24, max_size=64
).filter(lambda body: len(squeezed(body)) >= 20)


@st.composite
def made_keys(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["sk-", "sk-proj-", "", "gsk_", "key-"])) + draw(bodies)


keys = made_keys()


def spaced(key: str, sign: str, every: int) -> str:
    return sign.join(key[at : at + every] for at in range(0, len(key), every))


ALTERATIONS: dict[str, Callable[[str], str]] = {
    "upper": str.upper,
    "lower": str.lower,
    "swapped": str.swapcase,
    "backwards": lambda key: key[::-1],
    "backwards and upper": lambda key: key[::-1].upper(),
    "blanks": lambda key: spaced(key, " ", 4),
    "a blank after each": lambda key: spaced(key, " ", 1),
    "dashes": lambda key: spaced(key, "-", 5),
    "line breaks": lambda key: spaced(key, "\n", 10),
    "zero-width": lambda key: spaced(key, "\u200b", 3),
    "quotes": lambda key: spaced(key, '" + "', 6),
    "split in two": lambda key: f"{key[: len(key) // 2]} and then, after some words, {key[len(key) // 2 :]}",
    "the first half": lambda key: key[: len(key) // 2],
    "the second half": lambda key: key[len(key) // 2 :],
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "percent": lambda key: "".join(f"%{byte:02x}" for byte in key.encode()),
    "percent twice": lambda key: quote(quote(key, safe=""), safe=""),
    "hexadecimal": lambda key: key.encode().hex(),
    "escapes": lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    "json": lambda key: json.dumps({"key": key.upper()}),
}
ELISIONS = ["****", "*************************", "...", "…", "[...]", "•••••", "xxxxxxxx", "<redacted>"]


def longest_piece(key: str, text: str) -> int:
    """How many of the key's letters and digits stand in a row in the text, forwards or backwards."""
    flat, text = squeezed(key), squeezed(text)
    best = 0
    for form in (flat, flat[::-1]):
        for start in range(len(form)):
            while form[start : start + best + 1] in text and start + best < len(form):
                best += 1
    return best


@given(
    key=keys,
    form=st.sampled_from(sorted(ALTERATIONS)),
    before=st.sampled_from(["", "bad key ", "(", "x: "]),
    after=st.sampled_from(["", ".", " is wrong", ")"]),
)
def test_a_known_key_does_not_come_out_in_any_other_form(key: str, form: str, before: str, after: str) -> None:
    altered = ALTERATIONS[form](key)
    redacted = Redactor.of([key]).redact(f"{before}{altered}{after}")
    assert altered not in redacted
    assert longest_piece(key, redacted) < piece_length(len(squeezed(key)))
    assert Redactor.of([key]).redact(redacted) == redacted


@given(key=keys, gap=st.sampled_from(ELISIONS), head=st.integers(4, 8), tail=st.integers(4, 8), upper=st.booleans())
def test_a_key_whose_middle_is_left_out_is_taken_out_as_a_whole(
    key: str, gap: str, head: int, tail: int, upper: bool
) -> None:
    start, end = key[:head], key[-tail:]
    if len(squeezed(start)) < 3 or len(squeezed(end)) < 3 or not start[0].isalnum():
        return
    quoted = f"{start}{gap}{end}"
    redacted = Redactor.of([key]).redact(f"Your key {quoted.upper() if upper else quoted} is not valid.")
    assert redacted.startswith("Your key ")
    assert redacted.endswith(" is not valid.")
    assert squeezed(end) not in squeezed(redacted.removesuffix(" is not valid."))


@pytest.mark.parametrize(
    "text",
    [
        "The model stopped … and then went on.",
        "a.b.c and 1.2.3 and *** and xxxx",
        "see https://example.org/path/to/some/page?with=query#and-fragment ...",
        "**bold** text, **more bold** text",
        "Stopped at the limit of 30 min for one message.",
    ],
)
def test_a_long_key_takes_nothing_out_of_ordinary_words(text: str) -> None:
    assert Redactor.of(["sk-proj-Q7fT2kLmZx91VbNcRw83"]).redact(text) == text


def test_web_tokens_are_found_wherever_they_begin() -> None:
    token = "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0In0." + "abc-DEF_123"
    assert NOBODY.redact(f"token is {token}, sorry") == "token is ***, sorry"
    assert NOBODY.redact(f"x-{token}") == "x-***"
    assert NOBODY.redact(f"a.b.{token}") == "a.b.***"


def test_a_bot_s_id_and_the_words_of_a_key_made_of_words_stay_readable() -> None:
    redactor = Redactor.of(["my-outspoken-gateway-key-2026", "7000000001:AAFqweRTYuiopASDfgh12345678901234"])
    kept = "outspoken asks the gateway for telegram/7000000001/1003"
    assert redactor.redact(kept) == kept
    slack = Redactor.of(["xoxb-" + "2718281828459-3141592653589-kQ8vZ2mXw4RtYp6LbNc9HdJs"])
    assert slack.redact("slack/2718281828459-3141592653589/D1/") == "slack/2718281828459-3141592653589/D1/"
    assert (
        slack.redact("2718281828459-3141592653589-kQ8vZ2mXw4RtYp6LbNc9HdJs ends in NC9HDJS-RtYp6LbNc9").count("***")
        >= 1
    )
    assert "Lb" not in slack.redact("the key ends in RtYp6LbNc9HdJs")
    for told in ("my-outspoken-gateway", "the key begins AAFqweRTYui", "7000000001:AAFqweRTYuiopASDfgh12345678901234"):
        assert "AAFqwe" not in redactor.redact(told)
        assert "outspoken" not in redactor.redact(told)


@given(
    before=st.sampled_from(["", "t_", "sk_", "gsk_", "xoxb_", "ghp_", "github_pat_", "AIza", "AKIA", "eyJ", "bearer"]),
    behind=st.text(alphabet="abkyzAKZ019_", max_size=40),
)
@example(before="AKIA", behind="0" * 16)
@example(before="x", behind="_sk_" + "a" * 20)
def test_one_word_is_looked_at_as_it_is_in_a_sentence(before: str, behind: str) -> None:
    word = before + behind
    assert NOBODY.redact(f"{word} key") == f"{NOBODY.redact(word)} key"
