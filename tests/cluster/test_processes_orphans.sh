# A launcher that is told to end leaves nobody behind: also in a job without servers, whose peers would go on without it.
# shellcheck source-path=SCRIPTDIR
# shellcheck disable=SC2154 # job, learning come from there
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib_jobs.sh"
job_data

# "Other hosts" are sessions of their own here: no signal reaches them.
cat >shell <<'SHELL'
#!/bin/sh
setsid -w sh -c "$2"
SHELL
chmod +x shell
port=$((20000 + $$ % 10000))
launched()
{
    # shellcheck disable=SC2086 # options
    job_start "$RUBATO" launch "$@" -- train $learning --sync hop --clocks 100000000 --eval-every 10 --json job.json --out model.rbt
    job_clock 2
}
nobody_joins()
{
    ! pgrep -f -- "--join 127.0.0.1:$port"
}

# Ctrl-C twice, while somebody hangs: that it was wished is said, once, and nothing that reads like an accident.
wished()
{
    job_end 130
    [ "$(grep -c "told to end a second time: the job ends at once" job.err)" -eq 1 ] || job_fail "the wish is not told, or not once"
    ! grep -q "lost\|killed\|gone" job.out job.err || job_fail "what was wished reads like an accident"
}
launched --local 3
job_kill STOP 2
kill -INT "$job"
kill -TERM "$job" # not the same one again: two that wait are one
wished
# shellcheck disable=SC2086 # options
job_start "$RUBATO" launch --local 3 --servers 1 -- train $learning --sync bsp --clocks 100000000 --eval-every 10 --json job.json
job_clock 2
job_kill STOP 2
kill -INT "$job"
kill -TERM "$job"
wished

# A lead without a launcher.
# shellcheck disable=SC2086 # options
job_start "$RUBATO" train $learning --runtime cluster --workers 1 --sync bsp --clocks 100000000 --eval-every 10 --json job.json \
    --colocate on --listen "unix:@rubato-orphans-$$"
"$RUBATO" node --join "unix:@rubato-orphans-$$" --rank 1 >node 2>&1 &
node=$!
job_clock 2
kill -STOP "$node"
kill -INT "$job"
kill -TERM "$job"
wished
kill -CONT "$node"
wait "$node" && fail "a node whose lead is gone ends with 0"

# A terminal that is closed: the shell says so, and the system once more.
launched --local 3
kill -HUP "$job"
kill -HUP "$job" || : # it may have gone already
job_end 130
grep -q '"event":"done"' job.json || fail "a closed terminal leaves no result"

launched --hosts a:3 --rsh ./shell --listen "127.0.0.1:$port"
kill -INT "$job"
kill -TERM "$job" || :
job_end 130
eventually 10 nobody_joins || fail "processes are left: $(pgrep -a -f -- "--join 127.0.0.1:$port")"
