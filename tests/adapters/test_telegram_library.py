"""What python-telegram-bot would load for nothing, and that whoever else asks for it finds it."""

from __future__ import annotations

import subprocess
import sys

LOAD = """
import sys
from adapters.telegram.wire import trusted
from adapters.telegram.adapter import TelegramAdapter

print(*{name.partition(".")[0] for name in sys.modules} & {"cryptography", "pygments", "telegram"})
trusted()
before = [type(one).__name__ for one in sys.meta_path]
import cryptography.hazmat.primitives.ciphers.aead, pygments.lexers
print("_NotHere" in before)
"""
BESIDE = """
import threading
from adapters.telegram.library import _without

def other():
    import cryptography

with _without():
    asked = threading.Thread(target=other)
    asked.start()
    asked.join()
    import sys
    print("cryptography" in sys.modules)
    try:
        import pygments
    except ModuleNotFoundError as error:
        print(error.name)
"""


def said_by(script: str) -> list[str]:
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout.split()


def test_a_telegram_bot_loads_neither_cryptography_nor_pygments_and_whoever_asks_later_has_them() -> None:
    assert said_by(LOAD) == ["telegram", "False"]


def test_a_thread_beside_finds_what_the_library_is_kept_from() -> None:
    assert said_by(BESIDE) == ["True", "pygments"]
