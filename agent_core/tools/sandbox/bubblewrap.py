"""How a command is locked up with bubblewrap: its arguments, and the files that are put in place of the system's. Pure.

Inside there are the system's programs and libraries, to be read; a folder for temporary files in memory; the conversation's folder, which is all of the disk
that can be written to; processes, users, names and a network of its own. What could be written to of the kernel's files by a gateway that runs as root is
read-only or covered.

Known to be weak: the kernel is the machine's own. Whoever has a fault of it to use needs no sandbox to be open; a container engine is no better there,
a machine of its own is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agent_core.tools.sandbox.terms import INSIDE, MIB, ShellTerms, surroundings

PROGRAM = "bwrap"
USER = 1000
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""What of them is a link stays one."""
OF_ETC = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/fonts", "/etc/java-openjdk", "/etc/java-17-openjdk",
    "/etc/java-21-openjdk", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/magic", "/etc/mime.types",
    "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/terminfo",
)  # fmt: skip
"""Nothing of it is secret on any system that we know."""
READ_ONLY = ("/proc/sys", "/proc/fs", "/proc/sysrq-trigger")
COVERED_FILES = (
    "/proc/kcore", "/proc/keys", "/proc/kmsg", "/proc/kallsyms", "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup",
    "/proc/latency_stats", "/proc/timer_list", "/proc/sched_debug", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/iomem", "/proc/ioports",
    "/proc/modules", "/proc/cmdline", "/proc/config.gz", "/proc/mtrr", "/proc/swaps", "/proc/diskstats", "/proc/partitions",
)  # fmt: skip
COVERED_FOLDERS = ("/proc/acpi", "/proc/asound", "/proc/scsi", "/proc/driver", "/proc/pressure", "/proc/dynamic_debug")
SHARED_MEMORY = 64 * MIB
PASSWD = f"root:x:0:0:root:/:/bin/false\nagent:x:{USER}:{USER}:agent:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = f"root:x:0:\nagent:x:{USER}:\nnogroup:x:65534:\n"
SWITCH = "passwd: files\ngroup: files\nhosts: files\n"
HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
OUR_FILES: Mapping[str, str] = {
    "/etc/passwd": PASSWD, "/etc/group": GROUP, "/etc/nsswitch.conf": SWITCH, "/etc/hosts": HOSTS, "/etc/resolv.conf": "",
}  # fmt: skip


def temporary_bytes(terms: ShellTerms) -> int:
    """How much its temporary files may take; they lie in memory."""
    return max(MIB, terms.memory_bytes // 4)


def arguments(
    terms: ShellTerms,
    workspace: str,
    *,
    there: Callable[[str], bool],
    link: Callable[[str], str],
    data: Mapping[str, int],
    seccomp: int | None,
    status: int,
    block: int,
) -> list[str]:
    """What bubblewrap is told, beside the command; the numbers are descriptors: of what `OUR_FILES` hold, of the filter, of where it says how it goes, of what it waits for.

    `link` gives where a link of the machine leads, empty if it is none.
    """
    told = [
        *("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"),
        *("--uid", str(USER), "--gid", str(USER), "--hostname", "sandbox", "--cap-drop", "ALL"),
    ]
    for place in SYSTEM:
        if to := link(place):
            told += ["--symlink", to, place]
        elif there(place):
            told += ["--ro-bind", place, place]
    for place in (*OF_ETC, *terms.read):
        if there(place):
            told += ["--ro-bind", place, place]
    for place, number in data.items():
        told += ["--perms", "0444", "--ro-bind-data", str(number), place]
    told += ["--proc", "/proc"]
    for place in READ_ONLY:
        told += ["--ro-bind", place, place] if there(place) else []
    for place in COVERED_FILES:
        told += ["--ro-bind", "/dev/null", place] if there(place) else []
    for place in COVERED_FOLDERS:
        told += ["--perms", "0555", "--size", "4096", "--tmpfs", place, "--remount-ro", place] if there(place) else []
    told += ["--dev", "/dev", "--perms", "1777", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm"]  # noqa: S108 - of the sandbox
    told += ["--perms", "1777", "--size", str(temporary_bytes(terms)), "--tmpfs", "/tmp"]  # noqa: S108
    told += ["--bind", workspace, INSIDE, "--chdir", INSIDE, "--remount-ro", "/dev", "--remount-ro", "/"]
    for name, value in surroundings(terms).items():
        told += ["--setenv", name, value]
    if seccomp is not None:
        told += ["--seccomp", str(seccomp)]
    return [*told, "--json-status-fd", str(status), "--block-fd", str(block)]
