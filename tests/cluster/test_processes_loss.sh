# Whoever is killed, whenever: the job goes on, stops or waits as it was told to, says so, ends with the right code and leaves
# nobody behind; so does Ctrl-C.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

# Without an end of its own within this test.
endless()
{
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --local 3 --servers 1 -- train $learning --clocks 100000000 --eval-every 100 --json job.json "$@"
    job_clock 2
}

for sync in bsp "ssp --staleness 2" asp; do
    # shellcheck disable=SC2086 # options
    endless --sync $sync --on-worker-loss stop
    job_kill 9 2
    job_end 7
    job_says "rank 2 on host"
    job_says "the job ends, as --on-worker-loss stop says"
done

# Nobody can take over what a method's worker has made of its rows: the job ends, or goes on with the rest if it was told to.
"$RUBATO" gen ratings --out r.txt --users 60 --items 40 --rows 1000 --seed 3 || fail "no ratings"
for loss in auto continue; do
    job_start "$RUBATO" launch --local 3 --servers 1 -- train mf --data r.txt --rank 8 --epochs 1000000 --sync bsp --eval-every 100 \
        --json job.json --on-worker-loss "$loss"
    job_clock 2
    job_kill 9 2
    if [ "$loss" = auto ]; then
        job_end 7
        job_says "nobody can take over its part of the data"
    else
        eventually 60 grep -q "nobody can take over its part of the data" job.out job.err || job_fail "a loss is not told"
        job_clock $(($(grep -c . job.json) + 1))
        kill -INT "$job"
        job_end 130
    fi
    ! grep -q "take over its rows" job.out job.err || job_fail "nobody takes over rows of a method"
done

# All workers, one after the other.
endless --sync bsp
for rank in 1 2 3; do
    job_kill 9 "$rank"
done
job_end 7
job_says "no worker is left"

# A server.
endless --sync ssp
job_kill 9 4
job_end 7
job_says "it held parameters, so the job ends"

# The lead: its processes end by themselves.
endless --sync ssp
kill -9 "$job"
job_end 137

# Ctrl-C, also while somebody hangs, and before the job has begun.
endless --sync ssp
kill -INT "$job"
job_end 130
endless --sync bsp
job_kill STOP 2
kill -TERM "$job"
job_end 130
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --listen "unix:@rubato-test-$$" --workers 2
expect 2 node --join "unix:@rubato-test-$$" --rank 7 # it listens
says "there is no rank 7 to join in this job, only 1 to 3"
kill -INT "$job"
job_end 130

# Between joining and the start: rank 2 has joined and reads its rows from a pipe, the others wait for it to share theirs. Whoever is
# lost now, and whatever is to be done about losses: the job ends with a sentence.
for worker in 0 2; do
    cp d.svm "own.$worker.svm"
done
mkfifo own.1.svm
# Kills a rank whose death the launcher sees after the lead has lost it: until then it is traced, where that is allowed.
kill_traced()
{
    python3 - "$(job_rank "$1")" <<'PYTHON' || job_fail "rank $1 does not run"
import ctypes, os, signal, sys, time
pid = int(sys.argv[1])
traced = ctypes.CDLL(None).ptrace(0x4206, pid, None, None) == 0 # PTRACE_SEIZE
os.kill(pid, signal.SIGKILL)
for _ in range(1200 if traced else 0):
    with open("job.err") as said:
        if "was lost before the job started" in said.read():
            break
    time.sleep(0.05)
PYTHON
}
sharing="lr --data own.{rank}.svm --lr 0.1 --batch 10 --batches-per-clock 1"
for loss in "2 continue" "2 wait" "1 stop" "4 continue"; do
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --local 3 --servers 1 -- train $sharing --clocks 100 --on-worker-loss "${loss#* }"
    exec 9>own.1.svm # opens when rank 2 does
    kill_traced "${loss% *}"
    job_end 7
    exec 9>&-
    job_says "rank ${loss% *} on host"
    job_says "was lost before the job started"
    job_says "(rank ${loss% *}) (pid"
    job_says "on this host was killed by signal 9 (Killed)"
done
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 --servers 1 -- train $sharing --clocks 100
exec 9>own.1.svm
kill -9 "$job"
job_end 137
exec 9>&-

# A guarantee that is verified is not broken by a loss.
for sync in bsp "ssp --staleness 2"; do
    job_hold
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --local 3 --servers 2 -- train $holding --clocks 60 --json job.json --verify --sync $sync
    job_clock 2
    job_kill 9 2
    job_release
    job_end 0
    job_says "the others go on without it"
done

# A process that cannot be started again, however often, is given up, and that is said.
cat >once-rsh <<'RSH'
#!/bin/sh
shift
mkdir worker 2>/dev/null || mkdir server 2>/dev/null || exit 1
exec sh -c "$*"
RSH
chmod +x once-rsh
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --hosts 127.0.0.1 --servers 1 --rsh ./once-rsh -- train $learning --clocks 100000000 \
    --eval-every 100 --json job.json --on-worker-loss wait
job_clock 2
job_kill 9 1
eventually 60 grep -q "(rank 1) has been started again 100 times and is not any more" job.err || job_fail "it is not said that it is given up"
kill -INT "$job"
job_end 130
