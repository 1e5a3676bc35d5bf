"""Alert rules put to the test by promtool, with series that are made of what a running gateway has served."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alert-rules.yaml"
QUIET_MINUTES = 65
"""How long nothing happens first: longer than any rule looks back, but for the one that looks back a day."""
TARGET = {"job": "outspoken", "instance": "gateway:8787"}
Series = Mapping[tuple[str, tuple[tuple[str, str], ...]], float]

BORN = "process_start_time_seconds"
INFO = "outspoken_info"
"""Put only where a gateway goes missing: the rule for that looks back a day each time, which takes its time."""
NOBODY: Series = {}
"""There is no process."""


def tool(name: str) -> str:
    """The path of promtool or prometheus; empty if it is not to be had. See tests/prometheus-check.sh."""
    return shutil.which(name) or shutil.which(name, path=str(ROOT / ".tools" / "usr" / "bin")) or ""


def asked_for() -> set[str]:
    """Every word of the rules: the names of series are among them."""
    return set(re.findall(r"\w+", RULES.read_text("utf-8")))


def series_of(text: str) -> Series:
    """What a gateway serves, as Prometheus stores it, as far as a rule asks for it."""
    asked = asked_for()
    return {
        (sample.name, tuple(sorted({**sample.labels, **TARGET}.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in asked
    }


def with_value(series: Series, name: str, value: float, **labels: str) -> Series:
    """The same, where some series have another value. There must be one."""
    chosen = [key for key in series if key[0] == name and labels.items() <= dict(key[1]).items()]
    assert chosen, f"the gateway serves no {name} {labels}"
    return {**series, **dict.fromkeys(chosen, value)}


@dataclass(frozen=True)
class Case:
    """What is scraped minute by minute, and what fires then."""

    name: str
    before: Series
    """Of the quiet time; empty: there is no process yet."""
    after: Series
    """Of the first minute afterwards; empty: nothing is scraped any more."""
    fires: frozenset[str]
    minutes: int
    """After so many it fires."""
    goes_on: bool = False
    """What happened in the first minute happens in each."""
    answers: bool = True
    """Prometheus gets an answer afterwards."""
    target_known: bool = True
    """It still asks."""

    def to_yaml(self) -> Mapping[str, object]:
        """The test, as promtool reads it."""
        return {
            "name": self.name,
            "interval": "1m",
            "input_series": [*self._series(), self._up()],
            "promql_expr_test": [
                self._expectation(QUIET_MINUTES - 1, frozenset()),
                self._expectation(QUIET_MINUTES + self.minutes, self.fires),
            ],
        }

    def _series(self) -> Sequence[Mapping[str, str]]:
        keys = sorted(
            key
            for key in {*self.before, *self.after}
            if key[0] in _asked() and (key[0] != INFO or not self.target_known)
        )
        return [{"series": _selector(*key), "values": self._values(key)} for key in keys]

    def _values(self, key: tuple[str, tuple[tuple[str, str], ...]]) -> str:
        was, then, last = self.before.get(key), self.after.get(key), self.minutes + 2
        # The clock of these tests begins at 0, in a process that had run for a day, or that has just begun
        if key[0] == BORN:
            was, then = (-86_400.0 if self.before else None), (-86_400.0 if self.before else QUIET_MINUTES * 60 - 20.0)
        quiet = f"_x{QUIET_MINUTES}" if was is None else f"{was!r}x{QUIET_MINUTES - 1}"
        if then is None or not self.after:
            return f"{quiet} stale _x{last}"
        step = max(0.0, then - (was or 0.0)) if self.goes_on and key[0] != BORN else 0.0
        return f"{quiet} {then!r}+{step!r}x{last}"

    def _up(self) -> Mapping[str, str]:
        then = f"{int(self.answers)}x{self.minutes + 2}" if self.target_known else f"stale _x{self.minutes + 2}"
        first = f"1x{QUIET_MINUTES - 1}" if self.before else f"_x{QUIET_MINUTES}"
        return {"series": _selector("up", tuple(TARGET.items())), "values": f"{first} {then}"}

    @staticmethod
    def _expectation(minute: int, fires: frozenset[str]) -> Mapping[str, object]:
        return {
            "expr": 'group by (alertname) (ALERTS{alertstate="firing"})',
            "eval_time": f"{minute}m",
            "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(fires)],
        }


@cache
def _asked() -> frozenset[str]:
    """The names of the series that the rules look at. Others cost time and change nothing."""
    return frozenset(re.findall(r"\w+", RULES.read_text("utf-8")))


def _selector(name: str, labels: tuple[tuple[str, str], ...]) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels if value)
    return f"{name}{{{inside}}}"


def judged(cases: Sequence[Case], folder: Path, rules: Path = RULES) -> str:
    """What promtool finds wrong; empty if everything fires when it should, and nothing else."""
    file = folder / "cases.yaml"
    tests = [case.to_yaml() for case in cases]
    file.write_text(yaml.safe_dump({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": tests}), "utf-8")
    done = subprocess.run(
        [tool("promtool"), "test", "rules", str(file)], capture_output=True, text=True, timeout=300, check=False
    )
    return "" if done.returncode == 0 else f"{done.stdout}\n{done.stderr}"
