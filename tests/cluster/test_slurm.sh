# Under a real Slurm every process knows its rank and finds rank 0: across nodes, on one node, in a batch job with steps of
# its own; and what srun has not started says so. Jobs give what one process gives, whatever happens ends at all ranks.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_slurm.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts n1 n2 n3
rig_slurm n1 n2 n3

[ "$(srun -N2 -n4 hostname | sort | uniq | tr '\n' ' ')" = "n1 n2 " ] || fail "srun does not use two nodes"
srun -N3 -n5 sh -c 'echo "$SLURM_PROCID $SLURM_STEP_NODELIST $SLURM_STEP_TASKS_PER_NODE"' | sort >"$rig/variables.log"
[ "$(head -n 1 "$rig/variables.log")" = '0 n[1-3] 3,1(x2)' ] || fail "Slurm's variables look different"

# All agree: so many processes, ranks 0 to N - 1, one port, one job's name.
agree()
{
    [ "$(cut -d ' ' -f 2 "$1" | sort -n | tr '\n' ' ')" = "$2" ] || fail "$1: the ranks are not $2"
    [ "$(sed 's/.* port=/port=/' "$1" | sort -u | wc -l)" -eq 1 ] || fail "$1: not one port and job"
}
srun -N3 -n5 "$RUBATO_STANDING" >"$rig/several.log" || fail "several nodes"
agree "$rig/several.log" "0/5 1/5 2/5 3/5 4/5 "
[ "$(grep -c 'met=n1 ' "$rig/several.log")" -eq 4 ] || fail "not all have met rank 0 on n1"
grep -q '^slurm 4/5 here=n3 ' "$rig/several.log" || fail "rank 4 is not on n3"

srun -N2 -n4 --distribution=cyclic --nodelist=n2,n3 "$RUBATO_STANDING" >"$rig/cyclic.log" || fail "cyclic"
agree "$rig/cyclic.log" "0/4 1/4 2/4 3/4 "
[ "$(grep -c 'met=n2 ' "$rig/cyclic.log")" -eq 3 ] || fail "not all have met rank 0 on n2"

srun -N1 -n3 "$RUBATO_STANDING" >"$rig/one.log" || fail "one node"
agree "$rig/one.log" "0/3 1/3 2/3 "
[ "$(grep -c 'met=here ' "$rig/one.log")" -eq 2 ] || fail "not all have met rank 0 on their own node"

srun --mpi=pmi2 -N2 -n2 "$RUBATO_STANDING" >"$rig/pmi2.log" || fail "with PMI-2 beside it"
agree "$rig/pmi2.log" "0/2 1/2 "

# Two steps of one batch job at a time: each its own port. The batch script itself is not a process of a step.
cat >"$rig/batch" <<BATCH
#!/bin/sh
srun --exact -N2 -n3 "$RUBATO_STANDING" >"$rig/first.log" &
srun --exact -N2 -n3 "$RUBATO_STANDING" >"$rig/second.log" &
wait
"$RUBATO_STANDING" 2>"$rig/outside.log"
BATCH
sbatch --wait -N2 -n6 --output="$rig/batch.log" "$rig/batch" >/dev/null || :
agree "$rig/first.log" "0/3 1/3 2/3 "
agree "$rig/second.log" "0/3 1/3 2/3 "
[ "$(sed 's/.* port=//' "$rig/first.log" "$rig/second.log" | sort -u | wc -l)" -eq 2 ] || fail "the steps share a port"
grep -q 'put srun before the command' "$rig/outside.log" || fail "outside of a step it does not say what is wrong"

# A job gives what one process gives.
cd "$rig"
job_data
"$RUBATO" key new "$rig/job.key" >/dev/null
job_local 4 --sync bsp --servers 2 --clocks 30
# shellcheck disable=SC2086 # options
srun -N2 -n4 "$RUBATO" train $learning --runtime cluster --servers 2 --sync bsp --clocks 30 --key "$rig/job.key" \
    --json "$rig/slurm.json" >"$rig/slurm.log" 2>&1 || fail "a job across nodes"
[ "$(job_hash "$rig/slurm.json")" = "$hash" ] || fail "four processes on two nodes do not give what one process gives"
[ "$(grep -c '^rubato train$' "$rig/slurm.log")" -eq 1 ] || fail "more than one rank prints"
# shellcheck disable=SC2086 # options
srun -N1 -n6 "$RUBATO" train $learning --runtime cluster --servers 2 --colocate off --sync bsp --clocks 30 \
    --json "$rig/slurm.json" >"$rig/slurm.log" 2>&1 || fail "a job on one node, without a key"
[ "$(job_hash "$rig/slurm.json")" = "$hash" ] || fail "servers in processes of their own change the result"

# srun tells the highest exit code; each rank must have one.
codes()
{
    : >"$rig/codes"
    # shellcheck disable=SC2016,SC2086 # in the ranks' shell; options
    srun -N2 -n4 sh -c 'code=0; "$@" || code=$?; echo "$code" >>"$0"; exit "$code"' "$rig/codes" "$RUBATO" train \
        $learning --runtime cluster --key "$rig/job.key" "$@" >"$rig/slurm.log" 2>&1 || :
    sort "$rig/codes" | uniq -c | tr -s ' ' | tr '\n' ' '
}
[ "$(codes --workers 3)" = " 4 2 " ] || fail "workers that do not fit"
grep -q 'need 3 processes, and there are 4; give --workers 4' "$rig/slurm.log" || fail "the numbers are not told"
[ "$(codes --valid nowhere.svm)" = " 4 1 " ] || fail "data that is not there"
