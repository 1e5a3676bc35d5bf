"""Which hosts of pictures are handed on to a model's server, by their names alone."""

from __future__ import annotations

import ipaddress
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_core.tools.web.addresses import is_number, picture_refusal

INSIDE = (
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "printer.local", "db.prod.internal", "nas.lan", "x.home.arpa", "home.arpa.",
    "ｌｏｃａｌｈｏｓｔ", "loca\u00adlhost", "printer。local",
)  # fmt: skip
NUMBERS = (
    "2130706433",
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F.0.0.0x1",
    "0177.0.0.01",
    "127.0.0.1.",
    "0x",
    "127。0。0。1",
)
PUBLIC = ("example.org", "local.example", "a.b.c.example.", "internal.dev", "mylan", "123.example", "0x7f.example", "bücher.example", "x-y_z.example")  # fmt: skip
NO_NAMES = ("localhost..", "a..b", ".", "a." * 8_000, "a" * 70 + ".example", "." * 16_000, "1." * 8_000)


@pytest.mark.parametrize("host", [*INSIDE, *NUMBERS, *NO_NAMES], ids=lambda host: repr(host[:30]))
def test_a_picture_inside_a_network_is_not_handed_on(host: str):
    assert picture_refusal(f"https://{host}/picture.png") is not None


@pytest.mark.parametrize("host", PUBLIC)
def test_a_public_picture_is_handed_on(host: str):
    assert picture_refusal(f"https://{host}/picture.png") is None


@given(st.lists(st.sampled_from(["1", "0x", "f", ".", "a", "local", "。", "²"]), max_size=12).map("".join))
def test_whatever_is_inside_is_so_for_every_machine_below_it(host: str):
    for name in (f"{host}.internal", f"{host}.lan.", f"{host}.127", f"{host}.0xff"):
        assert picture_refusal(f"http://{name}/") is not None or public_machine(name)
    assert is_number(f"{host}.1")
    assert not is_number(f"{host}.example")


def public_machine(name: str) -> bool:
    """Four numbers are a machine, whatever the last one is."""
    try:
        return ipaddress.IPv4Address(name.replace("。", ".")).is_global
    except ValueError:
        return False


@pytest.mark.parametrize("unit", [".", "a.", "1.", "0x", "-", "é", "localhost."])
def test_the_time_grows_with_the_host_alone(unit: str):
    host = (unit * 1_000_000)[:1_000_000]
    began = time.process_time()
    picture_refusal(f"http://{host}/")
    is_number(host)
    assert time.process_time() - began < 2
