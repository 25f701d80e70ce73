# Under a real mpirun every process knows its rank and finds rank 0: on one host, on several of which mpirun's is one, and
# on several of which it is none. Jobs give what one process gives.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_mpirun.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_need mpirun.openmpi
rig_hosts n01 n02 n03 other

agree()
{
    [ "$(cut -d ' ' -f 2 "$1" | sort -n | tr '\n' ' ')" = "$2" ] || fail "$1: the ranks are not $2"
    [ "$(sed 's/.* port=/port=/' "$1" | sort -u | wc -l)" -eq 1 ] || fail "$1: not one port and job"
}

rig_mpirun -n 3 "$RUBATO_STANDING" >"$rig/one.log" || fail "one host"
agree "$rig/one.log" "0/3 1/3 2/3 "
[ "$(grep -c '^mpirun .* here=login met=here ' "$rig/one.log")" -eq 2 ] || fail "not all have met rank 0 here"

rig_mpirun --host n02:1,n01:2,other:1 -n 4 "$RUBATO_STANDING" >"$rig/apart.log" || fail "mpirun apart"
agree "$rig/apart.log" "0/4 1/4 2/4 3/4 "
grep -q '^mpirun 0/4 here=n02 ' "$rig/apart.log" || fail "rank 0 is not on the first host"
[ "$(grep -c -e ' met=n02 ' -e ' met=10.77.0.2 ' "$rig/apart.log")" -eq 3 ] || fail "not all have met rank 0 on n02"

rig_mpi_on=n03
rig_mpirun --host n03:1,n01:2 -n 3 "$RUBATO_STANDING" >"$rig/part.log" || fail "mpirun takes part"
agree "$rig/part.log" "0/3 1/3 2/3 "
[ "$(grep -c -e ' met=n03 ' -e ' met=10.77.0.3 ' "$rig/part.log")" -eq 2 ] || fail "not all have met rank 0 on n03"

# A job gives what one process gives.
cd "$rig"
job_data
"$RUBATO" key new "$rig/job.key" >/dev/null
rig_mpi_on=
job_local 4 --sync bsp --servers 2 --clocks 30
# shellcheck disable=SC2086 # options
rig_mpirun --host n02:1,n01:2,other:1 -n 4 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 \
    --key "$rig/job.key" --json "$rig/mpi.json" >"$rig/job.log" 2>&1 || fail "a job across hosts"
[ "$(job_hash "$rig/mpi.json")" = "$hash" ] || fail "four processes on three hosts do not give what one process gives"
[ "$(grep -c '^rubato train$' "$rig/job.log")" -eq 1 ] || fail "more than one rank prints"
rig_mpi_on=n03
# shellcheck disable=SC2086 # options
rig_mpirun --host n03:2,n01:2 -n 4 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 \
    --insecure --json "$rig/mpi.json" >"$rig/job.log" 2>&1 || fail "an insecure job across hosts"
[ "$(job_hash "$rig/mpi.json")" = "$hash" ] || fail "without encryption the result is another"
rig_mpi_on=
# shellcheck disable=SC2086 # options
rig_mpirun -n 4 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 --json "$rig/mpi.json" \
    >"$rig/job.log" 2>&1 || fail "a job on one host, without a key"
[ "$(job_hash "$rig/mpi.json")" = "$hash" ] || fail "four processes on one host do not give what one process gives"
code=0
# shellcheck disable=SC2086 # options
rig_mpirun --host n01:1,n02:1 -n 2 "$RUBATO" train $learning --runtime cluster >"$rig/job.log" 2>&1 || code=$?
[ "$code" -eq 2 ] || fail "a job across hosts without a key ends with $code"
grep -q 'this job spans several hosts and has no key' "$rig/job.log" || fail "it does not say that a key is missing"
