# shellcheck shell=sh
# Helpers of the command-line tests: sourced by each test_*.sh. Needs $RUBATO, the path of the command.
#
#   expect CODE ARGUMENTS...   runs rubato; fails unless it ends with that code. Output in $out and $err (files).
#   says TEXT                  the last command's standard error contains TEXT (on one line)
#   prints TEXT                the last command's standard output contains TEXT
#   check FILE EXPRESSION      python: EXPRESSION is true of `lines`, the JSON objects of FILE

set -eu

: "${RUBATO:?set RUBATO to the path of the command}"
case $RUBATO in
/*) ;;
*) RUBATO=$PWD/$RUBATO ;;
esac

# shellcheck disable=SC2034 # for the tests
started=$PWD # where a relative $0 is from
work=$(mktemp -d "${TMPDIR:-/tmp}/rubato-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work"
out=$work/.out
err=$work/.err

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    printf -- '--- standard output\n' >&2
    head -n 40 "$out" >&2 || :
    printf -- '--- standard error\n' >&2
    head -n 40 "$err" >&2 || :
    exit 1
}

expect()
{
    wanted=$1
    shift
    code=0
    "$RUBATO" "$@" >"$out" 2>"$err" </dev/null || code=$?
    [ "$code" -eq "$wanted" ] || fail "rubato $*: exit code $code, expected $wanted"
}

says()
{
    grep -qF -- "$1" "$err" || fail "the standard error does not say: $1"
}

prints()
{
    grep -qF -- "$1" "$out" || fail "the standard output does not say: $1"
}

check()
{
    python3 - "$1" "$2" <<'PYTHON' || fail "$1: not true: $2"
import json, math, re, sys
with open(sys.argv[1]) as file:
    lines = [json.loads(line) for line in file]
first, last = lines[0], lines[-1]
def events(name):
    return [line for line in lines if line["event"] == name]
sys.exit(0 if eval(sys.argv[2]) else 1)
PYTHON
}

# A small data set that every test can train on in a moment.
small_data()
{
    "$RUBATO" gen lr --out data.svm --rows 400 --cols 50 --nnz 8 --seed 3
}
