"""Where a gateway can be put for real: a container engine, a system manager. Each says why it is not to be had here, if so."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "deploy"
BASE = CACHE / "base"
IMAGE = "localhost/outspoken-tested"
PYTHON = "localhost/outspoken-tested-python"
PACKAGES = "python3,python3-venv,python-is-python3,ca-certificates,openssl,systemd,systemd-sysv,dbus"
CERTIFICATES = Path("/etc/ssl/certs")


class NotHere(Exception):
    """It cannot be tried on this machine; the words say why."""


def call(*words: str, seconds: float = 120, check: bool = True, env: Mapping[str, str] | None = None) -> str:
    """Run a command; what it says. Raises AssertionError with that if it fails and should not."""
    found = subprocess.run(
        words, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT, env={**os.environ, **(env or {})}
    )
    said = f"{found.stdout}{found.stderr}".strip()
    assert not check or found.returncode == 0, f"{' '.join(words)}: {found.returncode}\n{said[-3000:]}"
    return said


def status_of(*words: str, seconds: float = 60) -> int:
    return subprocess.run(words, capture_output=True, timeout=seconds, check=False, cwd=ROOT).returncode


def need(*programs: str) -> None:
    """Raises `NotHere` unless these are installed, and we are root: none of it works without, where namespaces are not for everybody."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise NotHere(
            f"there is no {' and no '.join(missing)} (Debian: apt install podman runc debootstrap systemd-container)"
        )
    if os.getuid() != 0:
        raise NotHere("it needs root")


