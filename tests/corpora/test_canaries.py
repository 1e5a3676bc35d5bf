"""Every secret of a full configuration is a canary. Everything is made to fail, by servers that say back all that they were sent, and no output has one:
as it is, percent-encoded, in base64 at any alignment, JSON-escaped, or broken over lines.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tarfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from tests.forked import run, start
from tests.ports import free_port

DATABASE, PROXY, TRACES = "canary-database-Rt1Yu7Io", "canary-proxy-Pa3Sd9Fg", "canary-traces-Hj5Kl1Zx7Cv"
SECRETS = {
    "api key": "canary/api+Wq7Zt2Lm9Xc4Vb8N",
    "operators' key": "canary=operators&Rt5Yu1Io3Pa7Sd",
    "telegram's token": "7000000001:AAcanaryTelegramFg6Hj2Kl8Zx4Cv",
    "telegram's word": "canary-telegram-word_Bn3Mq9We",
    "discord's token": "NzAwMDAwMDAwMTAwMDAwMDAx.Canary.DiscordEr5Ty1Ui7Op3As9Df2Gh",
    "slack's token": "xoxb-1000000000001-2000000000002-CanaryJk4Lz8Xc",
    "slack's word": "canary-slack-signing-Vb6Nm2Qw",
    "model's key": "canary=model+key/Er4Ty8Ui2Op=",
    "second key": "canary~second#key%Hj7Kl1Zx",
    "header": "canary-header-Cv9Bn5Mq3We",
    "webhook's secret": "whsec_" + base64.b64encode(b"canary of the receiver Fg6Hj2Kl8Zx4Cv").decode(),
    "hook's secret": "whsec_" + base64.b64encode(b"canary of the caller Er4Ty8Ui2Op7Lm3").decode(),
    "database's password": DATABASE,
    "proxy's password": PROXY,
    "traces' header": TRACES,
}


def written(secret: str) -> set[str]:
    """The ways in which a secret may be written."""
    found = {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        quote(secret),
        json.dumps(secret)[1:-1],
        secret.replace("/", "\\/"),
    }
    for before in ("", "a", "ab"):
        whole = base64.b64encode((before + secret).encode()).decode().rstrip("=")
        middle = whole[4 if before else 0 : -2]
        found |= {middle, middle.replace("+", "-").replace("/", "_")}
    return {form for form in found if len(form) >= 6}


FORMS = {name: written(secret) for name, secret in SECRETS.items()}


def clean(where: str, output: str) -> None:
    """No canary is in it."""
    together = re.sub(r"(\\n|\\r|\s)+", "", output)
    for name, forms in FORMS.items():
        for form in forms:
            assert form not in output, f"{where}: {name}"
            bare = re.sub(r"\s+", "", form)
            assert bare not in together, f"{where}: {name}, broken over lines"


class Parrot(BaseHTTPRequestHandler):
    """Says back everything that it was sent, in words that every platform and every model would use for an error."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode("utf-8", "replace")[:2_000]
        sent = f"{self.path} {' '.join(f'{k}: {v}' for k, v in self.headers.items())} {body}"
        said = " ".join([sent, quote(sent), base64.b64encode(sent.encode()).decode(), json.dumps(sent)])
        error = {"message": said, "code": said[:300], "type": said[:300], "param": said[:300]}
        answer = {
            "ok": False,
            "error": error if "/v1/" in self.path else said,
            "error_code": 400,
            "description": said,
            "message": said,
            "code": 0,
            "errors": {"x": said},
        }
        raw = json.dumps(answer).encode()
        status = 401 if "chat/completions" in self.path else 400
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Said", base64.b64encode(sent.encode()).decode()[:500])
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the library's names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing."""


