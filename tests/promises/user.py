"""What somebody does with a gateway who knows nothing of it but its documentation: it is asked over HTTP, and by its command."""

from __future__ import annotations

import json
import os
import re
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests import elsewhere
from tests.forked import Forked, run, start
from tests.ports import free_port

PATIENT_SECONDS = 40.0
"""A gateway on a busy machine is slow; nothing here measures it."""


@dataclass
class User:
    """Somebody with a browser, an HTTP client and a shell."""

    home: Path
    port: int
    process: Forked | None = None

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENT_SECONDS)

    @property
    def env(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OUTSPOKEN_", "OPENAI_"))}
        port = {"OUTSPOKEN_HOME": str(self.home), "OUTSPOKEN_SERVER__PORT": str(self.port), "NO_COLOR": "1"}
        return {**kept, **port, **elsewhere.settings()}

    def command(self, *words: str, stdin: str = "") -> tuple[int, str, str]:
        """What ``outspoken`` says: status, output, errors."""
        ran = run(list(words), self.env, stdin=stdin)
        return ran.returncode, ran.stdout.strip(), ran.stderr.strip()

    def start(self) -> None:
        log = self.home / "run.log"
        self.process = start(["run", "--config", str(self.home / "outspoken.toml")], self.env, out=log, err=log)
        until(lambda: self._ready(log), "the gateway is not ready")

    def _ready(self, log: Path) -> bool:
        assert self.process is not None
        assert self.process.returncode is None, log.read_text()
        try:
            return self.http.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """As a power cut would."""
        assert self.process is not None
        self.process.kill()

    def key(self, name: str, *terms: str) -> str:
        """A key, as it is printed the one time."""
        status, said, errors = self.command("keys", "add", name, *terms)
        assert status == 0, errors
        return secret_of(said)

    def completion(
        self, words: str, key: str = "", *, session: str = "", headers: Mapping[str, str] | None = None, **more: Any
    ) -> httpx.Response:
        """A chat completion."""
        heads = {**bearer(key), **({"X-Outspoken-Session": session} if session else {}), **(headers or {})}
        body = {"model": "outspoken", "messages": [{"role": "user", "content": words}], **more}
        return self.http.post("/v1/chat/completions", headers=heads, json=body)

    def response(self, words: str, key: str = "", **more: Any) -> httpx.Response:
        return self.http.post("/v1/responses", headers=bearer(key), json={"model": "outspoken", "input": words, **more})


@dataclass
class Browser:
    """The page in one browser."""

    user: User
    name: str
    key: str = ""

    @property
    def heads(self) -> dict[str, str]:
        return {"X-Outspoken-Browser": self.name, **bearer(self.key)}

    def get(self, path: str, **query: str) -> httpx.Response:
        return self.user.http.get(path, headers=self.heads, params=query)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self.user.http.post(path, headers=self.heads, json=body)

    def delete(self, path: str) -> httpx.Response:
        return self.user.http.delete(path, headers=self.heads)

    def send(self, session: str, words: str, message: str = "") -> httpx.Response:
        return self.post(f"/api/sessions/{session}/messages", id=message or uuid.uuid4().hex, text=words)

    def says(self, session: str, words: str) -> list[dict[str, Any]]:
        """The conversation when what was said is answered."""
        sent = self.send(session, words)
        assert sent.status_code == 202, sent.text
        return self.until_answered(session, words)

    def until_answered(self, session: str, words: str) -> list[dict[str, Any]]:
        until(lambda: self._answered(session, words), f"{words!r} is not answered")
        return self.sees(session)

    def _answered(self, session: str, words: str) -> bool:
        seen = self.sees(session)
        return any(one["person"] == words for one in seen) and all(one["state"] == "closed" for one in seen)

    def sees(self, session: str) -> list[dict[str, Any]]:
        with self.user.http.stream("GET", f"/api/sessions/{session}/events", headers=self.heads) as stream:
            assert stream.status_code == 200
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    return json.loads(line.removeprefix("data:"))
        raise AssertionError("the stream ended without a snapshot")

    def listed(self, session: str, **query: str) -> dict[str, Any] | None:
        """The conversation as the list has it."""
        found = self.get("/api/conversations", **query).json()["conversations"]
        return next((one for one in found if one["id"] == session), None)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def secret_of(said: str) -> str:
    (found,) = re.findall(r"sk-outspoken-\S{40,}", said)
    return found


def text(answer: httpx.Response) -> str:
    """What a chat completion says."""
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


def code(answer: httpx.Response) -> tuple[int, str]:
    """How a request was refused: its status, and the code in the error."""
    return answer.status_code, answer.json()["error"]["code"]


def until(condition: Callable[[], bool], words: str) -> None:
    deadline = time.monotonic() + PATIENT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


@contextmanager
def running(home: Path, settings: str) -> Generator[User]:
    """A user of a gateway that runs with these settings."""
    (home / "outspoken.toml").write_text(settings)
    user = User(home, free_port())
    user.start()
    try:
        yield user
    finally:
        user.kill()
        user.http.close()
