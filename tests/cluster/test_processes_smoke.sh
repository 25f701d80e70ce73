# Several processes on one host train to the bits of one process under BSP; a worker that is killed is done without, or
# comes back and the result is the same; nobody is left behind.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

job_local 3 --sync bsp --clocks 40
# shellcheck disable=SC2086 # options
expect 0 launch --local 3 --servers 2 -- train $learning --sync bsp --clocks 40 --json c.json
job_clean "$err"
[ "$(job_hash c.json)" = "$hash" ] || fail "three processes and two servers do not give what one process gives"
# shellcheck disable=SC2086 # options
expect 0 launch --local 3 --servers 1 -- train $learning --sync ssp --rule dyn --clocks 40 --verify
job_clean "$err"

# the clocks beside a loss are those of the parameters that have it, however seldom processes tell where they are
# shellcheck disable=SC2086 # options
expect 0 launch --local 3 --servers 2 -- train $learning --sync ssp --staleness 2 --clocks 1000 --eval-every 20 --json c.json
job_clean "$err"
check c.json 'len(events("clock")) > 20 and all(c["clock_max"] - c["clock_min"] <= 2 + 1 and
              c["clock_min"] * 3 <= c["updates"] <= (c["clock_max"] + 3) * 3 for c in events("clock"))'
check c.json 'events("clock")[-1]["clock_min"] == events("clock")[-1]["clock_max"] == 1000'
# shellcheck disable=SC2086 # options
expect 0 launch --local 3 -- train $learning --sync hop --clocks 1000 --eval-every 20 --json c.json
check c.json 'all(c["clock_min"] * 3 <= c["updates"] <= c["clock_max"] * 3 for c in events("clock"))'

# what one process alone can do is refused once, before anybody is started
for option in "--cache auto" "--store both" "--store disk"; do
    # shellcheck disable=SC2086 # options
    expect 2 launch --local 3 -- train $learning --clocks 5 $option
    says "$option makes no sense with --runtime cluster"
    [ "$(wc -l <"$err")" -eq 1 ] || fail "$option is refused more than once: $(cat "$err")"
done

# without shared memory: it goes on, and every process says so once; who wants nothing else is told why not
(
    ulimit -f 200
    # shellcheck disable=SC2086 # options
    expect 0 launch --local 3 --servers 2 -- train $learning --sync bsp --clocks 40 --json c.json
    [ "$(job_hash c.json)" = "$hash" ] || fail "without shared memory the result is another one"
    told=$(cat "$out" "$err" | grep -c "going on over Unix sockets alone") || :
    [ "$told" -ge 1 ] && [ "$told" -le 6 ] || fail "it is said $told times"
    # shellcheck disable=SC2086 # options
    expect 7 launch --local 2 --servers 1 -- train $learning --clocks 5 --shm on
    grep -q "shared memory cannot be had" "$out" "$err" || fail "no word of what is missing"
) || exit 1

# held where it is killed, so that the job is not over before
for loss in wait continue; do
    # shellcheck disable=SC2086 # options
    expect 0 train $holding --sync bsp --workers 3 --clocks 100 --json local.json --quiet
    job_hold
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch --local 3 --servers 1 -- train $holding --sync bsp --clocks 100 --json job.json \
        --on-worker-loss "$loss"
    job_clock 2
    job_kill 9 2
    job_release
    job_end 0
    job_says "rank 2 on host"
    [ "$loss" = wait ] || job_says "was lost"
    [ "$loss" = continue ] || job_says "is back"
    # also of its former life: rates are true
    [ "$loss" = continue ] || check job.json 'all(w["samples"] > 0.6 * 10 * w["clocks"] for w in last["workers"])'
    [ "$loss" = continue ] || [ "$(job_hash job.json)" = "$(job_hash local.json)" ] ||
        fail "a worker that came back has changed the result"
done
