"""Simon Willison's `llm`, the command, with a model of its configuration."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from cases import MODEL, URL, run

home = Path(tempfile.mkdtemp())
(home / "extra-openai-models.yaml").write_text(
    f"- model_id: ours\n  model_name: {MODEL}\n  api_base: {URL}\n  supports_schema: true\n"
)


def llm(*words: str) -> str:
    command = [str(Path(sys.executable).with_name("llm")), *words]
    done = subprocess.run(
        command, env=os.environ | {"LLM_USER_PATH": str(home)}, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or done.stderr.strip()


run(
    plain=lambda: llm("-m", "ours", "--no-stream", "say hello"),
    streamed=lambda: llm("-m", "ours", "say hello"),
    structured=lambda: llm("-m", "ours", "--schema", "name, age int", "who?"),
    goes_on=lambda: llm("-m", "ours", "-c", "say hello"),
    wrong_key=lambda: llm("-m", "ours", "fail 401"),
)
