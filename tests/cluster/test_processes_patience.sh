# Before the start a job waits for whoever lives, for as long as it takes, and says every 5 s for whom; a process that falls silent ends
# it with the join time-out's code, at whatever point that is. Afterwards it is waited for, and named: a server as well as a worker, and a
# worker that was lost and is to come back.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data
name=unix:@rubato-patience-$$

joined()
{
    "$RUBATO" top "$name" --once --json - | grep -q "\"rank\":$1,[^}]*\"state\":\"joined\""
}
said()
{
    grep -qF -- "$1" job.out
}

# Rank 1 has joined and hangs when the last one comes.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 2 --servers 1 --listen "$name" --join-timeout 10 --clocks 20
for rank in 1 2 3; do
    [ "$rank" -ne 3 ] || kill -STOP "$node_1"
    "$RUBATO" node --join "$name" --rank "$rank" >"node-$rank" 2>&1 &
    eval "node_$rank=$!"
    [ "$rank" -eq 3 ] || eventually 60 joined "$rank" || job_fail "rank $rank does not join"
done
job_end 4
job_says "share their data; waiting for rank 1 on host $(hostname) (silent for"
job_says "rank 1 on host $(hostname) (process $node_1) joined and has said nothing for 10 s"
! grep "waiting for rank 2" job.out || job_fail "rank 2 waits itself, and nobody for it"
kill -CONT "$node_1"
for rank in 1 2 3; do
    eval "pid=\$node_$rank"
    ! wait "$pid" || fail "rank $rank of a job that did not come about ends with 0"
done
grep -q "rank 1 on host .* has said nothing" node-2 node-3 || fail "the others do not say why: $(cat node-2 node-3)"

# The lead itself hangs: who has joined says so, and gives it up.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 1 --servers 1 --listen "$name" --join-timeout 60 --clocks 20
"$RUBATO" node --join "$name" --rank 1 --join-timeout 8 >node-1 2>&1 &
node_1=$!
eventually 60 joined 1 || job_fail "rank 1 does not join"
kill -STOP "$job"
wait "$node_1" && status=0 || status=$?
[ "$status" -eq 4 ] || fail "a process whose lead hangs ends with $status: $(cat node-1)"
grep -q "waiting for the lead at $name, silent for 5 s" node-1 || fail "nobody says that the lead hangs: $(cat node-1)"
grep -q "the lead at $name has said nothing for 8 s" node-1 || fail "it does not say why it ends: $(cat node-1)"
kill -CONT "$job"
job_end 7
job_says "was lost before the job started"

# Rank 2 reads for longer than the join time-out: it is named, and waited for.
cp d.svm own.0.svm
cp d.svm own.2.svm
mkfifo own.1.svm
sharing="lr --data own.{rank}.svm --lr 0.1 --batch 10 --batches-per-clock 1"
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 --servers 1 --join-timeout 2 -- train $sharing --clocks 20
exec 9>own.1.svm # opens when rank 2 does
eventually 60 said "waiting for rank 2 on host" || job_fail "nobody says who is waited for"
cat d.svm >&9
exec 9>&-
job_end 0

# The same, and it hangs meanwhile.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 --servers 1 --join-timeout 2 -- train $sharing --clocks 20
exec 9>own.1.svm
job_kill STOP 2
job_end 4
exec 9>&-
job_says "rank 2 on host $(hostname)"
job_says "has said nothing for 2 s"

# A server hangs while the workers wait for it.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 2 --servers 1 -- train $learning --sync bsp --clocks 100000000 --eval-every 100 --json job.json
job_clock 2
job_kill STOP 3
eventually 60 said " s for server 0 (rank 3 on host $(hostname)), whose process is silent" || job_fail "nobody says that a server hangs"
job_kill CONT 3
kill -INT "$job"
job_end 130

# A worker was lost, and is to come back.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 2 --servers 1 --listen "$name" --on-worker-loss wait --sync bsp \
    --clocks 100000000 --eval-every 100 --json job.json
for rank in 1 2 3; do
    "$RUBATO" node --join "$name" --rank "$rank" >"node-$rank" 2>&1 &
    eval "node_$rank=$!"
done
job_clock 2
kill -9 "$node_1"
eventually 60 said "the job waits for rank 1 on host $(hostname), which was lost" || job_fail "nobody says who is to come back"
expect 0 top "$name" --once
prints "away"
prints "for worker 0"
kill -INT "$job"
job_end 130
wait

# One that a launcher has started and that does not join is named with its host.
cat >slow-rsh <<'RSH'
#!/bin/sh
[ "$1" != 127.0.0.2 ] || exec sleep 600
shift
exec sh -c "$*"
RSH
chmod +x slow-rsh
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --hosts 127.0.0.1,127.0.0.2 --servers 1 --rsh ./slow-rsh --join-timeout 7 -- train $learning --clocks 20
job_end 4
job_says "2 of 3 processes have joined; missing: rank 2 on host 127.0.0.2;"
job_says "1 of 3 processes have not joined within 7 s: rank 2 on host 127.0.0.2;"
