"""The filter of system calls that commands run under: a program for the kernel's filter machine, put together here, and the same as engines read it. Pure.

The sandbox has no rights that these calls could use; they are refused all the same, because most faults of kernels that led out of sandboxes lay behind one
of them. What a program may do without is refused as if the kernel did not know it (`ENOSYS`), so that libraries take another way.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping, Sequence

import orjson

from agent_core.jsonvalue import Json

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERRNO = 0x00050000
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06
_NUMBER, _ARCH, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Where in `struct seccomp_data` they stand; of arguments the lower half."""

ARCHITECTURES: Mapping[str, int] = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_OTHER_ABI = 0x40000000
"""From this number on x86_64 has its calls once more, with short pointers."""
_NEW_NAMESPACES = 0x7E020080
"""The flags of `clone` that make a namespace: time, cgroup, uts, ipc, user, pid, net, mount."""
TERMINAL_INPUT = (0x5412, 0x541C)
"""`TIOCSTI` and `TIOCLINUX`, which type into a terminal."""
FAMILIES = (1, 2, 10, 16)
"""Sockets that a command may make: unix, IPv4, IPv6, and netlink, by which programs ask for the interfaces. All of them end in its own network."""
_MOST_FAMILY = 45
"""The last family of sockets that kernels have today; what is beyond is refused as well."""

# name: (x86_64, aarch64); None where there is none
_NOT_PERMITTED: Mapping[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "move_mount": (429, 429),
    "open_tree": (428, 428), "mount_setattr": (442, 442), "swapon": (167, 224), "swapoff": (168, 225), "reboot": (169, 142),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "quotactl": (179, 60), "quotactl_fd": (443, 443), "acct": (163, 89),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "syslog": (103, 116), "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "vhangup": (153, 58), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "fanotify_init": (300, 262),
    "move_pages": (279, 239), "migrate_pages": (256, 238), "mbind": (237, 235), "set_mempolicy": (238, 237),
    "sched_setaffinity": (203, 122), "shmget": (29, 194), "msgget": (68, 186), "mq_open": (240, 180), "personality": (135, 92),
}  # fmt: skip
_NOT_THERE: Mapping[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "uselib": (134, None), "sysfs": (139, None), "_sysctl": (156, None), "ustat": (136, None),
}  # fmt: skip
"""`clone3` hides its flags from a filter; what `memfd_create` makes is memory that belongs to no process, so that nobody could count it."""
_CLONE, _IOCTL, _SOCKET, _SOCKETPAIR = (56, 220), (16, 29), (41, 198), (53, 199)


def filter_program(machine: str) -> bytes | None:
    """The filter for a machine (as `uname -m` calls it), as the kernel reads it; None if we know none for it."""
    architecture = ARCHITECTURES.get(machine)
    if architecture is None:
        return None
    which = [*ARCHITECTURES].index(machine)
    permitted, there = _numbers(_NOT_PERMITTED, which), _numbers(_NOT_THERE, which)
    lines = [_line(_LOAD, _ARCH), *_unless_equal(architecture, _KILL), _line(_LOAD, _NUMBER)]
    if machine == "x86_64":
        lines += [_jump(_AT_LEAST, _OTHER_ABI, 0, 1), _line(_RETURN, _refusal(errno.ENOSYS))]
    for number in permitted:
        lines += [_jump(_EQUAL, number, 0, 1), _line(_RETURN, _refusal(errno.EPERM))]
    for number in there:
        lines += [_jump(_EQUAL, number, 0, 1), _line(_RETURN, _refusal(errno.ENOSYS))]
    lines += _looked_into(_CLONE[which], _FIRST_ARGUMENT, _namespaces())
    lines += _looked_into(_IOCTL[which], _SECOND_ARGUMENT, _none_of(TERMINAL_INPUT, errno.EPERM))
    for number in (_SOCKET[which], _SOCKETPAIR[which]):
        lines += _looked_into(number, _FIRST_ARGUMENT, _only(FAMILIES, errno.EAFNOSUPPORT))
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def filter_profile() -> bytes:
    """The filter as container engines read it. They know the names of the calls, and end whoever calls by another kernel's numbers."""
    families = range(_MOST_FAMILY + 1)
    looked: list[Json] = [
        _looked("clone", 0, _NEW_NAMESPACES & 1 << bit, "SCMP_CMP_MASKED_EQ", errno.EPERM) for bit in range(32) if _NEW_NAMESPACES >> bit & 1
    ]  # fmt: skip
    looked += [_looked("ioctl", 1, number, "SCMP_CMP_EQ", errno.EPERM) for number in TERMINAL_INPUT]
    for name in ("socket", "socketpair"):
        looked += [
            _looked(name, 0, family, "SCMP_CMP_EQ", errno.EAFNOSUPPORT) for family in families if family not in FAMILIES
        ]
        looked.append(_looked(name, 0, _MOST_FAMILY, "SCMP_CMP_GT", errno.EAFNOSUPPORT))
    always: list[Json] = [
        {"names": [*_NOT_PERMITTED], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.EPERM},
        {"names": [*_NOT_THERE], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS},
    ]
    profile: dict[str, Json] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [*always, *looked]}
    return orjson.dumps(profile)


def _looked(name: str, index: int, value: int, how: str, number: int) -> Json:
    """A call that is refused for what one of its arguments is; with a mask the value is mask and wanted bits."""
    argument: dict[str, Json] = {"index": index, "value": value, "op": how}
    if how == "SCMP_CMP_MASKED_EQ":
        argument["valueTwo"] = value
    return {"names": [name], "action": "SCMP_ACT_ERRNO", "errnoRet": number, "args": [argument]}


def _numbers(names: Mapping[str, tuple[int | None, int | None]], which: int) -> list[int]:
    return [number for pair in names.values() if (number := pair[which]) is not None]


def _refusal(number: int) -> int:
    return _ERRNO | number


def _line(code: int, value: int) -> bytes:
    return struct.pack("=HBBI", code, 0, 0, value)


def _jump(code: int, value: int, if_so: int, if_not: int) -> bytes:
    return struct.pack("=HBBI", code, if_so, if_not, value)


def _unless_equal(value: int, verdict: int) -> list[bytes]:
    return [_jump(_EQUAL, value, 1, 0), _line(_RETURN, verdict)]


def _looked_into(number: int, argument: int, check: Sequence[bytes]) -> list[bytes]:
    """`check` judges an argument of one call, and comes to an end itself."""
    body = [_line(_LOAD, argument), *check]
    return [_jump(_EQUAL, number, 0, len(body)), *body]


def _namespaces() -> list[bytes]:
    return [_jump(_ANY_BIT, _NEW_NAMESPACES, 0, 1), _line(_RETURN, _refusal(errno.EPERM)), _line(_RETURN, _ALLOW)]


def _none_of(values: Sequence[int], number: int) -> list[bytes]:
    refused = [each for value in values for each in (_jump(_EQUAL, value, 0, 1), _line(_RETURN, _refusal(number)))]
    return [*refused, _line(_RETURN, _ALLOW)]


def _only(values: Sequence[int], number: int) -> list[bytes]:
    allowed = [each for value in values for each in (_jump(_EQUAL, value, 0, 1), _line(_RETURN, _ALLOW))]
    return [*allowed, _line(_RETURN, _refusal(number))]
