#!/bin/sh
# What is larger than memory is converted to a cache and measured, with the bytes and the numbers of the whole.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

bounded=$OLDPWD/$(dirname "$0")/bounded.py
case $0 in
/*) bounded=$(dirname "$0")/bounded.py ;;
esac

# a cache is made of blocks where it goes to a file, and of the whole where it goes to the standard output
same() { # DATA... [OPTIONS]: of both ways
    rm -f blocks.cache
    "$RUBATO" convert --data "$@" --out - >whole.cache 2>whole.err || fail "convert $* to -: $(cat whole.err)"
    "$RUBATO" convert --data "$@" --out blocks.cache 2>"$err" || fail "convert $*: $(cat "$err")"
    cmp whole.cache blocks.cache || fail "convert $*: other bytes, block by block"
    cmp whole.err "$err" || fail "convert $*: other notes, block by block"
}

"$RUBATO" gen lr --out data.svm --rows 30000 --cols 5000 --nnz 40 # several pieces
for kind in vw csv; do
    "$RUBATO" gen lr --out "data.$kind" --rows 30000 --cols 40 --nnz 20
    same "data.$kind"
done
same data.svm
gzip -k data.svm
same data.svm.gz
same data.svm data.svm.gz
{
    cat data.svm
    echo '1 0:1 3:1'
} >late.svm # an index 0 behind all others
same late.svm
{
    cat data.svm
    echo bad
} >bad.svm
same bad.svm --skip-bad 2
head -n 1 data.svm >one.svm
same one.svm
"$RUBATO" convert --data - --out piped.cache <data.svm
"$RUBATO" convert --data data.svm --out data.cache
cmp piped.cache data.cache || fail 'convert of a pipe: other bytes'
same data.cache
same data.cache data.cache
[ "$(find . -name '*.part-*' -o -name '*.tmp-*' | wc -l)" -eq 0 ] || fail 'convert leaves a part behind'

# words as labels, others in another file; weights in one of two; ratings; documents
printf 'kind,a,b\nred,1,2\nblue,3,4\n' >words.csv
printf 'kind,a,b\ngreen,1,2\nblue,3,4\n' >others.csv
same words.csv --label kind
same words.csv others.csv --label kind
"$RUBATO" convert --data words.csv --label kind --out words.cache
"$RUBATO" convert --data others.csv --label kind --out others.cache
same words.cache others.cache
printf '1 | a b:2\n-1 2.5 | c d\n' >weights.vw
printf '1 | a b:2\n' >none.vw
same none.vw weights.vw
printf 'user,item,rating\na,x,1\nb,y,2\n' >ratings.csv
same ratings.csv --format ratings
"$RUBATO" convert --data ratings.csv --format ratings --out ratings.cache
same ratings.cache ratings.cache
printf '2\n3\n3\n1 1 2\n1 3 1\n2 2 5\n' >docword.txt
same docword.txt

# refusals leave nothing behind, and name what to do
expect 1 convert --data data.svm --out no/such/folder.cache
says 'no/such/folder.cache: cannot be created: No such file or directory; choose a place that can be written'
expect 1 convert --data bad.svm --out refused.cache
says 'bad.svm:30001'
[ ! -e refused.cache ] || fail 'convert of bad text leaves a file'

# what is measured block by block: the same numbers from text, a cache and a pipe; a row is told by its own line
"$RUBATO" train lr --data data.svm --quiet --epochs 1 --out model.rbt
"$RUBATO" train svm --data data.svm --quiet --epochs 1 --out other.rbt
"$RUBATO" eval --model model.rbt --baseline other.rbt --data data.svm --json text.json >"$out"
"$RUBATO" eval --model model.rbt --baseline other.rbt --data data.cache --json cache.json >"$out"
"$RUBATO" eval --model model.rbt --baseline other.rbt --data - --json pipe.json <data.svm >"$out"
cmp text.json cache.json || fail 'eval of a cache: other numbers'
cmp text.json pipe.json || fail 'eval of a pipe: other numbers'
"$RUBATO" train lr --data late.svm --quiet --epochs 1 --out late.rbt # its features count from 0, also before an index 0
expect 0 eval --model late.rbt --data late.svm
expect 0 eval --model late.rbt --data data.svm
[ ! -s "$err" ] || fail 'eval counts features otherwise than the model'
"$RUBATO" export --model model.rbt --format liblinear --out model.liblinear
"$RUBATO" import --model model.liblinear --out unknown.rbt
expect 0 eval --model unknown.rbt --data late.svm --base 0 --json given.json
expect 0 eval --model unknown.rbt --data late.svm --json found.json
cmp given.json found.json || fail 'eval: an index 0 behind all others is found too late'
"$RUBATO" eval --model unknown.rbt --data - >"$out" 2>"$err" <late.svm &&
    fail 'eval of a pipe measures some rows otherwise than others'
says 'standard input: an index 0 after'
says 'give --base 0'
{
    cat data.svm
    echo '7 1:1'
} >label.svm
expect 1 eval --model model.rbt --data label.svm
says 'label.svm:30001: the row has the label 7, but the model was trained on 2 labels'
"$RUBATO" convert --data label.svm --out label.cache
expect 1 eval --model model.rbt --data label.cache
says 'row 30001 has the label 7'

# bounded memory: not under a sanitizer, which has memory of its own
[ "$RUBATO_SANITIZED" -eq 0 ] || exit 0
"$RUBATO" gen lr --out wide.svm --rows 200000 --cols 2000 --nnz 40
limited() { # MIB COMMAND...: fails when it needs more
    python3 "$bounded" "$@" >"$out" 2>"$err" || fail "$*: $(cat "$err")"
    echo "$* $(cat "$err")"
}
gzip -1 -k wide.svm
"$RUBATO" convert --data wide.svm --out - >whole.cache
for file in wide.svm wide.svm.gz; do
    limited 40 "$RUBATO" convert --data $file --out blocks.cache
    cmp whole.cache blocks.cache || fail "$file: other bytes in little memory"
    limited 40 "$RUBATO" eval --model model.rbt --data $file
done
for command in "info wide.svm" "convert --data wide.svm.gz --out back.svm"; do
    # shellcheck disable=SC2086
    ! python3 "$bounded" 40 "$RUBATO" $command >"$out" 2>"$err" ||
        fail "$command: enough memory for 8 million values in 40 MiB"
    says 'or make a cache of it first, which takes little memory: rubato convert --out FILE.cache'
done
# shellcheck disable=SC3045 # every sh on Linux has it
(ulimit -d 40960 && "$RUBATO" info blocks.cache >"$out" && "$RUBATO" convert --data blocks.cache --out back.svm) ||
    fail 'what a message advises does not work'
cmp back.svm wide.svm || fail 'a cache converted back: other bytes'

# who converts from a pipe and is told to end does not wait for the pipe
mkfifo pipe
timeout 30 "$RUBATO" convert --data - --out never.cache <pipe 2>"$err" &
pid=$!
exec 3>pipe
head -n 3000 data.svm >&3 # more than a pipe holds: it is being read
kill -TERM $pid
code=0
wait $pid || code=$?
exec 3>&-
{ [ "$code" -gt 128 ] && [ ! -e never.cache ]; } || fail "convert from a pipe, told to end: exit code $code"

# a label that the second of two models does not have is told by its place, however many rows the first has measured
awk 'BEGIN { for (i = 0; i < 300000; i++) print 1 + i % 2, "1:" i % 7, "2:" i % 11, "3:1" }' >two.svm
awk '{ print NR == 250002 ? "3 1:1" : $0 }' two.svm >three.svm
for kind in two three; do
    expect 0 train softmax --data $kind.svm --epochs 1 --out $kind.rbt --quiet
done
for baseline in two three; do
    expect 1 eval --model "$([ $baseline = two ] && echo three || echo two).rbt" --baseline $baseline.rbt --data three.svm
    says 'three.svm:250002: the row has the label 3'
done

# files without rows are refused with the form that their names promise, as those who read the whole do
for kind in csv vw; do
    : >none.$kind
    expect 1 train lr --data none.$kind
    sed 's/^rubato train//' "$err" >whole.err
    expect 1 convert --data none.$kind --out never.cache
    sed 's/^rubato convert//' "$err" | cmp - whole.err || fail "none.$kind: another refusal, block by block"
done
