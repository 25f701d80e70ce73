# Under BSP one process, the simulator and several processes give the same bits: 1 to 8 workers, 1 to 4 servers, in
# processes of their own or in the workers', with shared memory and without. Every rule keeps its guarantees under SSP and ASP.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

workers="1 2 4 8"
servers="1 2 3 4"
[ "$RUBATO_SANITIZED" -eq 0 ] || { workers="2 4" && servers="1 3"; }
for w in $workers; do
    job_local "$w" --sync bsp --servers 1 --clocks 12
    for p in $servers; do
        # shellcheck disable=SC2086 # options
        expect 0 train $learning --runtime sim --workers "$w" --servers "$p" --sync bsp --clocks 12 --json sim.json --quiet
        [ "$(job_hash sim.json)" = "$hash" ] || fail "the simulator with $w workers and $p servers gives something else"
        for colocate in on off; do
            for shm in on off; do
                # shellcheck disable=SC2086 # options
                expect 0 launch --local "$w" --servers "$p" --colocate "$colocate" -- train $learning --sync bsp \
                    --clocks 12 --shm "$shm" --json c.json
                job_clean "$err"
                [ "$(job_hash c.json)" = "$hash" ] ||
                    fail "$w worker processes, $p servers, --colocate $colocate --shm $shm give something else"
            done
        done
    done
done

# Two workers in a process, and a lead that works: as under srun.
job_local 4 --sync bsp --servers 2 --clocks 12
# shellcheck disable=SC2086 # options
expect 0 launch --local 2 --servers 2 -- train $learning --per-process 2 --sync bsp --clocks 12 --json c.json
[ "$(job_hash c.json)" = "$hash" ] || fail "two workers in each process give something else"

rules="sum con dyn adagrad adarev momentum"
[ "$RUBATO_SANITIZED" -eq 0 ] || rules="con dyn"
for rule in $rules; do
    for sync in "ssp --staleness 0" "ssp --staleness 3" asp; do
        # shellcheck disable=SC2086 # options
        expect 0 launch --local 4 --servers 2 -- train $learning --sync $sync --rule "$rule" --clocks 60 --verify \
            --json c.json
        job_clean "$err"
        check c.json 'last["event"] == "done" and last["loss"] < 0.69 and last["updates"] == 240'
    done
done
