# Training without servers: a process holds connections to its neighbours and the lead alone, also after losses; and when the lead is
# killed the peers go on to their last iteration, say so, and each process saves its model.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data
"$RUBATO" key new job.key >/dev/null
lead_at=unix:@rubato-peers-$$

# A lead by hand that does not work, and peers.
start()
{
    peers=$1
    shift
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" train $learning --runtime cluster --workers "$peers" --listen "$lead_at" --key job.key --eval-every 10 \
        --json job.json "$@"
    for rank in $(seq "$peers"); do
        "$RUBATO" node --join "$lead_at" --key job.key --rank "$rank" >"node-$rank" 2>&1 &
        eval "node_$rank=$!"
    done
    job_clock 2
}

sockets()
{
    find "/proc/$1/fd" -lname 'socket:*' | wc -l
}

has_sockets()
{
    [ "$(sockets "$1")" -eq "$2" ]
}

node_end()
{
    eval "pid=\$node_$1"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq "$2" ] || fail "rank $1 ended with $code, expected $2: $(cat node-*)"
    job_clean "node-$1"
}

# In a ring of six everybody has two neighbours; one who is lost is bridged.
start 6 --sync hop --graph ring --clocks 100000000
for rank in 1 2 3 4 5 6; do
    eval "pid=\$node_$rank"
    eventually 30 has_sockets "$pid" 4 || job_fail "rank $rank has $(sockets "$pid") sockets, not: listening, lead, two neighbours"
done
kill -9 "$node_3"
eventually 60 grep -q "the others go on without it" job.out || job_fail "a loss is not told"
for rank in 2 4; do
    eval "pid=\$node_$rank"
    eventually 30 has_sockets "$pid" 4 || job_fail "after a loss rank $rank has $(sockets "$pid") sockets"
done
kill -INT "$job"
job_end 130

# The lead is killed. A peer that is killed after that is bridged by its neighbours on their own.
clocks=10000
[ "$RUBATO_SANITIZED" -eq 0 ] || clocks=4000
for sync in "hop --graph ring" "hop --graph complete --max-gap 4 --backup 1"; do
    # shellcheck disable=SC2086 # options
    start 4 --sync $sync --clocks "$clocks" --out model.rbt
    kill -9 "$job"
    wait "$job" || :
    last=4
    if [ "$sync" = "hop --graph ring" ]; then
        last=3
        kill -9 "$node_4"
    fi
    for rank in $(seq "$last"); do
        node_end "$rank" 0
        grep -q "goes on to its last iteration without it" "node-$rank" || fail "rank $rank does not say that the lead is gone"
        grep -q "written to model.rbt.rank$rank" "node-$rank" || fail "rank $rank does not say where its model is"
        expect 0 eval --model "model.rbt.rank$rank" --data d.svm
    done
    [ "$last" -eq 4 ] || grep -q "rank 4 on host .* this process goes on without it" node-1 node-3 || fail "a loss without a lead is not told"
    rm -f model.rbt.*
done
# Everybody ends with the same bits under all-reduce, as on one machine.
start 4 --sync allreduce --clocks 4000 --out model.rbt
kill -9 "$job"
wait "$job" || :
for rank in 1 2 3 4; do
    node_end "$rank" 0
    cmp model.rbt.rank1 "model.rbt.rank$rank" || fail "all-reduce: rank $rank has another model"
done
# shellcheck disable=SC2086 # options
"$RUBATO" train $learning --workers 4 --sync allreduce --clocks 4000 --out local.rbt --quiet
cmp local.rbt model.rbt.rank1 || fail "all-reduce without a lead ended elsewhere than on one machine"

# Everybody needs everybody there: who is lost without a lead ends the job, with a sentence.
start 3 --sync allreduce --clocks 100000000 --out model.rbt
kill -9 "$job"
wait "$job" || :
eventually 30 grep -q "without it" node-1 || fail "rank 1 does not say that the lead is gone"
kill -9 "$node_2"
node_end 1 7
node_end 3 7
grep -q "all-reduce needs every worker" node-1 node-3 || fail "no reason: $(cat node-1 node-3)"

# Without --out there is nothing to save to.
start 2 --sync hop --clocks $((clocks * 4))
kill -9 "$job"
wait "$job" || :
node_end 1 7
grep -q "give --out FILE" node-1 || fail "the remedy is not told: $(cat node-1)"
node_end 2 7

# A launcher that is killed: its processes go on, too, and end by themselves.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 -- train $learning --sync hop --clocks "$clocks" --eval-every 10 --json job.json --out model.rbt
job_clock 2
kill -9 "$job"
wait "$job" || :
eventually 120 job_is_gone "$job" || job_fail "processes are left"
[ "$(grep -c "goes on to its last iteration without it" job.out)" -eq 3 ] || job_fail "not every process says once that the lead is gone"
for rank in 1 2 3; do
    expect 0 eval --model "model.rbt.rank$rank" --data d.svm
done
