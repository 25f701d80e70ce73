# Peers that have the key and break every rule, against a live job of 3 workers and 1 server: 10,000 mutated frames at each
# role from callers without a seat, and members of the job that go mad. The job ends with the right result, or the hostile
# connection is cut off with a sentence; nobody crashes, hangs or grows.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning, hash come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
. "$(dirname "$0")/lib_hostile.sh"
: "${RUBATO_HOSTILE:?the path of cluster_hostile}"
job_data
"$RUBATO" key new job.key >/dev/null
frames=10000

# --- callers without a seat. The job is held up until all have been attacked.
lr=$learning
learning=$holding
job_local 3 --sync bsp --servers 1 --clocks 12000
job_hold
# shellcheck disable=SC2086 # options
job_start timeout -k 1 200 "$RUBATO" launch --local 3 --servers 1 --listen 127.0.0.1:0 --key job.key -- train $learning --sync bsp \
    --clocks 12000 --json job.json
job_clock
job=$(pgrep -P "$job")
tcp=$(sed -n 's/^ *watch *rubato top \([^ ]*\) .*/\1/p' job.out)
worker=$(job_rank 1)
server=$(job_rank 4)
lead_at=$(address_of "$job")
worker_at=$(address_of "$worker")
server_at=$(address_of "$server")
before="$(memory_of "$job") $(memory_of "$worker") $(memory_of "$server")"

attackers=
attack()
{
    "$RUBATO_HOSTILE" "$@" >>attack.log 2>&1 &
    attackers="$attackers $!"
}
attack strangers job.key "$lead_at" "$frames" 1
attack strangers job.key "$tcp" 1000 2
attack strangers job.key "$worker_at" "$frames" 3
attack strangers job.key "$server_at" "$frames" 4
attack silent job.key "$lead_at" 40
attack silent job.key "$worker_at" 40
attack silent job.key "$server_at" 40
for pid in $attackers; do
    wait "$pid" || job_fail "an attack ended badly: $(cat attack.log)"
done
"$RUBATO_HOSTILE" hello job.key "$lead_at" 9 | grep -q "sorry: the job has started" || job_fail "a seat that is none"
"$RUBATO_HOSTILE" hello job.key "$tcp" 3 | grep -q "sorry: the job has started" || job_fail "a seat that is taken"
attackers=
for at in "$lead_at" "$worker_at" "$server_at"; do
    { [ "$("$RUBATO_HOSTILE" iam job.key "$at" 2)" = "cut off" ]; } &
    attackers="$attackers $!"
done
for pid in $attackers; do
    wait "$pid" || job_fail "somebody listens to somebody else's voice"
done
nobody_grew "$before" "$(memory_of "$job") $(memory_of "$worker") $(memory_of "$server")"

# and while it runs, as long as it does
job_release
attackers=
for at in "$lead_at" "$worker_at" "$server_at"; do
    attack strangers job.key "$at" 2000 5
done
for pid in $attackers; do
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 3 ] || job_fail "an attack on the running job ended with $code: $(cat attack.log)"
done
code=0
wait || code=$?
eventually 60 grep -q '"event":"done"' job.json || job_fail "the job does not end"
eventually 10 job_is_gone "$job" || job_fail "processes are left"
[ "$(job_hash job.json)" = "$hash" ] || job_fail "the result is another one"
job_says "was cut off"
nobody_crashed strangers

# --- a member of the job goes mad: rank 2 is started by this remote shell
cat >shell <<SHELL
#!/bin/sh
case \$2 in *" --rank 2 "*)
    join=\${2#*--join }
    exec "$RUBATO_HOSTILE" \$(cat act) job.key "\${join%% *}" 2 \$(cat style)
esac
exec sh -c "\$2"
SHELL
chmod +x shell
learning=$lr
job_local 3 --sync bsp --servers 1 --clocks 100

# Runs a job with a mad member; sets $job_code. It may end in any way, but it ends.
go_mad()
{
    mad=$*
    echo "$1" >act
    echo "$2 $3" >style
    sync=$4
    shift 4
    rm -f job.json
    job_code=0
    # shellcheck disable=SC2086 # options
    timeout -k 1 60 "$RUBATO" launch --hosts a:3 --rsh ./shell --servers 1 --listen 127.0.0.1:0 --key job.key -- train $learning \
        --sync $sync "$@" --clocks 100 --json job.json >job.out 2>job.err </dev/null || job_code=$?
    [ "$job_code" -lt 124 ] || fail "$mad: the job hangs or crashed: $(cat job.out job.err)"
    nobody_crashed "$mad"
}

# what is refused and does no harm: the result stays right, whatever a mad worker says beside its work
for style in clock parts pulls past repeat; do
    go_mad mad "$style" 1 bsp
    [ "$job_code" -eq 0 ] || fail "$style: ended with $job_code: $(cat job.err)"
    [ "$(job_hash job.json)" = "$hash" ] || fail "$style: the result is another one: $(cat job.out job.err)"
done

# what gets it cut off: with a sentence, and the job goes on without it or ends
seeds="1 2 3"
[ "$RUBATO_SANITIZED" -eq 0 ] || seeds=1
for style in name life node kind neighbour word ready swap control any; do
    for seed in $seeds; do
        for sync in bsp "ssp --rule dyn"; do
            go_mad mad "$style" "$seed" "$sync"
            cat job.out job.err | grep -qE "cut off|gone:|rank 2" || fail "$style $seed: no sentence: $(cat job.out job.err)"
        done
    done
done

# somebody on another host wants a missing process's seat and says no address: it is refused at once, and the seat stays empty
go_mad hello x 1 bsp --join-timeout 3
[ "$job_code" -eq 4 ] || fail "a process without an address was asked to join, and the job ended with $job_code"
grep -q "on host nowhere may not join: it is on another host and says no address" job.out job.err || fail "no word of the one that was refused: $(cat job.out job.err)"
