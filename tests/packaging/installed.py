"""An installation as a stranger has it: built from the sources, in an environment that holds what the wheel asks for and no more.

The dependencies are not fetched: the distributions that the wheel's metadata asks for (and what those ask for) are linked from
the environment of the tests, one by one. What is not declared is not there, and `pip check` judges the versions.
"""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 60


@dataclass(frozen=True)
class Installed:
    """Where it is."""

    prefix: Path
    sdist: Path
    wheel: Path

    @property
    def program(self) -> Path:
        return self.prefix / "bin" / "outspoken"

    @property
    def packages(self) -> Path:
        return self.prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"

    def pip(self, *words: str) -> str:
        """Run pip on this environment; what it prints."""
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.prefix / "bin" / "python"),
            "--disable-pip-version-check",
        ]
        return run([*pip, *words], self.prefix)


def run(words: list[str], where: Path, **more: str) -> str:
    done = subprocess.run(
        words, cwd=where, env={**os.environ, **more}, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built(folder: Path) -> tuple[Path, Path]:
    """The source archive, and the wheel that is built from what is in it."""
    build = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder / "dist")]
    run([*build, "--target", "sdist"], ROOT)
    [sdist] = (folder / "dist").glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [source] = (folder / "unpacked").iterdir()
    run([*build, "--target", "wheel"], source)
    [wheel] = (folder / "dist").glob("*.whl")
    return sdist, wheel


def requirements_of(wheel: Path) -> list[str]:
    """What the wheel's metadata asks for."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(name).decode()).get_all("Requires-Dist") or []


def asked_for(requirements: list[str]) -> Iterator[metadata.Distribution]:
    """The distributions that are asked for, directly or by others."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(text), "") for text in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        new = [key for key in [(name, ""), *((name, more) for more in requirement.extras)] if key not in seen]
        distribution = metadata.distribution(name)
        if (name, "") in new:
            yield distribution
        seen.update(new)
        waiting += [(Requirement(text), more) for _, more in new for text in distribution.requires or []]


def linked(distribution: metadata.Distribution, packages: Path) -> None:
    """Make a distribution's files seen in another environment."""
    for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in {"..", "__pycache__"}}:
        link = packages / top
        if not link.is_symlink():
            link.symlink_to(Path(str(distribution.locate_file(top))))


def install(folder: Path) -> Installed:
    """Build everything and install it below `folder`."""
    sdist, wheel = built(folder)
    prefix = folder / "environment"
    run([sys.executable, "-m", "venv", "--without-pip", str(prefix)], folder)
    installed = Installed(prefix, sdist, wheel)
    for distribution in asked_for(requirements_of(wheel)):
        linked(distribution, installed.packages)
    installed.pip("install", "--quiet", "--no-index", "--no-deps", str(wheel))
    shutil.rmtree(folder / "unpacked")
    return installed
