"""bounded.py MIB[+MORE] COMMAND...: runs the command with MIB of memory for its data (RLIMIT_DATA; MORE may be asked for and
left unused) and fails when more than MIB was resident at its peak, mapped files included; prints the peak in MiB on the
standard error."""
import os
import resource
import subprocess
import sys

limit, unused = (int(part or 0) << 20 for part in (sys.argv[1] + "+").split("+")[:2])


def limited():
    resource.setrlimit(resource.RLIMIT_DATA, (limit + unused, limit + unused))


child = subprocess.Popen(sys.argv[2:], preexec_fn=limited)
_, status, usage = os.wait4(child.pid, 0)
peak = usage.ru_maxrss * 1024
print("peak %.1f MiB, %.1f s" % (peak / 2**20, usage.ru_utime + usage.ru_stime), file=sys.stderr)
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code != 0 or peak <= limit else 99)
