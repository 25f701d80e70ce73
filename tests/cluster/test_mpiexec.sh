# Under a real mpiexec of MPICH every process knows its rank and finds rank 0, which PMI tells; jobs give what one process gives.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_mpirun.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_need mpiexec.hydra
rig_hosts n1 n2 n3

agree()
{
    [ "$(cut -d ' ' -f 2 "$1" | sort -n | tr '\n' ' ')" = "$2" ] || fail "$1: the ranks are not $2"
    [ "$(sed 's/.* port=/port=/' "$1" | sort -u | wc -l)" -eq 1 ] || fail "$1: not one port and job"
}

rig_mpiexec -n 3 "$RUBATO_STANDING" >"$rig/one.log" || fail "one host"
agree "$rig/one.log" "0/3 1/3 2/3 "
[ "$(grep -c '^pmi .* here=login met=here ' "$rig/one.log")" -eq 2 ] || fail "not all have met rank 0 here"

rig_mpiexec -hosts n2,n1,n3 -n 3 "$RUBATO_STANDING" >"$rig/several.log" || fail "several hosts"
agree "$rig/several.log" "0/3 1/3 2/3 "
grep -q '^pmi 0/3 here=n2 ' "$rig/several.log" || fail "rank 0 is not on the first host"
# By its name or, where that was tried a moment before rank 0 listened, by its address.
[ "$(grep -c -e ' met=n2 ' -e ' met=10.77.0.2 ' "$rig/several.log")" -eq 2 ] || fail "not all have met rank 0 on n2"

# A job gives what one process gives.
cd "$rig"
job_data
"$RUBATO" key new "$rig/job.key" >/dev/null
job_local 3 --sync bsp --servers 2 --clocks 30
# shellcheck disable=SC2086 # options
rig_mpiexec -hosts n2,n1,n3 -n 3 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 \
    --key "$rig/job.key" --json "$rig/mpi.json" >"$rig/job.log" 2>&1 || fail "a job across hosts"
[ "$(job_hash "$rig/mpi.json")" = "$hash" ] || fail "three processes on three hosts do not give what one process gives"
# shellcheck disable=SC2086 # options
rig_mpiexec -n 3 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 --json "$rig/mpi.json" \
    >"$rig/job.log" 2>&1 || fail "a job on one host, without a key"
[ "$(job_hash "$rig/mpi.json")" = "$hash" ] || fail "three processes on one host do not give what one process gives"
