#!/bin/sh
# A job whose report cannot be written ends: quietly with 141 when nobody reads the standard output any more, with 1 and the
# reason when a disk is full or a pipe's reader has gone; on every runtime. Without that these jobs would take days.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
head_of() # WHAT..., into a reader that goes away after a line
{
    {
        code=0
        "$RUBATO" "$@" 2>"$err" || code=$?
        echo "$code" >code
    } | head -n 1 >first
    [ "$(cat code)" -eq 141 ] || fail "rubato $* | head: exit code $(cat code), expected 141"
    [ -s first ] || fail "rubato $* | head: not a line"
    ! grep -q 'annot' "$err" || fail "rubato $* | head: not quiet"
}
forever='--data data.svm --lr 1 --clocks 1e9 --workers 2'
for how in '--sync hogwild' '--sync ssp' '--sync hop' '--runtime sim --sync bsp' '--runtime sim --sync hop'; do
    # shellcheck disable=SC2086
    head_of train lr $forever $how --json - --out kept.rbt
    [ -s kept.rbt ] || fail "$how: the model so far was not kept"
    rm kept.rbt
done
head_of train kmeans --data data.svm --clusters 3 --workers 2 --clocks 1e6 --json -
# shellcheck disable=SC2086
head_of launch --local 2 -- train lr $forever --sync bsp --json -
# a result of 20 workers is long: more than a pipe holds, so that all of them can only be written to somebody who reads
# shellcheck disable=SC2046
head_of compare lr --data data.svm --lr 1 --clocks 1 --workers 20 --runtime sim --protocols "bsp$(printf ',ssp:%d' $(seq 1 60))" --json -

# a pipe that is no standard output, and a full disk
mkfifo pipe
head -n 1 pipe >first &
# shellcheck disable=SC2086
expect 1 train lr $forever --sync ssp --json pipe
says 'cannot write --json pipe: Broken pipe'
if [ -c /dev/full ]; then
    # shellcheck disable=SC2086
    expect 1 train lr $forever --sync ssp --json /dev/full
    says 'cannot write --json /dev/full: No space left on device'
    # shellcheck disable=SC2086
    expect 1 launch --local 2 -- train lr $forever --sync bsp --json /dev/full
    says 'cannot write --json /dev/full: No space left on device'
    expect 1 compare lr --data data.svm --lr 1 --clocks 1 --workers 2 --runtime sim --protocols bsp,ssp,asp --json /dev/full
    says 'cannot write --json /dev/full: No space left on device'
fi

# what people read is a report, too; that the write failed a while ago makes no difference
code=0
{ "$RUBATO" train lr --data data.svm --lr 0.1 --sync bsp --workers 2 --clocks 300 2>"$err" || code=$?; echo $code >code; } | sed -n 1q
[ "$(cat code)" -eq 141 ] || fail "rubato train | sed 1q: exit code $(cat code), expected 141"
[ ! -s "$err" ] || fail 'rubato train | sed 1q: not quiet'

# predictions, too
"$RUBATO" gen lr --out many.svm --rows 60000 --cols 50 --nnz 8
expect 0 train lr --data data.svm --epochs 1 --quiet --out lr.rbt
head_of predict --model lr.rbt --data many.svm --as score --out -
