# shellcheck shell=sh
# Jobs of several processes; sourced behind ../cli/lib.sh or lib_netns.sh, whose `fail` it uses.
#
#   job_data                      makes d.svm and sets $learning, options under which every runtime does the same work, and $holding,
#                                 the same with a model that can be held up (slow.c)
#   job_hold                      jobs that train $holding stop at their 30th clock ...
#   job_release                   ... until now
#   job_local W ARGUMENTS...      trains with W workers in one process; sets $hash
#   job_start COMMAND...          in the background, in a session of its own, output in job.out and job.err; sets $job
#   job_clock [N]                 waits until its job.json has N clocks (1; 1 is enough while it is held)
#   job_rank N                    prints the process id of the rank that the launcher $job has started
#   job_kill SIGNAL N             sends it a signal
#   job_end CODE                  waits for the end; fails unless it ends with that code and nobody of its session is left
#   job_clean FILE                fails if a sanitizer has said something there, of whatever process
#   job_says TEXT                 it has said so, on its standard output or error
#   job_hash FILE                 prints the param_hash in FILE
#   eventually N COMMAND...       tries until it succeeds, at most N seconds

# Nothing is left behind when a test fails; processes of lib_netns.sh end with it anyway.
job=
if [ -n "${work:-}" ]; then
    trap '[ -z "$job" ] || pkill -KILL -s "$job" || :; rm -rf "$work"' EXIT
fi

job_data()
{
    "$RUBATO" gen lr --out d.svm --rows 400 --cols 50 --nnz 8 --seed 3 || fail "no data"
    steps="--data d.svm --lr 0.1 --batch 10 --batches-per-clock 1"
    learning="lr $steps"
    # shellcheck disable=SC2034 # for the tests
    holding="${RUBATO_SLOW:-} $steps --eval-every 10"
}

job_hold()
{
    : >held
}

job_release()
{
    rm held
}

eventually()
{
    tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.05
    done
}

job_hash()
{
    sed -n 's/.*"event":"done".*"param_hash":"\([0-9a-f]*\)".*/\1/p' "$1"
}

job_local()
{
    job_workers=$1
    shift
    # shellcheck disable=SC2086 # options
    "$RUBATO" train $learning --workers "$job_workers" --json local.json --quiet "$@" || fail "local $*"
    # shellcheck disable=SC2034 # for the tests
    hash=$(job_hash local.json)
}

job_start()
{
    rm -f job.json
    setsid "$@" >job.out 2>job.err </dev/null &
    job=$!
}

job_has_clocks()
{
    enough=$1
    [ ! -e held ] || enough=1 # on a busy machine a held job looks once, at its 30th clock, instead of every tenth
    ! kill -0 "$job" 2>/dev/null || [ "$(grep -c '"event":"clock"' job.json 2>/dev/null)" -ge "$enough" ]
}

job_clock()
{
    eventually 120 job_has_clocks "${1:-1}" || job_fail "the job does not come to its clock ${1:-1}"
    kill -0 "$job" || job_fail "the job has ended before its clock ${1:-1}"
}

job_rank()
{
    pgrep -P "$job" -f -- "--rank $1 "
}

job_kill()
{
    kill "-$1" "$(job_rank "$2")" || job_fail "rank $2 does not run"
}

job_is_gone()
{
    ! pgrep -s "$1"
}

job_fail()
{
    tail -n 60 job.out job.err >&2 || :
    pgrep -l -s "$job" >&2 || :
    fail "$@"
}

job_end()
{
    job_code=0
    wait "$job" || job_code=$?
    [ "$job_code" -eq "$1" ] || job_fail "the job ended with $job_code, expected $1"
    eventually 10 job_is_gone "$job" || job_fail "processes are left"
    job_clean job.err
}

job_clean()
{
    ! grep -q 'Sanitizer' "$1" || job_fail "a sanitizer has found something: $(cat "$1")"
}

job_says()
{
    cat job.out job.err | grep -qF -- "$1" || job_fail "the job does not say: $1"
}
