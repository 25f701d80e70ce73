# While everybody waits for one worker, the lead says who waits for whom, and nobody uses the processor.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 --servers 1 -- train $learning --sync bsp --clocks 100000000 --eval-every 100 --json job.json
job_clock 2
slow=$(job_rank 2)
kill -STOP "$slow"

said()
{
    grep -qE -- "$1" job.out
}
eventually 60 said 'worker [02] \(rank [13] on host .*\) has waited [0-9]+ s for worker 1 \(rank 2 on host' ||
    job_fail "the lead does not say who waits for whom"

# Of all processes of the job: user and system time, in ticks of 10 ms.
ticks()
{
    for pid in $(pgrep -s "$job"); do
        sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 12,13 | sed "s/^/$pid /"
    done
}
ticks >before
sleep 3 # this is what is measured: three seconds of waiting
ticks >after
python3 - "$(getconf CLK_TCK)" <<'PYTHON' || job_fail "a process that waits uses the processor: $(cat before after)"
import sys
def read(name):
    with open(name) as file:
        return {int(pid): int(user) + int(system) for pid, user, system in map(str.split, file)}
before, after = read("before"), read("after")
most = 0.01 * 3 * int(sys.argv[1])
assert set(before) == set(after) and len(before) == 5, (before, after)
used = {pid: after[pid] - before[pid] for pid in before}
print(used)
sys.exit(0 if max(used.values()) <= most + 1 else 1)
PYTHON
kill -CONT "$slow"
job_clock $(($(grep -c . job.json) + 1))
kill -INT "$job"
job_end 130
