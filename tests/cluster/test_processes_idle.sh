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

# Of all processes of the job: nanoseconds on a processor, of each thread. (Ticks would count a whole one for whoever happens to be
# awake at the tick, however shortly.)
spent()
{
    for pid in $(pgrep -s "$job"); do
        cat "/proc/$pid/task/"*/schedstat | sed "s/^/$pid /"
    done
}
# Three seconds of waiting. A machine that is slow for a moment may charge them for it: then it is measured again.
quiet()
{
    spent >before
    sleep 3
    spent >after
    python3 - <<'PYTHON'
import collections, sys
def read(name):
    sums = collections.Counter()
    with open(name) as file:
        for line in file:
            sums[int(line.split()[0])] += int(line.split()[1])
    return sums
before, after = read("before"), read("after")
assert set(before) == set(after) and len(before) == 5, (before, after)
used = {pid: (after[pid] - before[pid]) / 1e9 for pid in before}
print(used)
sys.exit(0 if max(used.values()) <= 0.01 * 3 else 1)
PYTHON
}
quiet || quiet || quiet || quiet || job_fail "a process that waits uses the processor: $(cat before after)"
kill -CONT "$slow"
job_clock $(($(grep -c . job.json) + 1))
kill -INT "$job"
job_end 130
