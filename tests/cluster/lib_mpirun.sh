# shellcheck shell=sh
# shellcheck disable=SC2154 # rig: lib_netns.sh
# Open MPI's mpirun and MPICH's mpiexec on the hosts of lib_netns.sh.
#
#   rig_mpirun OPTIONS... COMMAND...    as mpirun: rig_mpirun --host a:1,b:2 -n 3 hostname
#   rig_mpiexec OPTIONS... COMMAND...   as mpiexec: rig_mpiexec -hosts a,b -n 3 hostname
#
# Both start processes on other hosts through $rig/rsh. They run where this script runs, on "login"; to run them on a host
# that takes part: rig_mpi_on=a, before.

rig_mpi_on=
rig_mpi_from()
{
    if [ -n "$rig_mpi_on" ]; then
        on "$rig_mpi_on" "$@"
    else
        "$@"
    fi
}

rig_mpirun()
{
    rig_need mpirun.openmpi
    rig_mpi_from env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun.openmpi --oversubscribe \
        --mca plm_rsh_agent "$rig/rsh" "$@"
}

rig_mpiexec()
{
    rig_need mpiexec.hydra
    rig_mpi_from mpiexec.hydra -launcher rsh -launcher-exec "$rig/rsh" "$@"
}
