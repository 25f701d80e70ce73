# Peers that have the key and break every rule, against a node that has joined a job and waits for the others: it knows no roster
# yet. Who has no seat is cut off or not heard; nobody crashes or grows; and when the others have come the job ends with the right result.
# And processes with the longest names and addresses, whom a lead tells of that waits for others.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning, hash come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
. "$(dirname "$0")/lib_hostile.sh"
: "${RUBATO_HOSTILE:?the path of cluster_hostile}"
job_data
"$RUBATO" key new job.key >/dev/null
frames=10000
[ "$RUBATO_SANITIZED" -eq 0 ] || frames=3000
lead_at=unix:@rubato-waiting-$$

job_local 2 --sync bsp --clocks 20
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 2 --servers 1 --listen "$lead_at" --key job.key --sync bsp --clocks 20 \
    --join-timeout 600 --json job.json

node()
{
    "$RUBATO" node --join "$lead_at" --key job.key --rank "$1" >"node-$1" 2>&1 &
    eval "node_$1=$!"
}
has_joined()
{
    "$RUBATO" top "$lead_at" --key job.key --once --json - | grep -q '"state":"joined"'
}
node 2
eventually 60 has_joined || job_fail "rank 2 does not join"
# shellcheck disable=SC2154 # set by node
node_at=$(address_of "$node_2")
before="$(memory_of "$job") $(memory_of "$node_2")"
for rank in 0 1 2 3; do # who claims a rank is not heard before the roster is known; that must not end the wait
    "$RUBATO_HOSTILE" iam job.key "$node_at" "$rank" >"iam-$rank" 2>&1 &
done
"$RUBATO_HOSTILE" strangers job.key "$node_at" "$frames" 1 >at-node 2>&1 || job_fail "the node is gone: $(cat at-node node-2)"
"$RUBATO_HOSTILE" strangers job.key "$lead_at" "$frames" 2 >at-lead 2>&1 || job_fail "the lead is gone: $(cat at-lead)"
cat at-node at-lead
nobody_grew "$before" "$(memory_of "$job") $(memory_of "$node_2")"

node 1
node 3
job_end 0
for rank in 1 2 3; do
    eval "wait \$node_$rank" || fail "rank $rank: $(cat node-*)"
done
[ "$(job_hash job.json)" = "$hash" ] || job_fail "the result is another one"
nobody_crashed waiting
! grep -E 'Sanitizer|runtime error|ssertion' node-* >&2 || fail "a node crashed"

# Whoever has a seat is told of by its host and address, however long they are; what is no address takes none.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 12 --servers 1 --listen "$lead_at" --key job.key --clocks 1 --join-timeout 6
eventually 60 "$RUBATO" top "$lead_at" --key job.key --once --json - || job_fail "the lead does not listen"
"$RUBATO_HOSTILE" crowd job.key "$lead_at" 112,112,112,12,112,159,113 || job_fail "no crowd"
job_end 4
job_says "5 of 13 processes have joined"
job_says "may not join: what it advertises is no address"
nobody_crashed crowd
