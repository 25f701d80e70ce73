# Two hosts lose each other while both still reach the lead: who needs neither is not disturbed; otherwise the lead cuts one of
# them off, a worker's rather than a server's, tells everybody, and the job goes on, stops or waits as it was told to.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/lib_netns.sh"
. "$(dirname "$0")/lib_jobs.sh"
rig_private "$@"
rig_hosts a b c
cd "$rig"
job_data

# A worker on each of the three, and a server on a.
launch()
{
    job_hold
    job_start timeout -k 1 120 "$RUBATO" launch --hosts a,b,c --rsh "$rig/rsh" "$@" --json job.json
    job_clock 2
}

learning=$holding
job_local 3 --sync bsp --clocks 60

# Two hosts with workers alone have nothing to say to each other.
# shellcheck disable=SC2086 # options
launch --servers 1 --colocate off -- train $learning --sync bsp --clocks 60
rig_apart b c
sleep 6 # twice the time in which a silent host is noticed
job_release
job_end 0
rig_together b c
[ "$(job_hash job.json)" = "$hash" ] || job_fail "two hosts that do not need each other disturbed the job"

# A worker's host and the server's.
for loss in continue stop wait; do
    # shellcheck disable=SC2086 # options
    launch --servers 1 --colocate off -- train $learning --sync bsp --clocks 60 --on-worker-loss "$loss"
    rig_apart a c
    eventually 60 grep -q "rank 3 on host c was lost" job.out job.err || job_fail "nobody was cut off"
    job_release
    case $loss in
    continue)
        job_end 0
        ;;
    stop)
        job_end 7
        job_says "the job ends, as --on-worker-loss stop says"
        ;;
    wait)
        rig_together a c
        job_end 0
        [ "$(job_hash job.json)" = "$hash" ] || job_fail "a worker that was cut off and came back changed the result"
        ;;
    esac
    job_says "lost each other"
    [ "$loss" = wait ] || rig_together a c
done

# Both hold parameters: there is nobody to do without.
# shellcheck disable=SC2086 # options
launch --servers 3 --colocate on -- train $learning --sync bsp --clocks 60
rig_apart a b
job_end 7
job_says "lost each other"
job_says "it held parameters, so the job ends"
rig_together a b

# Two peers that are neighbours.
# shellcheck disable=SC2086 # options
launch -- train $learning --sync hop --graph ring --clocks 60
rig_apart a b
eventually 60 grep -q "rank 2 on host b was lost" job.out job.err || job_fail "nobody was cut off"
job_release
job_end 0
job_says "lost each other"
