"""Work that is done in a forked child, which ends without any clean-up: a killed incarnation may never be cleaned up.

Whoever forks is alone in its process. What another thread holds at that moment is held in the child for ever: a reader of a store that is just closing
its connection has SQLite's own lock, and the child would wait for it without an end.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import traceback
from collections.abc import Callable
from typing import Any

END_SECONDS = 60.0


def alone() -> None:
    """Wait until all other threads are over: a store's readers end when nobody knows of them any more, which is a while after its own end."""
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(END_SECONDS)
            assert not thread.is_alive(), f"{thread.name} goes on, and a child would have what it holds"


def apart(work: Callable[[], Any]) -> Any:
    """What `work` returns (something that JSON can say); None if the child died."""
    alone()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.close(read)
            told = json.dumps(work())
            with os.fdopen(write, "w") as pipe:
                pipe.write(told)
            status = 0
        except BaseException:  # noqa: BLE001 - the child may not return into the parent's code
            traceback.print_exc()
        os._exit(status)
    os.close(write)
    with os.fdopen(read) as pipe:
        written = pipe.read()
    os.waitpid(child, 0)
    return json.loads(written) if written else None
