# Processes that were started as srun starts them, on this host: a signal that reaches all of them ends the job with the result so far.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
. "$(dirname "$0")/lib_standing.sh"
job_data

# Without an end of its own within this test.
endless()
{
    rm -f model.rbt*
    # shellcheck disable=SC2086 # options
    ranks_start 3 "$@" "$RUBATO" train $learning --runtime cluster --clocks 100000000 --eval-every 100 --json job.json --out model.rbt
    job_clock 2
}

for signal in HUP TERM; do
    endless env
    for rank in 1 2 0; do
        rank_kill "$signal" "$rank"
    done
    job_end 130
    [ -s model.rbt ] || job_fail "there is no model after SIG$signal"
    rank_end 1 0
    rank_end 2 0
    [ ! -s rank-1 ] && [ ! -s rank-2 ] || fail "they say what the lead says: $(cat rank-*)"
done

# Under nohup SIGHUP is ignored, by all.
endless nohup
for rank in 1 2 0; do
    rank_kill HUP "$rank"
done
job_clock 3
rank_kill INT 0
job_end 130
rank_end 1 0
rank_end 2 0
