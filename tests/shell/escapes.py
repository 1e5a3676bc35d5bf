"""Ways out of a sandbox that were tried by others, each in a few lines. One that succeeds prints `OUT`.

`{place}` is a folder of the machine that holds what is secret, `{port}` a port on which it listens, `{pid}` one of its processes, `{name}` of a socket.
"""

from __future__ import annotations

OUT = "ESCAPED"

SHELL: dict[str, str] = {
    # what is not to be read
    "the shadow passwords": "cat /etc/shadow && echo OUT",
    "the machine's passwords": "grep -v -e '^root:x:0:0:root:/:' -e '^agent' -e '^nobody' /etc/passwd && echo OUT",
    "a home": "ls -A /home && echo OUT",
    "the superuser's home": "ls -A /root && echo OUT",
    "our own home by the variable": "[ \"$HOME\" = /tmp ] || echo OUT",
    "the state by its path": "cat {place}/secret.txt && echo OUT",
    "the database by its path": "cat {place}/outspoken.db && echo OUT",
    "the configuration by its path": "cat {place}/outspoken.toml && echo OUT",
    "another conversation's folder": "ls {place}/other && echo OUT",
    "another conversation's folder beside ours": "cat ../other/theirs.txt && echo OUT",
    "writing to another conversation's folder": "echo x > {place}/other/new && echo OUT",
    "what is above the workspace": "ls -A .. | grep -v -x -e bin -e dev -e etc -e lib -e lib32 -e lib64 -e libx32 -e proc -e run -e sbin -e sys -e .dockerenv -e tmp -e usr -e workspace && echo OUT",
    "the machine's temporary files": "find /tmp /var/tmp /dev/shm -mindepth 1 2>/dev/null | grep . && echo OUT",
    "the machine's keys for ssh": "find /etc/ssh / -maxdepth 3 -name 'ssh_host*' 2>/dev/null | grep . && echo OUT",
    "private keys of certificates": "ls /etc/ssl/private && echo OUT",
    "logs": "ls /var/log && echo OUT",
    "services' sockets": "find /run /var/run -mindepth 1 ! -name .containerenv 2>/dev/null | grep . && echo OUT",
    "the engine of containers": "test -S /var/run/docker.sock && echo OUT",
    "a link to a secret": "ln -s {place}/secret.txt link; cat link && echo OUT",
    "a link to the machine's root": "ln -s /proc/1/root/{place} rootlink; ls rootlink/ && echo OUT",
    "a hard link to a secret": "ln {place}/secret.txt hard && echo OUT",
    "the first process's root": "ls /proc/1/root/home && echo OUT",
    "the first process's folder": "ls /proc/1/cwd/../../{place} && echo OUT",
    "old mounts": "awk '{print $5}' /proc/self/mountinfo | grep -e oldroot -e newroot && echo OUT",
    "what was mounted before": "ls /oldroot /newroot && echo OUT",
    # environment and descriptors
    "environments of all processes": "cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -i -e canary -e outspoken -e token -e api_key && echo OUT",
    "our environment": "env | cut -d= -f1 | grep -v -x -e PATH -e HOME -e TMPDIR -e LANG -e TERM -e PYTHONUNBUFFERED -e PWD -e SHLVL -e _ && echo OUT",
    "descriptors that were left open": "ls -l /proc/self/fd | grep -v -e total -e ' [012] -> ' -e /proc/ && echo OUT",
    "descriptors of the first process": "ls -l /proc/1/fd | grep -v -e total -e ' [012] -> ' -e eventfd && echo OUT",
    "the command lines of the machine": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > lines; grep -e {place} -e watcher lines && echo OUT",
    # processes
    "processes of the machine": "[ $(ls /proc | grep -c '^[0-9]') -lt 20 ] || echo OUT",
    "a signal to a process outside": "kill -0 {pid} && [ $(cat /proc/{pid}/comm) = sleep ] && echo OUT",
    "a change of priority": "was=$(nice); [ $(nice -n -5 nice) -ge $was ] || echo OUT",
    "a change of limits": "ulimit -u 100000 2>/dev/null || ulimit -p 100000 2>/dev/null && echo OUT",
    "more memory": "ulimit -d unlimited && echo OUT",
    "core dumps": "ulimit -c unlimited && echo OUT",
    "a daemon that stays": "(setsid sleep 4711 </dev/null >/dev/null 2>&1 &) ; true",
    "a command that ignores being hung up": "nohup sleep 4712 >/dev/null 2>&1 & true",
    # the system
    "writing programs": "touch /usr/bin/evil && echo OUT",
    "writing to the libraries' list": "echo x >> /etc/ld.so.cache && echo OUT",
    "a library before all others": "echo x > /etc/ld.so.preload && echo OUT",
    "a new passwd": "echo x >> /etc/passwd && echo OUT",
    "a file beside the system": "touch /evil && echo OUT",
    "removing the root": "mv /usr /usr2 && echo OUT",
    "mounting": "mount -t tmpfs none /mnt && echo OUT",
    "making it writable again": "mount -o remount,rw /usr && echo OUT",
    "unmounting": "umount /proc/sys || umount -l /usr && echo OUT",
    "a bind mount": "mount --bind /tmp /usr && echo OUT",
    "new rights by a namespace": "unshare -Ur true && echo OUT",
    "a mount by a namespace": "unshare -Urm sh -c 'mount -t tmpfs none /tmp' && echo OUT",
    "entering the first process": "nsenter -t 1 -a true && echo OUT",
    "becoming the superuser": "su -c true && echo OUT",
    "sudo": "sudo -n true && echo OUT",
    "a program with the bit": "find / -xdev -perm -4000 -type f -exec sh -c '[ $($0 -u 2>/dev/null) = 0 ] && echo OUT' {} \\; 2>/dev/null",
    "a program of ours with the bit": "cp /usr/bin/id suid; chmod 4755 suid; ./suid -u | grep -x 0 && echo OUT",
    "capabilities": "grep -E 'Cap(Eff|Prm|Inh|Amb|Bnd):' /proc/self/status | grep -v 0000000000000000 && echo OUT",
    "the filter is off": "grep -q 'Seccomp:.*2' /proc/self/status || echo OUT",
    "new rights by a program": "grep -q 'NoNewPrivs:.*1' /proc/self/status || echo OUT",
    # the kernel's files
    "the pattern of cores": "echo '|/tmp/evil' > /proc/sys/kernel/core_pattern && echo OUT",
    "the kernel's numbers": "cat /proc/sys/vm/swappiness > /proc/sys/vm/swappiness && echo OUT",
    "the kernel's helper": "echo x > /proc/sys/kernel/modprobe && echo OUT",
    "formats of programs": "echo x > /proc/sys/fs/binfmt_misc/register && echo OUT",
    "the magic key": "(: > /proc/sysrq-trigger) && echo OUT",
    "the kernel's memory": "head -c 1 /proc/kcore | grep . && echo OUT",
    "the kernel's addresses": "grep -v '^0000000000000000' /proc/kallsyms | head -1 | grep . && echo OUT",
    "the kernel's log": "dmesg | grep . && echo OUT",
    "keys of the kernel": "cat /proc/keys | grep . && echo OUT",
    "the machine's tree of devices": "ls /sys | grep . && echo OUT",
    "groups of control": "ls /sys/fs/cgroup | grep . && echo OUT",
    "a group's helper": "mkdir /tmp/cg && mount -t cgroup -o memory cgroup /tmp/cg && echo OUT",
    "its own mapping": "echo '0 0 1' > /proc/self/uid_map && echo OUT",
    "groups by a mapping": "echo allow > /proc/self/setgroups && echo OUT",
    "how likely others are killed": "echo -1000 > /proc/self/oom_score_adj && echo OUT",
    # devices
    "a device": "mknod disk b 8 0 && echo OUT",
    "the machine's disks": "ls /dev/sd* /dev/vd* /dev/nvme* /dev/mem /dev/kmsg /dev/fuse /dev/kvm 2>/dev/null | grep . && echo OUT",
    "a file in the folder of devices": "touch /dev/evil && echo OUT",
    "the terminal": "(: > /dev/tty) && echo OUT",
    # the network
    "the machine's own doors": "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo OUT",
    "a way to the world": "ip route 2>/dev/null | grep . && echo OUT",
    "a name": "getent hosts example.org && echo OUT",
    "a name by hand": "timeout 2 bash -c 'exec 3<>/dev/udp/8.8.8.8/53 && echo x >&3' && echo OUT",
    "the cloud's own data": "curl -s -m 2 http://169.254.169.254/latest/meta-data/ && echo OUT",
    "a page": "curl -s -m 2 http://1.1.1.1/ && echo OUT",
    "the other protocol": "curl -s -m 2 -g 'http://[2606:4700:4700::1111]/' && echo OUT",
    "a ping": "ping -c 1 -W 1 1.1.1.1 && echo OUT",
    "other interfaces": "ls /sys/class/net 2>/dev/null | grep -v lo || grep -v -e lo: -e '|' /proc/net/dev && echo OUT",
    "the machine's connections": "grep -v -e local_address /proc/net/tcp && echo OUT",
}  # fmt: skip
"""Run by bash."""

