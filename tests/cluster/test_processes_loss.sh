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
says "there is no such rank in this job"
kill -INT "$job"
job_end 130
