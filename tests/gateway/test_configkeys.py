"""The list of keys, the template that is made from it, and the readers of the places that keys come from."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import Field

from adapters.contract.platforms import ChatSection
from gateway.config.keys import KeyDoc, describe, template
from gateway.config.reading import load
from gateway.config.sections import schema
from gateway.config.sources import TomlFile, UnreadableSource, read_dotenv, read_value_file, toml_lines

ROOT = Path(__file__).parents[2]


def written(folder: Path, text: str) -> Path:
    """A configuration file with this text."""
    file = folder / "outspoken.toml"
    file.write_text(text)
    return file


def test_every_key_is_described_with_a_unit_where_it_is_a_number() -> None:
    names = {(doc.section, doc.key) for doc in describe()}
    assert len(names) == len(describe())
    for doc in describe():
        assert doc.description.endswith("."), doc.name
        assert doc.env[0] == f"OUTSPOKEN_{doc.section.upper()}__{doc.key.upper()}"
        assert not doc.file_key or (doc.section, doc.file_key) in names
        if doc.default in {"", '""', "[]", "{}"} and not doc.secret:
            assert doc.example, f"{doc.name} has neither a default nor an example"
        for unit in ("seconds", "bytes", "tokens"):
            if doc.key.endswith(f"_{unit}"):
                assert unit in doc.description.lower(), doc.name


def test_the_template_changes_nothing_as_it_is(tmp_path: Path) -> None:
    assert load(written(tmp_path, template()), {}).config == schema()()


def test_the_template_tells_the_true_defaults(tmp_path: Path) -> None:
    text = re.sub(r"for example:\n#.*\n", "\n", template())
    text = re.sub(r"^#(?=[a-z_]+ = )", "", text, flags=re.MULTILINE)
    values = tomllib.loads(text)
    assert sum(len(section) for section in values.values()) > 40
    assert load(written(tmp_path, text), {}).config == schema()()


BESIDE = {
    "[telegram] webhook_url": 'webhook_secret_file = "telegram-webhook.secret"\n',
    "[slack] bot_token_file": 'app_token_file = "slack-app.token"\n',
}
"""What a key cannot do without."""


def test_every_example_of_the_template_is_accepted_alone(tmp_path: Path) -> None:
    for name in (
        "openai.key",
        "search.key",
        "speech.key",
        "second.key",
        "server.key",
        "operator.key",
        "prompt.md",
        "telegram-webhook.secret",
        "slack-signing.secret",
    ):
        (tmp_path / name).write_text("some-words-0123")
    (tmp_path / "hook.secret").write_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    (tmp_path / "telegram.token").write_text("123:abc")
    (tmp_path / "slack-app.token").write_text("xapp-1")
    (tmp_path / "slack.token").write_text("xoxb-1")
    (tmp_path / "discord.token").write_text("a.b.c")
    (tmp_path / "database.url").write_text("sqlite:///x")
    for doc in describe():
        if doc.example:
            needed = BESIDE.get(doc.name, "")
            # They are for its chats
            env = {"TELEGRAM_BOT_TOKEN": "1:a"} if doc.section in ("schedule", "hooks") else {}
            load(written(tmp_path, f"[{doc.section}]\n{doc.key} = {doc.example}\n{needed}"), env)


ADDED = """
    nap_seconds: int = Field(default=7, ge=1, le=60)
    \"""Seconds that a conversation may nap
    in the afternoon.\"""
"""
ASKED = """
import json
from gateway.config.keys import template
from gateway.config.reading import ConfigError, load, redacted
from tests.printed.configuration import markdown

def told(**env):
    try:
        load(None, {f"OUTSPOKEN_SESSION__{key}": value for key, value in env.items()})
    except ConfigError as error:
        return str(error.problems[0])

loaded = load(None, {"OUTSPOKEN_SESSION__NAP_SECONDS": "30"})
shown = redacted(loaded.config)["session"]["nap_seconds"]
print(json.dumps([markdown(), template(), told(NAP_SECONDS="99"), told(NAP_SECOND="9"), loaded.config.session.nap_seconds, shown]))
"""