@pytest.fixture
def parrot() -> Generator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Parrot)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def everything(folder: Path, parrot: str, form: str) -> dict[str, str]:
    return {
        "OUTSPOKEN_HOME": str(folder), "PATH": "/usr/bin:/bin", "TERM": "dumb", "OUTSPOKEN_SERVER__PORT": str(free_port()), "OUTSPOKEN_LOG__FORMAT": form,
        "OUTSPOKEN_LOG__LEVEL": "debug", "OUTSPOKEN_SERVER__API_KEY": SECRETS["api key"], "OUTSPOKEN_SERVER__OPERATOR_KEY": SECRETS["operators' key"],
        "TELEGRAM_BOT_TOKEN": SECRETS["telegram's token"], "OUTSPOKEN_TELEGRAM__API_BASE": parrot, "OUTSPOKEN_TELEGRAM__WEBHOOK_URL": "https://chat.example",
        "OUTSPOKEN_TELEGRAM__WEBHOOK_SECRET": SECRETS["telegram's word"], "DISCORD_BOT_TOKEN": SECRETS["discord's token"],
        "OUTSPOKEN_DISCORD__API_BASE": f"{parrot}/api/v10", "SLACK_BOT_TOKEN": SECRETS["slack's token"], "OUTSPOKEN_SLACK__API_BASE": f"{parrot}/api/",
        "OUTSPOKEN_SLACK__SIGNING_SECRET": SECRETS["slack's word"], "OUTSPOKEN_MODEL__BASE_URL": f"{parrot}/v1",
        "OUTSPOKEN_MODEL__API_KEYS": json.dumps([SECRETS["model's key"], SECRETS["second key"]]), "OUTSPOKEN_MODEL__NAME": "m",
        "OUTSPOKEN_MODEL__EXTRA_HEADERS": json.dumps({"X-Api-Key": SECRETS["header"]}), "OUTSPOKEN_MODEL__RETRY_MIN_SECONDS": "0.05",
        "OUTSPOKEN_WEBHOOKS__RECEIVERS": json.dumps([{"name": "deploy", "url": parrot, "private": True, "words": True, "secrets": [SECRETS["webhook's secret"]]}]),
        "OUTSPOKEN_HOOKS__ENTRIES": json.dumps([{"name": "builds", "prompt": "p", "session": "builds", "secrets": [SECRETS["hook's secret"]]}]),
        "OUTSPOKEN_MODEL__RETRY_MAX_SECONDS": "0.2", "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer {TRACES}".replace(" ", "%20"),
    }  # fmt: skip


@contextmanager
def daemon(env: Mapping[str, str], log: Path) -> Generator[str]:
    process = start(["run"], env, out=log, err=log)
    url = f"http://127.0.0.1:{env['OUTSPOKEN_SERVER__PORT']}"
    try:
        until = time.monotonic() + 30
        while called(f"{url}/healthz")[0] != 200:
            assert process.returncode is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.05)
        yield url
    finally:
        process.kill()


def called(url: str, key: str = "", body: object = None) -> tuple[int, str]:
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    data = json.dumps(body).encode() if body is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=40) as answer:
            said = answer.read1(200_000) if url.endswith("/live") else answer.read()  # a stream goes on
            return answer.status, f"{answer.headers}{said.decode('utf-8', 'replace')}"
    except urllib.error.HTTPError as error:
        return error.code, f"{error.headers}{error.read().decode('utf-8', 'replace')}"
    except OSError:
        return 0, ""


def test_a_canary_is_found_however_it_is_written():
    for name, secret in SECRETS.items():
        for text in (
            f"x{secret}y",
            f"x {quote(secret)} y",
            base64.b64encode(f"Bearer {secret}".encode()).decode(),
            f"{secret[:7]}\n    {secret[7:]}",
        ):
            with pytest.raises(AssertionError, match=re.escape(name)):
                clean("here", text)


