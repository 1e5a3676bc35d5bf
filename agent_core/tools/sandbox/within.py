"""A socket that listens inside a sandbox and is accepted from outside of it: the one way out of a network that has no other.

A process of ours goes into the sandbox's network, makes the socket there, hands it back and ends. In the sandbox there is nothing of ours to attack.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import time

_OWNER_OF_NAMESPACE = 0xB701
"""``NS_GET_USERNS`` of ``ioctl_ns``."""
WAIT_SECONDS = 5.0
"""The sandbox's own address is there a moment after the sandbox."""


class NoWayIn(Exception):
    """No socket could be made inside the sandbox."""


def listening_within(process: int, port: int) -> socket.socket:
    """A socket that listens on the loopback of a process's network. Only from a process with one thread. Raises `NoWayIn`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    child = os.fork()
    if child == 0:
        ours.close()
        try:
            _enter(process)
            with _listening(port) as made:
                socket.send_fds(theirs, [b"1"], [made.fileno()])
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        _, numbers, _, _ = socket.recv_fds(ours, 1, 1)
    os.waitpid(child, 0)
    if not numbers:
        raise NoWayIn("the network of the sandbox could not be entered")
    return socket.socket(fileno=numbers[0])


def _enter(process: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(network, _OWNER_OF_NAMESPACE)
    for number in (owner, network):
        if library.setns(number, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def _listening(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    until = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            made.bind(("127.0.0.1", port))
            made.listen(64)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return made
