# A process that is stopped while more waits for it than its connection takes is waited for, as long as it takes: its host answers. When its
# host is gone, too, it is lost. Rank 0 has the server; rank 1, on another host, goes on sending to it.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_need ss awk
rig_private "$@"
rig_hosts a b
cd "$rig"
"$RUBATO" key new job.key >/dev/null
"$RUBATO" gen lr --out d.svm --rows 400 --cols 4000000 --nnz 4000 --seed 3

rank()
{
    on "$2" env SLURM_JOB_ID=1 SLURM_STEP_ID=0 SLURM_PROCID="$1" SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=a,b SLURM_STEP_TASKS_PER_NODE="1(x2)" \
        sh -c "echo \$\$ >pid-$1; exec \"$RUBATO\" train lr --data d.svm --lr 0.1 --runtime cluster --servers 1 --key job.key --sync asp \
        --clocks 100000000 --eval-every 1 --json job.json" >"rank-$1.log" 2>&1 &
}

has_clocks()
{
    [ "$(grep -c '"event":"clock"' job.json 2>/dev/null)" -ge "$1" ]
}

# The connection of rank 1 to rank 0: does it wait with bytes that rank 0 does not take?
is_full()
{
    on b ss -tnH state established dst 10.77.0.1 | awk '$2 > 1000000 { full = 1 } END { exit !full }'
}

# Stops rank 0 while rank 1 sends to it. It may just have waited for an answer: then once more.
stop()
{
    tries=0
    kill -STOP "$(cat pid-0)"
    until is_full; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || fail "the connection does not become full"
        [ $((tries % 5)) -ne 0 ] || kill -CONT "$(cat pid-0)"
        sleep 0.1
        kill -STOP "$(cat pid-0)"
    done
    sleep 5 # so long it is stopped; this is what is tested
}

on a sh -c 'echo 4096 131072 262144 >/proc/sys/net/ipv4/tcp_rmem' || : # else it takes more tries
rank 0 a
rank 1 b
one=$!
eventually 120 has_clocks 2 || fail "the job does not begin"
for _ in 1 2; do
    stop
    before=$(grep -c '"event":"clock"' job.json)
    kill -CONT "$(cat pid-0)"
    eventually 120 has_clocks $((before + 3)) || fail "the job does not go on after its lead was stopped"
done
! grep -E "lost|gone|broke" ./*.log || fail "a process that was stopped is taken for lost"
stop
rig_link a down
code=0
wait "$one" || code=$?
[ "$code" -eq 7 ] || fail "rank 1 ends with $code"
grep -q "the lead on host a is gone" rank-1.log || fail "rank 1 does not say why"
