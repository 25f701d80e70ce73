# The lead's own host takes part beside others: its processes are reached by those of other hosts, whether it is called
# localhost, by a name that leads to loopback, or joined by hand; where no address can be known, that is said at once.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts a b
cd "$rig"
job_data
"$RUBATO" key new job.key >/dev/null
job_local 2 --sync bsp --clocks 40

launch()
{
    hosts=$1
    shift
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --hosts "$hosts" --rsh "$rig/rsh" --join-timeout 10 --servers 2 "$@" -- \
        train $learning --sync bsp --clocks 40 --json job.json
    job_end 0
    [ "$(job_hash job.json)" = "$hash" ] || job_fail "$hosts $*: another result than in one process"
}

# localhost first, last, with and without encryption, listening on one address, and restarted.
launch localhost,a
launch a,localhost --colocate on
launch localhost,a --insecure
launch localhost,a --listen 10.77.0.254:0
lr=$learning
learning=$holding
job_local 2 --sync bsp --clocks 60
job_hold
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --hosts localhost,a --rsh "$rig/rsh" --join-timeout 50 -- train $learning --sync bsp --clocks 60 \
    --on-worker-loss wait --json job.json
job_clock 2
pgrep -P "$job" -f -- "--join-timeout 50" >/dev/null || job_fail "the processes are not told the join time-out"
job_kill KILL 1
job_release
job_end 0
[ "$(job_hash job.json)" = "$hash" ] || job_fail "a process of this host that came back changes the result"
learning=$lr
job_local 2 --sync bsp --clocks 40

# This host's own name leads to loopback, as Debian writes it into /etc/hosts; the remote shell leads back here.
cp hosts far-hosts
sed 's/^10.77.0.254 login$/127.0.1.1 login/' far-hosts >hosts # in place: it is mounted
cat >here-rsh <<RSH
#!/bin/sh
[ "\$1" != login ] || { shift && exec sh -c "\$*"; }
exec "$rig/rsh" "\$@"
RSH
chmod +x here-rsh
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --hosts login,a --rsh "$rig/here-rsh" --join-timeout 10 -- train $learning --sync bsp \
    --clocks 40 --json job.json
job_end 0
[ "$(job_hash job.json)" = "$hash" ] || job_fail "a name of this host: another result than in one process"

# By hand. One that comes over loopback listens there alone: --advertise helps, and is named at once, whoever comes first.
by_hand()
{
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" train $learning --runtime cluster --workers 2 --colocate on --listen :7470 --key job.key \
        --join-timeout 30 --sync bsp --clocks 40 --json job.json
}
by_hand
on a "$RUBATO" node --join 10.77.0.254:7470 --rank 2 --key job.key >far.log 2>&1 &
far=$!
eventually 20 grep -q "here: rank 2 on host a" job.out job.err || job_fail "the far one does not join"
code=0
"$RUBATO" node --join login:7470 --key job.key >near.log 2>&1 || code=$?
[ "$code" -eq 2 ] || job_fail "one that listens on loopback beside other hosts: exit code $code"
grep -q 'there are processes on other hosts; start it with --advertise ADDRESS' near.log || fail "no remedy"
"$RUBATO" node --join login:7470 --key job.key --advertise 10.77.0.254 >near.log 2>&1 || fail "--advertise does not help"
wait "$far" || fail "the process on the other host ended with $?"
job_end 0
[ "$(job_hash job.json)" = "$hash" ] || job_fail "by hand: another result than in one process"

by_hand
"$RUBATO" node --join 127.0.0.1:7470 --key job.key >near.log 2>&1 &
near=$!
eventually 20 grep -q "here: rank 1 on host login" job.out job.err || job_fail "the near one does not join"
on a "$RUBATO" node --join 10.77.0.254:7470 --key job.key >far.log 2>&1 || :
job_end 4
wait "$near" || :
job_says "rank 1 on host login cannot take part: it is on the lead's host and listens for that host alone"
job_says "--advertise ADDRESS"

# The lead's name is not known yet: it is looked up until it is, or until the time is over.
code=0
"$RUBATO" node --join later:7470 --key job.key --join-timeout 1 >near.log 2>&1 || code=$?
[ "$code" -eq 4 ] || fail "a name that nobody knows: exit code $code"
grep -q "the lead at later:7470 has not been found within 1 s: the host 'later' cannot be looked up" near.log || fail "no word of the name"
by_hand
on a "$RUBATO" node --join later:7470 --key job.key >far.log 2>&1 &
far=$!
eventually 20 grep -q "'later' cannot be looked up.*; trying again for 60 s" far.log || job_fail "no word of the name"
code=0
on b "$RUBATO" node --join 10.77.0.254 --key job.key --insecure >near.log 2>&1 || code=$?
[ "$code" -eq 1 ] || job_fail "an unencrypted connection: exit code $code"
grep -q "refused us: this process wanted an unencrypted connection" near.log || job_fail "it is not told why"
echo '10.77.0.254 later' >>hosts
on b "$RUBATO" node --join later:7470 --key job.key >near.log 2>&1 || job_fail "the name is known: exit code $?"
wait "$far" || fail "a name that became known: exit code $?"
job_end 0
job_says "was refused: it wanted an unencrypted connection"

# Ranks that a starter has put on the lead's host know that there are other hosts: nothing has to be said.
rank()
{
    number=$1
    shift
    # shellcheck disable=SC2086 # options
    "$@" env SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID="$number" SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NODELIST=login,a \
        SLURM_STEP_TASKS_PER_NODE=2,1 "$RUBATO" train $learning --runtime cluster --colocate off --key job.key \
        --join-timeout 20 --sync bsp --clocks 40 --json job.json
}
cat >far-sh <<FAR
#!/bin/sh
mount --bind "$rig/far-hosts" /etc/hosts
exec "\$@"
FAR
rank 1 >near.log 2>&1 &
near=$!
rank 2 on a unshare --mount sh "$rig/far-sh" >far.log 2>&1 &
far=$!
rank 0 >slurm.log 2>&1 || fail "ranks of Slurm on a host whose name leads to loopback: exit code $?"
wait "$near" || fail "rank 1 ended with $?"
wait "$far" || fail "rank 2 ended with $?"
[ "$(job_hash job.json)" = "$hash" ] || fail "ranks of Slurm: another result than in one process"
