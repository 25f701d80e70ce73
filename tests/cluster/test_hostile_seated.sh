# Processes of a live job that break every rule, behind the handshake: three take the seats of workers that the job waits for and
# send mutated frames, 10,000 to each role (lead, worker, server), coming back whenever they are cut off. Nobody crashes or grows;
# and when honest processes take the seats the job ends with the right result.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning, hash come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
. "$(dirname "$0")/lib_hostile.sh"
: "${RUBATO_HOSTILE:?the path of cluster_hostile}"
job_data
"$RUBATO" key new job.key >/dev/null
frames=10000
[ "$RUBATO_SANITIZED" -eq 0 ] || frames=${RBT_HOSTILE_FRAMES:-3000} # by hand: all of them
lead_at=unix:@rubato-seated-$$

learning=$holding
job_local 4 --sync bsp --clocks 60
job_hold
# shellcheck disable=SC2086 # options
job_start timeout -k 1 600 "$RUBATO" train $learning --runtime cluster --workers 4 --servers 1 --colocate off --listen "$lead_at" \
    --key job.key --sync bsp --clocks 60 --on-worker-loss wait --json job.json

node()
{
    "$RUBATO" node --join "$lead_at" --key job.key --rank "$1" >>node.log 2>&1 &
    eval "node_$1=$!"
}
for rank in 1 2 3 4 5; do
    node "$rank"
done
job_clock 2
# shellcheck disable=SC2154 # set by node
kill -9 "$node_2" "$node_3" "$node_4"
job_release
lead=$(pgrep -P "$job")
# shellcheck disable=SC2154 # set by node
worker_at=$(address_of "$node_1") server_at=$(address_of "$node_5")
before="$(memory_of "$lead") $(memory_of "$node_1") $(memory_of "$node_5")"

"$RUBATO_HOSTILE" seated job.key "$lead_at" 2 lead "$frames" 1 >at-lead 2>&1 &
one=$!
"$RUBATO_HOSTILE" seated job.key "$lead_at" 3 "$worker_at" "$frames" 2 >at-worker 2>&1 &
two=$!
"$RUBATO_HOSTILE" seated job.key "$lead_at" 4 "$server_at" "$frames" 3 >at-server 2>&1 &
for pid in "$one" "$two" "$!"; do
    wait "$pid" || job_fail "an attack ended badly: $(cat at-lead at-worker at-server)"
done
cat at-lead at-worker at-server
nobody_grew "$before" "$(memory_of "$lead") $(memory_of "$node_1") $(memory_of "$node_5")"
kill -0 "$lead" "$node_1" "$node_5" || job_fail "somebody of the job has ended"

# One asks and asks and does not read: the server answers until its queue is full, keeps some of what it asks beside, and cuts it off.
before=$(memory_of "$node_5")
"$RUBATO_HOSTILE" deaf job.key "$lead_at" 4 "$server_at" 3000000 >deaf || job_fail "who does not read is served: $(cat deaf)"
cat deaf
after=$(memory_of "$node_5")
echo "the server had $before kB, then $after kB"
[ "$RUBATO_SANITIZED" -ne 0 ] || [ $((after - before)) -lt 250000 ] || job_fail "the server grew from $before to $after kB"
eventually 5 grep -q "does not read" job.out job.err || job_fail "no word of the one that does not read"

for rank in 2 3 4; do
    node "$rank"
done
job_end 0
for rank in 1 2 3 4 5; do
    eval "wait \$node_$rank" || fail "rank $rank: $(cat node.log)"
done
[ "$(job_hash job.json)" = "$hash" ] || job_fail "the result is another one"
job_says "was cut off"
nobody_crashed seated
! grep -E 'Sanitizer|runtime error|ssertion' node.log >&2 || fail "a process of the job crashed"