@pytest.mark.parametrize("form", ["json", "pretty"])
def test_no_output_of_a_gateway_in_which_everything_fails_has_a_secret(
    tmp_path: Path, parrot: str, form: str, monkeypatch: pytest.MonkeyPatch
):
    env = everything(tmp_path, parrot, form)
    log = tmp_path / "log"
    talk, operate = SECRETS["api key"], SECRETS["operators' key"]
    with daemon(env, log) as url:
        made = str(json.loads(run(["keys", "add", "laptop", "--json"], env).stdout)["key"])
        monkeypatch.setitem(FORMS, "a key that was made", written(made))
        asked = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
        clean("an answer to a key that was made", called(f"{url}/v1/chat/completions", made, asked)[1])
        clean("a key where none belongs", called(f"{url}/v1/models/{made}", talk)[1].replace(made, ""))
        clean("a hook that is called wrongly", called(f"{url}/hooks/builds", made, {"x": 1})[1])
        status, answer = called(f"{url}/v1/chat/completions", talk, asked)
        assert "outspoken" in answer, (status, answer)
        clean("an answer", answer)
        clean("a stream", called(f"{url}/v1/chat/completions", talk, {**asked, "stream": True})[1])
        turn = re.findall(r'"(t_[0-9a-z]{12,})"', answer)[0]
        for path in ("/api/about", "/v1/models", f"/api/turns/{turn}/why", "/v1/nothing"):
            clean(path, called(url + path, talk)[1])
        for path in (
            "/status",
            "/metrics",
            "/wellz",
            "/console/api/live",
            f"/console/api/turns/{turn}/live",
            f"/console/api/explain/{turn}",
            "/api/access",
            "/api/send/1",
            "/api/keys",
            "/api/webhooks",
        ):
            status, answer = called(url + path, operate)
            assert status != 401, path
            clean(path, answer)
        for path in ("/", "/healthz", "/readyz", "/console", "/status", "/static/page.js"):
            clean(path, called(url + path, "wrong")[1])
        clean("a refusal", called(f"{url}/api/send", operate, {"to": "telegram/1", "text": "x"})[1])
        for words in (
            ["status"], ["status", "--json"], ["explain", turn], ["explain", turn, "--json", "--show-text"], ["replay", turn], ["replay", turn, "--show-text", "--json"],
            ["triage"], ["triage", "--json"], ["triage", str(log)], ["config", "show"], ["config", "check"], ["doctor"], ["doctor", "--json"], ["access", "list"],
            ["keys", "list"], ["keys", "show", "laptop", "--json"], ["webhooks", "list"], ["webhooks", "list", "--json"], ["webhooks", "test", "deploy"],
            ["health"], ["send", "--to", "telegram/1", "x"], ["ask", "hello"], ["bundle", turn, "--output", str(tmp_path / "b.tar.gz")], ["--help"], [],
        ):  # fmt: skip
            got = run(words, env)
            clean(" ".join(words), got.stdout + got.stderr)
            assert "Traceback" not in got.stderr, words
            assert words[:1] != ["bundle"] or got.returncode == 0, got
        time.sleep(1)
    clean("the log", log.read_text())
    assert "adapter.down" in log.read_text(), "the platforms have failed"
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        for member in archive.getmembers():
            found = archive.extractfile(member)
            clean(member.name, io.TextIOWrapper(found, "utf-8", "replace").read() if found else "")


STARTS: list[tuple[str, dict[str, str]]] = [
    ("a database that is away", {"OUTSPOKEN_STORAGE__URL": f"postgresql://me:{DATABASE}@127.0.0.1:9/x"}),
    ("a database of no kind", {"OUTSPOKEN_STORAGE__URL": f"oracle://me:{DATABASE}@127.0.0.1:9/x"}),
    ("a database without a port", {"OUTSPOKEN_STORAGE__URL": f"postgresql://me:{DATABASE}@127.0.0.1:port/x"}),
    ("a proxy of no kind", {"OUTSPOKEN_TELEGRAM__PROXY": f"gopher://me:{PROXY}@127.0.0.1:9"}),
    ("a port that is none", {"OUTSPOKEN_SERVER__PORT": SECRETS["api key"]}),
    ("a key in the place of an address", {"OUTSPOKEN_MODEL__BASE_URL": SECRETS["api key"]}),
    ("keys that are no list", {"OUTSPOKEN_MODEL__API_KEYS": f"[{SECRETS['second key']}"}),
    ("headers that are none", {"OUTSPOKEN_MODEL__EXTRA_HEADERS": f"{{\"X-Api-Key\": \"{SECRETS['header']}"}),
    ("a key with a line's end", {"OUTSPOKEN_SERVER__API_KEY": SECRETS["api key"] + "\nx"}),
    ("a token that is none", {"TELEGRAM_BOT_TOKEN": SECRETS["slack's token"]}),
    ("a key that is not known", {"OUTSPOKEN_SERVER__API_KEEY": SECRETS["api key"]}),
    ("an address that anybody may call", {"OUTSPOKEN_SERVER__HOST": "0.0.0.0", "OUTSPOKEN_SERVER__API_KEY": ""}),
    ("no room for a state", {"OUTSPOKEN_HOME": "/proc/nothing"}),
]  # fmt: skip


@pytest.mark.parametrize(("said", "wrong"), STARTS, ids=[name for name, _ in STARTS])
def test_a_start_that_fails_says_no_secret(tmp_path: Path, parrot: str, said: str, wrong: dict[str, str]):
    env = {**everything(tmp_path, parrot, "pretty"), **wrong}
    for words in (["config", "check"], ["config", "show"], ["doctor"], ["status"]):
        got = run(words, env)
        clean(f"{said}, {words}", got.stdout + got.stderr)
        assert "Traceback" not in got.stderr, (said, words, got.stderr)
