# shellcheck shell=sh
# shellcheck disable=SC2154 # rig: lib_netns.sh
# A real Slurm on the hosts of lib_netns.sh: one slurmctld on "login", one slurmd on each host, a munged for all.
#
#   rig_slurm n1 n2 n3      starts it; afterwards srun, sbatch and sinfo work, with 8 processors on each host
#
# Its files are in $rig/slurm, its logs in $rig/*.log. It ends with the namespaces.

rig_slurm()
{
    rig_need munged slurmctld slurmd srun sinfo
    [ "$(cat /proc/self/setgroups 2>/dev/null)" != deny ] || skip "Slurm's daemons need to be root"
    slurm=$rig/slurm
    mkdir -m 755 "$slurm" "$slurm/spool" "$slurm/socket"
    mkdir -m 700 "$slurm/state" "$slurm/munge"
    chmod 755 "$rig"
    head -c 64 /dev/urandom >"$slurm/munge/key"
    chmod 400 "$slurm/munge/key"
    munged --foreground --force --num-threads=2 --key-file="$slurm/munge/key" --socket="$slurm/socket/munge" \
        --pid-file="$slurm/munge/pid" --seed-file="$slurm/munge/seed" >"$rig/munged.log" 2>&1 &
    rig_slurm_write "$@"
    SLURM_CONF=$slurm/slurm.conf
    export SLURM_CONF
    rig_until 20 test -S "$slurm/socket/munge" || fail "munged does not start"
    slurmctld -D -c >"$rig/slurmctld.log" 2>&1 &
    for host in "$@"; do
        on "$host" slurmd -D -N "$host" >"$rig/slurmd-$host.log" 2>&1 &
    done
    rig_until 60 rig_slurm_idle $# || fail "Slurm's $# nodes do not become idle"
}

rig_slurm_idle()
{
    [ "$(sinfo --noheader --states=idle --format=%D)" = "$1" ]
}

# Neither cgroups nor accounting: this is about starting processes.
rig_slurm_write()
{
    printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=%s/cgroup\n' "$slurm" >"$slurm/cgroup.conf"
    cat >"$slurm/slurm.conf" <<CONF
ClusterName=rig
SlurmctldHost=login(10.77.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/socket/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
KillWait=2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
    for host in "$@"; do
        mkdir "$slurm/spool/$host"
        echo "NodeName=$host NodeAddr=$host CPUs=8 State=UNKNOWN" >>"$slurm/slurm.conf"
    done
}
