"""Simon Willison's `llm`, the command, with a model of its configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import KEY, MODEL, URL, run, seen, weather

home = Path(tempfile.mkdtemp())
(home / "extra-openai-models.yaml").write_text(
    f"- model_id: ours\n  model_name: {MODEL}\n  api_base: {URL}\n  supports_schema: true\n  supports_tools: true\n"
)
os.environ["LLM_USER_PATH"] = str(home)

import llm as library  # noqa: E402 - it reads its models when it is imported

ours = library.get_model("ours")


def llm(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("llm")), *words]
    done = subprocess.run(
        command,
        env=os.environ | {"LLM_USER_PATH": str(home)},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout.strip() or done.stderr.strip()


def _way(*, stream: bool = False, **more: object) -> object:
    """What the command does, without a process for each."""

    def ask(words: str) -> dict:
        made = ours.prompt(words, stream=stream, **more)
        if "schema" in more:
            return seen(None, None, json.loads(made.text()))
        chain = "".join(made) if stream else made.text()
        return seen(chain)

    return ask


def _tools(words: str) -> dict:
    return seen(ours.chain(words, tools=[weather], key=KEY).text())


WAYS = {
    "chat": _way(),
    "chat stream": _way(stream=True),
    "chat tools": _tools,
    "chat data": _way(schema=library.schema_dsl("name, age int")),
}


run(
    WAYS,
    plain=lambda: llm("-m", "ours", "--no-stream", "say hello"),
    streamed=lambda: llm("-m", "ours", "say hello"),
    structured=lambda: llm("-m", "ours", "--schema", "name, age int", "who?"),
    goes_on=lambda: llm("-m", "ours", "-c", "say hello"),
    wrong_key=lambda: llm("-m", "ours", "fail 401"),
)
