# Processes that were started as srun starts them, on this host: a signal that reaches all of them ends the job with the result so far;
# when rank 0 is killed or stopped, which says nothing then, the others do.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
. "$(dirname "$0")/lib_standing.sh"
job_data

start()
{
    rm -f model.rbt*
    # shellcheck disable=SC2086 # options
    ranks_start 3 $through "$RUBATO" train $learning --runtime cluster --eval-every 100 --json job.json --out model.rbt "$@"
    job_clock 2
}

# Without an end of its own within this test.
endless()
{
    start --clocks 100000000
}
through=

for signal in HUP TERM; do
    endless
    for rank in 1 2 0; do
        rank_kill "$signal" "$rank"
    done
    job_end 130
    [ -s model.rbt ] || job_fail "there is no model after SIG$signal"
    rank_end 1 0
    rank_end 2 0
    [ -z "$(cat rank-1 rank-2)" ] || fail "they say what the lead says: $(cat rank-*)"
done

# Under nohup SIGHUP is ignored, by all.
through="nohup"
endless
through=
for rank in 1 2 0; do
    rank_kill HUP "$rank"
done
job_clock 3
rank_kill INT 0
job_end 130
rank_end 1 0
rank_end 2 0

# Rank 0 is killed: each of the others says so, and ends; without servers it goes on, and says where its model is.
endless
rank_kill KILL 0
job_end 137
for rank in 1 2; do
    rank_end "$rank" 7
    grep -q "^rubato train: rank $rank: the lead on host .* is gone: .*was rank 0 killed" "rank-$rank" || fail "rank $rank: $(cat rank-*)"
    [ "$(wc -l <"rank-$rank")" -eq 1 ] || fail "rank $rank says more than that: $(cat "rank-$rank")"
done
clocks=10000
[ "$RUBATO_SANITIZED" -eq 0 ] || clocks=4000
start --sync hop --clocks "$clocks"
rank_kill KILL 0
job_end 137
for rank in 1 2; do
    rank_end "$rank" 0
    grep -q "^rubato train: rank $rank: the lead .* goes on to its last iteration without it" "rank-$rank" || fail "rank $rank: $(cat rank-*)"
    grep -q "^rubato train: rank $rank: its own model is written to model.rbt.rank$rank" "rank-$rank" || fail "rank $rank: $(cat rank-*)"
    expect 0 eval --model "model.rbt.rank$rank" --data d.svm
done

# What ends the job after that has nobody else to tell it, either.
start --sync allreduce --clocks 100000000
rank_kill KILL 0
job_end 137
for rank in 1 2; do
    rank_end "$rank" 7
    grep -q "^rubato train: rank $rank: the lead .* all-reduce needs every worker" "rank-$rank" || fail "rank $rank: $(cat rank-*)"
done

# A lead that says why the job ends is not repeated.
start --clocks 100000000 --on-worker-loss stop
rank_kill KILL 2
job_end 7
rank_end 2 137
rank_end 1 7
[ ! -s rank-1 ] || fail "rank 1 says what the lead says: $(cat rank-1)"
