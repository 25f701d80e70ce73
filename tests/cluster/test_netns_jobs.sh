# Between hosts, encrypted or not, over slow and unequal links and links that fail for a second, a job gives what one process
# gives. A host that is gone for good is noticed; addresses that cannot work and missing keys are refused with the remedy.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts a b c d
cd "$rig"
job_data
"$RUBATO" key new job.key >/dev/null

launch()
{
    hosts=$1
    shift
    job_start "$RUBATO" launch --hosts "$hosts" --rsh "$rig/rsh" "$@" --json job.json
}

# Unequal links: each of the four hosts has its own speed.
rig_limit a 200mbit
rig_limit b 50mbit
rig_limit c 10mbit
job_local 5 --sync bsp --clocks 40
for security in "--key job.key" --insecure; do
    # shellcheck disable=SC2086 # options
    launch a,b:2,c,d --servers 3 $security -- train $learning --sync bsp --clocks 40
    job_end 0
    [ "$(job_hash job.json)" = "$hash" ] || job_fail "unequal links ($security) do not give what one process gives"
done
# shellcheck disable=SC2086 # options
launch a,b,c --servers 2 --colocate on -- train $learning --sync ssp --staleness 2 --rule dyn --clocks 40 --verify
job_end 0
rig_unlimit a
rig_unlimit b
rig_unlimit c

# A cable is pulled and put back: nothing is lost, nothing comes twice.
lr=$learning
learning=$holding
job_local 3 --sync bsp --clocks 60
job_hold
# shellcheck disable=SC2086 # options
launch a,b,c --servers 2 -- train $learning --sync bsp --clocks 60
job_clock 2
rig_link b down
job_release
sleep 1 # so long the link is down; this is what is tested
rig_link b up
job_end 0
[ "$(job_hash job.json)" = "$hash" ] || job_fail "a link that failed for a second has changed the result"

# A host is gone. Workers: the others go on, or stop. Servers: the job ends.
for loss in continue stop; do
    job_hold
    # shellcheck disable=SC2086 # options
    launch a,b,c --servers 1 --colocate off -- train $learning --sync bsp --clocks 60 --on-worker-loss "$loss"
    job_clock 2
    rig_link c down
    eventually 60 grep -q "rank 3 on host c was lost" job.out job.err || job_fail "nobody misses a host that is gone"
    job_release
    if [ "$loss" = continue ]; then
        job_end 0
    else
        job_end 7
        job_says "the job ends, as --on-worker-loss stop says"
    fi
    rig_link c up
done
learning=$lr
# shellcheck disable=SC2086 # options
launch a,b,c --servers 1 --colocate off -- train $learning --sync bsp --clocks 100000000 --eval-every 100
job_clock 2
rig_link a down
job_end 7
job_says "it held parameters, so the job ends"
rig_link a up

# An address that only its own host can reach; listening without a key; a port that is taken.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 1 --listen 10.77.0.254:7470 --key job.key --colocate on \
    --sync bsp --clocks 10 --json job.json
code=0
on b "$RUBATO" node --join login:7470 --key job.key --advertise 127.0.0.1:7471 >node.log 2>&1 || code=$?
[ "$code" -eq 2 ] || fail "an address that others cannot reach: exit code $code"
grep -q 'start it with --advertise ADDRESS' node.log || fail "the remedy is not told"
code=0
# shellcheck disable=SC2086 # options
"$RUBATO" train $learning --runtime cluster --workers 1 --listen 10.77.0.254:7470 --key job.key >taken.log 2>&1 || code=$?
[ "$code" -eq 1 ] || fail "a port that is taken: exit code $code"
grep -q 'another job may use this port' taken.log || fail "it is not told that the port is taken"
on b "$RUBATO" node --join login --key job.key >node.log 2>&1 || fail "a node by hand"
job_end 0
job_says "may not join: it advertises an address that only its own host can reach"
code=0
# shellcheck disable=SC2086 # options
"$RUBATO" train $learning --runtime cluster --workers 1 --listen :7470 >key.log 2>&1 || code=$?
[ "$code" -eq 2 ] || fail "listening without a key: exit code $code"
grep -q 'needs a key: make one with' key.log || fail "the remedy is not told"
