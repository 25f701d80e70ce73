# Under a real Slurm every process knows its rank and finds rank 0: across nodes, on one node, in a batch job with steps of
# its own; and what srun has not started says so.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_slurm.sh"
rig_private "$@"
rig_hosts n1 n2 n3
rig_slurm n1 n2 n3

[ "$(srun -N2 -n4 hostname | sort | uniq | tr '\n' ' ')" = "n1 n2 " ] || fail "srun does not use two nodes"
srun -N3 -n5 sh -c 'echo $SLURM_PROCID $SLURM_STEP_NODELIST $SLURM_STEP_TASKS_PER_NODE' | sort >"$rig/variables.log"
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
