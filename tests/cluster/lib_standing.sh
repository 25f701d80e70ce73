# shellcheck shell=sh
# Processes that believe to be the ranks of a Slurm step on this host; sourced behind lib_jobs.sh.
#
#   ranks_start N COMMAND...   starts ranks 0 to N - 1, each in a session of its own; rank 0 is $job, with its output in job.out and
#                              job.err, the others write to rank-R
#   rank_kill SIGNAL R         sends rank R a signal
#   rank_end R CODE            waits for rank R; fails unless it ends with that code

ranks=
# shellcheck disable=SC2154 # job, work come from there
trap 'for pid in $job $ranks; do pkill -KILL -s "$pid" || :; done; rm -rf "$work"' EXIT

ranks_start()
{
    ranks_size=$1
    shift
    export SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS="$ranks_size" SLURM_STEP_NODELIST=here \
        SLURM_STEP_TASKS_PER_NODE="$ranks_size" SLURMD_NODENAME=here
    ranks=
    for r in $(seq $((ranks_size - 1))); do
        SLURM_PROCID=$r setsid "$@" >"rank-$r" 2>&1 </dev/null &
        ranks="$ranks $!"
        eval "rank_$r=$!"
    done
    export SLURM_PROCID=0
    job_start "$@"
    # shellcheck disable=SC2034 # for rank_kill
    rank_0=$job
}

rank_kill()
{
    eval "kill -$1 \$rank_$2" || job_fail "rank $2 does not run: $(cat rank-*)"
}

rank_end()
{
    code=0
    eval "wait \$rank_$1" || code=$?
    [ "$code" -eq "$2" ] || job_fail "rank $1 ended with $code, expected $2: $(cat rank-*)"
    job_clean "rank-$1"
}
