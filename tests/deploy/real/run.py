"""``python -m tests.deploy.real.run``: everything under deploy/ started for real, as far as this machine permits; the rest says why not.

Needs root, and Debian's podman, runc, debootstrap, systemd-container and prometheus. Nothing is left running.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from tests.chats.harness import environment
from tests.chats.telegram_harness import telegram_harness
from tests.deploy.real.engines import ROOT, NotHere, Nspawn, Place, Podman, call
from tests.deploy.real.story import story
from tests.deploy.rules import tool
from tests.ports import free_port

KEYS = {"OUTSPOKEN_SERVER__API_KEY": "a" * 24, "OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 24}
Note = Callable[[str], None]


async def _told(make: Callable[[Mapping[str, str], Mapping[str, str]], Place], note: Note) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with telegram_harness(Path(folder)) as telegram:
            env = {
                **environment(telegram),
                "OUTSPOKEN_SERVER__PORT": str(free_port()),
                "OUTSPOKEN_SERVER__DRAIN_SECONDS": "8",
            }
            secrets = {**KEYS, "OPENAI_API_KEY": env.pop("OPENAI_API_KEY")}
            place = await asyncio.to_thread(make, env, secrets)
            try:
                await story(place, telegram, note)
            except BaseException:
                print(await asyncio.to_thread(place.log), file=sys.stderr)
                raise
            finally:
                await asyncio.to_thread(place.remove)


def podman(note: Note) -> None:
    asyncio.run(_told(Podman, note))


def systemd(note: Note) -> None:
    asyncio.run(_told(Nspawn, note))


def prometheus(note: Note) -> None:
    """The configuration and the rules as they are shipped, with another port and place for the key."""
    program, check = tool("prometheus"), tool("promtool")
    if not program or not check:
        raise NotHere("there is no Prometheus (Debian: apt install prometheus)")
    with tempfile.TemporaryDirectory() as name:
        folder, port, own = Path(name), free_port(), free_port()
        (folder / "outspoken-alert-rules.yaml").write_bytes((ROOT / "deploy" / "alert-rules.yaml").read_bytes())
        (folder / "outspoken-operator.key").write_text(KEYS["OUTSPOKEN_SERVER__OPERATOR_KEY"] + "\n")
        text = (ROOT / "deploy" / "prometheus.yml").read_text()
        (folder / "prometheus.yml").write_text(text.replace("8787", str(port)).replace("30s", "1s"))
        call(check, "check", "config", str(folder / "prometheus.yml"))
        env = {
            **KEYS,
            "OUTSPOKEN_HOME": str(folder / "home"),
            "OUTSPOKEN_SERVER__PORT": str(port),
            "PATH": "/usr/bin:/bin",
        }
        gateway = subprocess.Popen(
            [sys.executable, "-m", "gateway", "run"],
            env=env,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        asker = subprocess.Popen(
            [program, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            _until(lambda: bool(_asked(own, 'up{job="outspoken"} == 1')))
            _until(lambda: bool(_asked(own, "outspoken_ready == 1")))
            note("Prometheus asks with the operators' key, and the gateway is up and ready")
            missing = [expression for expression in _dashboard() if _asked(own, expression) is None]
            assert not missing, missing
            note("every query of the dashboard is answered")
            gateway.kill()
            gateway.wait(20)
            _until(lambda: bool(_asked(own, 'ALERTS{alertname="OutspokenGone"}')))
            note("a gateway that is killed makes OutspokenGone pending")
        finally:
            for process in (asker, gateway):
                process.terminate()
                process.wait(30)


def _dashboard() -> list[str]:
    panels = json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())["panels"]
    return [
        target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
        for panel in panels
        for target in panel.get("targets", ())
    ]


def _asked(port: int, expression: str) -> list[object] | None:
    """The result of a query; None if Prometheus does not take it."""
    try:
        data = urllib.parse.urlencode({"query": expression}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query", data, timeout=5) as response:
            return json.load(response)["data"]["result"]
    except urllib.error.HTTPError:
        return None
    except OSError:
        return []


def _until(condition: Callable[[], bool], seconds: float = 90) -> None:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "not in time"
        time.sleep(0.3)


def compose(note: Note) -> None:
    """Both files, as an engine reads them. They are not started: their network is not to be had in every container."""
    env = {
        "OUTSPOKEN_SERVER__API_KEY": "k" * 20,
        "OUTSPOKEN_SERVER__OPERATOR_KEY": "o" * 20,
        "POSTGRES_PASSWORD": "p4ssword",
    }
    files = ("-f", "deploy/compose.yaml", "-f", "deploy/compose-postgres.yaml")
    with tempfile.TemporaryDirectory() as folder:
        program = _from_pypi("podman-compose", folder)
        said = call(program, *files, "config", env=env)
        both = call(program, "-f", "deploy/compose-several.yaml", "config", env=env)
    assert set(yaml.safe_load(both[both.index("name: outspoken") :])["services"]) == {
        "first",
        "second",
        "balancer",
        "database",
    }
    services = yaml.safe_load(said[said.index("name: outspoken") :])["services"]
    assert set(services) == {"gateway", "database"}
    assert services["gateway"]["stop_grace_period"] == "60s"
    assert services["gateway"]["healthcheck"]["test"] == ["CMD", "outspoken", "health", "alive"]
    note("podman-compose reads the files, one over the other, and the one for several gateways")


def kubernetes(note: Note) -> None:
    """By the schemas of Kubernetes itself."""
    with tempfile.TemporaryDirectory() as folder:
        validate = _from_pypi("kubernetes-validate", folder)
        for name in (
            "kubernetes/outspoken.yaml",
            "kubernetes/secret.example.yaml",
            "kubernetes-several/outspoken.yaml",
        ):
            call(validate, "--strict", f"deploy/{name}")
    note(
        "every manifest of Kubernetes' own kinds is valid, strictly (the ServiceMonitor is an operator's, and judged by tests/deploy)"
    )


def _from_pypi(program: str, folder: str) -> str:
    """A program in a virtual environment of its own, which is gone afterwards."""
    try:
        call(sys.executable, "-m", "venv", folder)
        call(str(Path(folder) / "bin" / "python"), "-m", "pip", "install", "--quiet", program, seconds=600)
    except AssertionError as error:
        raise NotHere(f"{program} cannot be had from PyPI: {str(error)[-200:]}") from error
    return str(Path(folder) / "bin" / program)


PARTS: Mapping[str, Callable[[Note], None]] = {
    "podman": podman,
    "systemd": systemd,
    "prometheus": prometheus,
    "compose": compose,
    "kubernetes": kubernetes,
}


def main() -> None:
    """Entry point; 1 if something does not work. What cannot be tried is said, and is no failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []])
    chosen = parser.parse_args().part or list(PARTS)
    failed = False
    for name in chosen:
        began = time.monotonic()
        try:
            PARTS[name](lambda words, name=name: print(f"  {name}: {words}", flush=True))
        except NotHere as why:
            print(f"  {name}: skipped: {why}", flush=True)
        except AssertionError as error:
            failed = True
            print(f"  {name}: FAILED: {error}", flush=True)
        else:
            print(f"  {name}: well, {time.monotonic() - began:.0f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
