# shellcheck shell=sh
# What tests with hostile peers look at; sourced behind lib_jobs.sh.
#
#   address_of PID       prints the Unix address at which a process is called
#   memory_of PID        prints the most memory it has had so far, in kB
#   nobody_crashed WHAT  fails if somebody of the job $job did, or a sanitizer complains
#   nobody_grew BEFORE AFTER   fails unless each of AFTER is within its bound: less than twice BEFORE and 32 MB

address_of()
{
    address=
    until [ -n "$address" ]; do
        address=$(find_address "$1") || return 1
    done
    echo "$address"
}

find_address()
{
    python3 - "$1" <<'PYTHON'
import os, sys
names = {}
for line in open("/proc/net/unix"):
    words = line.split()
    if len(words) > 7 and words[7].startswith("@rubato-"):
        names["socket:[%s]" % words[6]] = "unix:" + words[7]
folder = "/proc/%s/fd/" % sys.argv[1]
links = [os.readlink(folder + fd) for fd in os.listdir(folder) if os.path.islink(folder + fd)]
print(next((names[link] for link in links if link in names), ""))
PYTHON
}

memory_of()
{
    sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$1/status"
}

nobody_crashed()
{
    ! grep -E 'Sanitizer|runtime error|ssertion|signal' job.out job.err >&2 || job_fail "$1: somebody crashed"
}

nobody_grew()
{
    [ "$RUBATO_SANITIZED" -ne 0 ] || python3 -c "
import sys
before, after = [int(x) for x in sys.argv[1].split()], [int(x) for x in sys.argv[2].split()]
sys.exit(0 if len(after) == len(before) and all(a < 2 * b + 32768 for a, b in zip(after, before)) else str((before, after)))
" "$1" "$2" || job_fail "a role grew"
}