PYTHON: dict[str, str] = {
    "an abstract socket": "s=socket.socket(socket.AF_UNIX); s.connect('\\0{name}'); print('OUT')",
    "a socket by its path": "s=socket.socket(socket.AF_UNIX); s.connect('{place}/door'); print('OUT')",
    "the machine below (vsock)": "s=socket.socket(40, socket.SOCK_STREAM); print('OUT')",
    "packets by hand": "s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW); print('OUT')",
    "raw packets": "s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); print('OUT')",
    "the kernel's ciphers": "s=socket.socket(38, socket.SOCK_SEQPACKET); print('OUT')",
    "bluetooth": "s=socket.socket(31, socket.SOCK_RAW, 1); print('OUT')",
    "looking into another process": "call(101, 16, 1, 0, 0)",
    "reading another process's memory": "open('/proc/1/mem','rb').seek(0); call(310, 1, 0, 0, 0, 0, 0)",
    "keyrings": "call(250, 0, -3, 1)",
    "a key": "call(248, b'user', b'a', b'b', 1, -3)",
    "a new namespace": "call(272, 0x10000000)",
    "a clone in a namespace": "call(56, 0x10000011, 0, 0, 0, 0)",
    "a clone whose flags nobody sees": "call(435, 0, 0)",
    "another's namespace": "call(308, os.open('/proc/1/ns/mnt', 0), 0)",
    "a mount": "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)",
    "a mount in the new way": "call(430, b'tmpfs', 0)",
    "a tree of mounts": "call(428, -100, b'/usr', 1)",
    "another root": "call(161, b'/tmp')",
    "pivoting": "call(155, b'/tmp', b'/tmp')",
    "a program in the kernel": "call(321, 0, 0, 0)",
    "counters of the machine": "call(298, 0, 0, -1, -1, 0)",
    "faults in user space": "call(323, 0)",
    "rings": "call(425, 1, 0)",
    "files by their handles": "call(304, -100, 0, 0)",
    "handles of files": "call(303, -100, b'/usr', 0, 0, 0)",
    "a module": "call(175, 0, 0, b'')",
    "another kernel": "call(246, 0, 0, 0, 0)",
    "a restart": "call(169, 1, 2, 3, 0)",
    "the time": "call(164, 0, 0)",
    "the machine's name": "call(170, b'evil', 4)",
    "swap": "call(167, b'/tmp/x', 0)",
    "accounting": "call(163, b'/tmp/x')",
    "ports of the processor": "call(172, 3)",
    "memory that belongs to nobody": "call(319, b'x', 0)",
    "secret memory": "call(447, 0)",
    "shared memory of the old kind": "call(29, 0, 4096, 0o1600)",
    "other processors": "os.sched_setaffinity(0, {{0}}); print('OUT')",
    "another personality": "call(135, 0x0040000)",
    "calls of the other kind": "call(0x40000000 + 39)",
    "typing into a terminal": "m,s=pty.openpty(); fcntl.ioctl(s, 0x5412, b'x'); print('OUT')",
    "typing into a console": "m,s=pty.openpty(); fcntl.ioctl(s, 0x541C, b'x'); print('OUT')",
    "being somebody else": "os.setuid(0); print('OUT')",
    "being in another group": "os.setgroups([0]); print('OUT')",
    "giving a file away": "open('mine','w').close(); os.chown('mine', 0, 0); print('OUT')",
    "a file descriptor of the first process": "f=os.open('/proc/1/fd/4', os.O_RDWR); print('OUT')",
    "a longer file than it may be": "f=open('big','wb'); f.seek(40*1024*1024); f.write(b'x'); f.flush(); print('OUT')",
    "dump of the first process": "print('OUT') if b'CANARY' in open('/proc/1/environ','rb').read() else 0",
}  # fmt: skip
"""Run by Python, with `call` for a system call (of x86_64) that must not come back well."""

PRELUDE = """\
import ctypes, errno, fcntl, os, pty, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(*a):
    ctypes.set_errno(0)
    found = libc.syscall(*[ctypes.c_long(one) if isinstance(one, int) else one for one in a])
    if found == 0 and a[0] == 56: os._exit(0)
    if found != -1 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS): print("OUT", found, ctypes.get_errno())
"""