def test_a_new_key_is_two_lines_in_one_file(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "gateway", tmp_path / "gateway")
    file = tmp_path / "gateway" / "config" / "sections.py"
    section = 'class SessionsSection(Section):\n    """Conversations."""\n'
    text = file.read_text("utf-8")
    assert section in text
    file.write_text(text.replace(section, section + ADDED), "utf-8")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    printed = subprocess.run(
        [sys.executable, "-c", ASKED], cwd=tmp_path, env=env, check=True, capture_output=True, timeout=60
    )
    page, commented, wrong, misspelt, value, shown = json.loads(printed.stdout)
    words = "Seconds that a conversation may nap in the afternoon."
    assert (
        f"| `nap_seconds` | whole number, 1 to 60 | seconds | `7` | {words} | `OUTSPOKEN_SESSION__NAP_SECONDS` |"
        in page
    )
    assert (
        f"# {words}\n# Whole number, 1 to 60. Environment: OUTSPOKEN_SESSION__NAP_SECONDS\n#nap_seconds = 7\n"
        in commented
    )
    assert f"[session] nap_seconds must be a whole number, 1 to 60. {words} The default is 7." in wrong
    assert misspelt.endswith("Did you mean OUTSPOKEN_SESSION__NAP_SECONDS?")
    assert (value, shown) == (30, 30)


def test_words_stand_below_a_key_or_in_its_field_and_are_those_of_the_class_that_has_them() -> None:
    class Sample(ChatSection):
        """A section."""

        first: int = 1
        """Words below,
        on two lines."""
        second: int = Field(default=2, description="Words beside.")
        third: int = 3

    docs = {key: KeyDoc("sample", key, Sample) for key in Sample.model_fields}
    assert docs["first"].description == "Words below, on two lines."
    assert docs["second"].description == "Words beside."
    assert docs["third"].description == ""
    assert docs["allow"].description.startswith("Who may talk to the bot")


# --- readers ---


def test_lines_are_found_in_spite_of_multi_line_strings_and_dotted_keys(tmp_path: Path) -> None:
    text = '''# x
[model]
system_prompt = """
name = "not this"
[server]
"""
name = "x"
extra_body.top_p = 1
"temperature" = 1
[[model.fallbacks]]
name = "a"
[[model.fallbacks]]
name = "b"
[model.fallbacks.extra_body]
top_k = 1
[server]
host = \'\'\'x\'\'\'
port = 1
'''
    tomllib.loads(text)
    lines = toml_lines(text)
    assert {
        ("model", "name"): 7,
        ("model", "extra_body"): 8,
        ("model", "extra_body", "top_p"): 8,
        ("model", "temperature"): 9,
        ("model", "fallbacks", 1, "name"): 13,
        ("model", "fallbacks", 1, "extra_body", "top_k"): 15,
        ("server", "port"): 18,
    }.items() <= lines.items()
    path = written(tmp_path, text)
    file = TomlFile(path)
    assert file.at("model", "fallbacks", 0, "temperature") == f"{path}:10"
    assert file.at("nothing") == str(path)


def test_a_dotenv_file_is_read_with_its_quotes_comments_and_exports(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(
        '# c\n\nA=1\nexport B = two words # c\nC="x # \\"y\\"\\n" # c\nD=\'$HOME\\n\'\nE=a#b\nF=\nnonsense\nG="open\n'
    )
    variables, told = read_dotenv(path)
    assert variables.values == {"A": "1", "B": "two words", "C": 'x # "y"\n', "D": "$HOME\\n", "E": "a#b", "F": ""}
    assert [problem.where for problem in told] == [f"{path}:9", f"{path}:10"]
    assert variables.where("B") == f"B ({path}:4)"
    assert "two words" not in repr(variables)


@pytest.mark.parametrize(
    ("content", "words"), [("", "is empty"), (" \n", "is empty"), ("x" * 1_000_001, "is larger than")]
)
def test_a_file_that_cannot_hold_one_value_is_told(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "a.key"
    path.write_text(content)
    with pytest.raises(UnreadableSource, match=words):
        read_value_file(path)


def test_a_name_that_no_file_can_have_is_told() -> None:
    with pytest.raises(UnreadableSource, match="cannot be the name of a file"):
        read_value_file(Path("a\0b"))