def base() -> Path:
    """A small Debian with Python, made once."""
    need("debootstrap")
    if not (BASE / "usr" / "bin" / "python3").exists():
        shutil.rmtree(BASE, ignore_errors=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        try:
            call("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "stable", str(BASE), seconds=1200)
        except AssertionError as error:
            raise NotHere(f"debootstrap could make no base: {str(error)[-300:]}") from error
    return BASE


class Place(Protocol):
    """Where the story is told (tests/deploy/real/story.py)."""

    name: str
    watched: bool
    """A process that hangs is started again by itself."""

    port: str

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def healthy(self) -> bool:
        """By whatever it has to find that out."""
        ...

    def zombies(self) -> int:
        """Processes that nobody has fetched the end of."""
        ...

    def pid(self) -> int:
        """Of the gateway, as this machine sees it."""
        ...

    def outspoken(self, *words: str) -> tuple[int, str]:
        """The command inside: status and words."""
        ...

    def log(self) -> str: ...

    def remove(self) -> None: ...


def running(*words: str) -> tuple[int, str]:
    found = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    return found.returncode, f"{found.stdout}{found.stderr}"


class Podman:
    """A container as docs/operating.md starts it, but for the network: the host's, where the fakes listen."""

    name = "podman"
    watched = False

    def __init__(self, env: Mapping[str, str], secrets: Mapping[str, str]) -> None:
        need("podman")
        self._env = env
        self.port = env["OUTSPOKEN_SERVER__PORT"]
        self._limits()
        code, said = running("podman", "info")
        if code:
            raise NotHere(f"podman does not work here: {said[-300:]}")
        tar = subprocess.Popen(["tar", "--directory", str(base()), "--create", "."], stdout=subprocess.PIPE)
        subprocess.run(["podman", "import", "--quiet", "-", PYTHON], stdin=tar.stdout, check=True, capture_output=True)
        tar.wait()
        code, said = running("podman", "run", "--rm", "--network", "host", PYTHON, "true")
        if code:
            raise NotHere(f"no container can be started here: {said[-300:]}")
        call(
            "podman", "build", "--format", "docker", "--network", "host", "--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro",
            "--build-arg", f"PYTHON={PYTHON}", "-f", "deploy/Containerfile", "-t", IMAGE, ".", seconds=1200,
        )  # fmt: skip
        for name, value in secrets.items():
            running("podman", "secret", "rm", name)
            subprocess.run(
                ["podman", "secret", "create", name, "-"], input=value, text=True, check=True, capture_output=True
            )
        self._secrets = [word for name in secrets for word in ("--secret", f"{name},type=env")]
        self.remove()

    def _limits(self) -> None:
        """Podman asks for more than a machine like this may allow, and for a runtime that knows its cgroups."""
        file = CACHE / "containers.conf"
        CACHE.mkdir(parents=True, exist_ok=True)
        runtime = "runc" if shutil.which("runc") and not Path("/sys/fs/cgroup/cgroup.controllers").exists() else ""
        file.write_text(
            '[containers]\ndefault_ulimits = ["nofile=16384:16384", "nproc=16384:16384"]\n[engine]\ncgroup_manager = "cgroupfs"\n'
            + (f'runtime = "{runtime}"\n' if runtime else "")
        )
        os.environ["CONTAINERS_CONF"] = str(file)

    def start(self) -> None:
        if running("podman", "container", "exists", "outspoken-tested")[0] == 0:
            call("podman", "start", "outspoken-tested")
            return
        given = [word for name, value in self._env.items() for word in ("--env", f"{name}={value}")]
        call(
            "podman", "run", "--detach", "--name", "outspoken-tested", "--stop-timeout", "60", "--read-only", "--tmpfs", "/tmp",
            "--cap-drop", "all", "--security-opt", "no-new-privileges", *self._secrets, "--volume",
            "outspoken-tested:/var/lib/outspoken", "--network", "host", *given, IMAGE,
        )  # fmt: skip

    def stop(self) -> None:
        call("podman", "stop", "outspoken-tested")
        status = call("podman", "inspect", "outspoken-tested", "--format", "{{.State.ExitCode}}").split()[-1]
        assert status == "0", f"it ended with {status}"

    def pid(self) -> int:
        return int(call("podman", "inspect", "outspoken-tested", "--format", "{{.State.Pid}}").split()[-1])

    def outspoken(self, *words: str) -> tuple[int, str]:
        return running("podman", "exec", "outspoken-tested", "outspoken", *words)

    def healthy(self) -> bool:
        """By the health check that the image has."""
        return running("podman", "healthcheck", "run", "outspoken-tested")[0] == 0

    def zombies(self) -> int:
        return call("podman", "exec", "outspoken-tested", "sh", "-c", "cat /proc/[0-9]*/stat").count(") Z ")

    def log(self) -> str:
        return running("podman", "logs", "outspoken-tested")[1]

    def remove(self) -> None:
        running("podman", "rm", "--force", "--time", "1", "--volumes", "outspoken-tested")
        running("podman", "volume", "rm", "--force", "outspoken-tested")


class Nspawn:
    """The unit as it is shipped, in a Debian that systemd boots in a container of its own."""

    name = "systemd"
    watched = True

    def __init__(self, env: Mapping[str, str], credentials: Mapping[str, str]) -> None:
        need("systemd-nspawn", "nsenter")
        self.port = env["OUTSPOKEN_SERVER__PORT"]
        self._key = credentials["OUTSPOKEN_SERVER__OPERATOR_KEY"]
        self._root = CACHE / "booted"
        shutil.rmtree(self._root, ignore_errors=True)
        call("cp", "--archive", str(base()), str(self._root))
        self._install()
        etc = self._root / "etc" / "outspoken"
        etc.mkdir(exist_ok=True)
        (etc / ".env").write_text("".join(f"{name}={value}\n" for name, value in env.items()))
        lines = ["[Service]"]
        for name, value in credentials.items():
            key = etc / f"{name.lower()}.key"
            key.write_text(value)
            key.chmod(0o600)
            lines.append(f"LoadCredential={name}:/etc/outspoken/{key.name}")
        dropin = self._root / "etc/systemd/system/outspoken.service.d"
        dropin.mkdir(parents=True)
        (dropin / "override.conf").write_text("\n".join([*lines, ""]))
        self._machine = subprocess.Popen(
            ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={self._root}", "--boot", "--console=pipe"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            self._boot()
        except AssertionError as error:
            self.remove()
            raise NotHere(f"systemd does not boot here: {error}") from error

    def _install(self) -> None:
        """As docs/operating.md says, with this tree for the package."""
        there = self._root / "src"
        there.mkdir()
        for name in ("agent_core", "adapters", "gateway", "migrations", "deploy", "pyproject.toml", "requirements.lock", "README.md", "LICENSE", "NOTICE"):  # fmt: skip
            call("cp", "--archive", str(ROOT / name), str(there))
        script = (
            "set -e; python3 -m venv /opt/outspoken; /opt/outspoken/bin/pip install -q --require-hashes --only-binary :all: -r /src/requirements.lock; "
            "cd /src; /opt/outspoken/bin/pip install -q --no-deps --no-build-isolation /src; "
            "cp deploy/systemd/outspoken.service /etc/systemd/system/; cp deploy/systemd/outspoken.sysusers.conf /usr/lib/sysusers.d/outspoken.conf; "
            "systemd-sysusers; mkdir -p /etc/outspoken; /opt/outspoken/bin/outspoken config template > /etc/outspoken/outspoken.toml"
        )
        call(
            "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={self._root}", f"--bind-ro={CERTIFICATES}",
            "/bin/sh", "-c", script, seconds=900,
        )  # fmt: skip
        call(
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
            f"--directory={self._root}",
            "chown",
            "outspoken",
            "/etc/outspoken",
        )

    def _boot(self) -> None:
        for _ in range(120):
            assert self._machine.poll() is None, "the machine ended"
            _, said = self._inside("systemctl", "is-system-running") if self._leader() else (1, "")
            if "running" in said or "degraded" in said:
                (self._root / "etc/outspoken/.env").chmod(0o600)
                self._inside("chown", "-R", "outspoken:", "/etc/outspoken/.env")
                return
            subprocess.run(["sleep", "0.5"], check=True)
        raise AssertionError("it did not come up within a minute")

    def _leader(self) -> int:
        """The init of the machine."""
        children = Path(f"/proc/{self._machine.pid}/task/{self._machine.pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def _inside(self, *words: str) -> tuple[int, str]:
        leader = self._leader()
        return running(
            "nsenter", "--target", str(leader), "--mount", "--uts", "--ipc", "--pid", "--root", "--wd", *words
        )

    def start(self) -> None:
        code, said = self._inside("systemctl", "start", "outspoken")
        assert code == 0, said + self.log()[-3000:]

    def stop(self) -> None:
        code, said = self._inside("systemctl", "stop", "outspoken")
        assert code == 0, said
        result = self._inside("systemctl", "show", "outspoken", "--property=Result", "--value")[1].strip()
        assert result == "success", result

    def pid(self) -> int:
        """Of the first process of the service, 0 if there is none just now; the machine's own numbers are others."""
        number = int(self._inside("systemctl", "show", "outspoken", "--property=MainPID", "--value")[1])
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                text = status.read_text()
            except OSError:
                continue
            numbers = [word for line in text.splitlines() if line.startswith("NSpid:") for word in line.split()[1:]]
            if len(numbers) > 1 and numbers[-1] == str(number) and "outspoken" in text.split("\n", 1)[0]:
                return int(numbers[0])
        return 0

    def outspoken(self, *words: str) -> tuple[int, str]:
        return self._inside(
            "setpriv", "--reuid=outspoken", "--regid=outspoken", "--clear-groups", "env", "CONFIGURATION_DIRECTORY=/etc/outspoken",
            "STATE_DIRECTORY=/var/lib/outspoken", f"OUTSPOKEN_SERVER__OPERATOR_KEY={self._key}", "/opt/outspoken/bin/outspoken", *words,
        )  # fmt: skip

    def healthy(self) -> bool:
        return self.outspoken("health")[0] == 0

    def zombies(self) -> int:
        return self._inside("sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null")[1].count(") Z ")

    def log(self) -> str:
        return self._inside("journalctl", "--unit", "outspoken", "--output", "cat", "--no-pager")[1]

    def remove(self) -> None:
        if self._machine.poll() is None:
            self._machine.terminate()
            try:
                self._machine.wait(30)
            except subprocess.TimeoutExpired:
                self._machine.kill()
                self._machine.wait(10)
        shutil.rmtree(self._root, ignore_errors=True)
