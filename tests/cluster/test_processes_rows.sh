# The rows of a worker that is lost are taken over by the others, all of them and each by one; so are those that it had taken over
# itself.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

# How many rows of worker $1 have been taken over by the ranks $2 (a pattern), as the lead has been told.
taken()
{
    sum=0
    for n in $(sed -n "s/.*rank \($2\) on host [^:]*: took over \([0-9]*\) rows of worker $1\$/\2/p" job.out job.err); do
        sum=$((sum + n))
    done
    echo "$sum"
}

has_taken()
{
    [ "$(taken "$1" "$2")" -eq "$3" ]
}

# 400 rows, a hundred each.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 4 --servers 1 -- train $learning --sync ssp --clocks 100000000 --eval-every 100 --json job.json
job_clock 2
job_kill 9 1
eventually 60 has_taken 0 '[234]' 100 || job_fail "the rows of worker 0 are not taken over: $(taken 0 '[234]')"
first=$(taken 0 '[34]')
job_kill 9 2
eventually 60 has_taken 1 '[34]' 100 || job_fail "the rows of worker 1 are not taken over: $(taken 1 '[34]')"
eventually 60 has_taken 0 '[34]' 100 || job_fail "what worker 1 had taken over is not handed on: $(taken 0 '[34]') of 100, $first before"
job_kill 9 3
for worker in 0 1 2; do
    eventually 60 has_taken "$worker" 4 100 || job_fail "the last one has $(taken "$worker" 4) rows of worker $worker"
done
kill -INT "$job"
job_end 130

# Of a process with several workers all is taken over at once: whoever does reads the data once for it, not once per worker.
job_start "$RUBATO" launch --local 3 --servers 1 -- train "$RUBATO_SLOW" --data d.svm --lr 0.001 --sync ssp --workers 6 --per-process 2 \
    --clocks 100000000 --eval-every 100 --json job.json
job_clock 2
before=$(wc -c <prepared)
job_kill 9 1
for worker in 0 1; do
    eventually 60 has_taken "$worker" '[23]' 67 || job_fail "$(taken "$worker" '[23]') rows of worker $worker are taken over"
done
kill -INT "$job"
job_end 130
[ "$(wc -c <prepared)" -eq $((before + 2)) ] || job_fail "two processes have read the data $(($(wc -c <prepared) - before)) times"

# A lead that works itself reads once more, too. The job ends when it is told to, even if what is read never comes.
cp d.svm e.svm
# shellcheck disable=SC2016 # the inner shell expands these
job_start sh -c '
for rank in 2 1 0; do
    env SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NODELIST="$(hostname)" \
        SLURM_STEP_TASKS_PER_NODE=3 "$0" train lr --data e.svm --lr 0.1 --batch 10 --batches-per-clock 1 --runtime cluster \
        --servers 1 --sync ssp --clocks 100000000 --eval-every 100 --json job.json --out lead.rbt &
    echo $! >pid.$rank
done
wait $!' "$RUBATO"
job_clock 2
rm e.svm
mkfifo e.svm
kill -9 "$(cat pid.2)"
eventually 60 grep -q 'the others with workers take over its rows' job.out job.err || job_fail 'nobody takes over'
kill -INT "$(cat pid.0)"
job_end 130
[ -s lead.rbt ] || job_fail 'the job ended without its result'
