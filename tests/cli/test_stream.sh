#!/bin/sh
# predict streams: constant memory, the same answers from wherever the rows come, an answer for each row that is typed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

bounded=$OLDPWD/$(dirname "$0")/bounded.py
case $0 in
/*) bounded=$(dirname "$0")/bounded.py ;;
esac

small_data
expect 0 train lr --data data.svm --workers 2 --epochs 10 --out model.rbt --quiet
expect 0 predict --model model.rbt --data data.svm --as score --out answers
predict() { "$RUBATO" predict --model model.rbt --as score --data "$@" >"$out" 2>"$err" || fail "predict $*: $(cat "$err")"; }
same() { cmp -s "$out" answers || fail "$1: other answers"; }

head -n 150 data.svm >part-1.svm
tail -n +151 data.svm >part-2.svm
predict 'part-*.svm'
same 'a pattern'
predict - <data.svm
same 'standard input'
"$RUBATO" convert --data data.svm --out data.cache
predict data.cache
same 'a cache'
predict - <data.cache
same 'a cache as standard input'
for tool in gzip zstd; do
    command -v $tool >/dev/null || continue
    $tool -c <data.svm >packed
    "$RUBATO" info packed >"$out" 2>"$err" || continue # a build without it
    predict packed
    same $tool
    # shellcheck disable=SC2002 # a pipe is what is tested
    cat packed | predict -
    same "$tool through a pipe"
    head -c 500 packed >short
    expect 1 predict --model model.rbt --data short
    says 'short: the compressed file is cut short at byte 500'
done

# the line of a refusal, far into the data; the file to be written is left as it was
for _ in 1 2 3 4 5 6 7 8 9 10; do cat data.svm; done >long.svm
echo '1 7:x' >>long.svm
echo before >there
expect 1 predict --model model.rbt --data long.svm --out there
says "long.svm:4001: '7:x': expected"
[ "$(cat there)" = before ] || fail 'a failed predict changes its output file'
printf '1 1:1\n' >one.svm
printf '# nothing\n' >empty.svm
expect 1 predict --model model.rbt --data empty.svm
says 'empty.svm: has no rows'

# who types a row gets the answer before the end
python3 - "$RUBATO" <<'PYTHON' || fail 'an answer waits for the end of the input'
import subprocess, sys
p = subprocess.Popen([sys.argv[1], "predict", "--model", "model.rbt", "--data", "-", "--as", "score"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
rows, answers = open("data.svm", "rb").readlines(), open("answers", "rb").readlines()
for row, answer in list(zip(rows, answers))[:20]:
    p.stdin.write(row)
    p.stdin.flush()
    assert p.stdout.readline() == answer
p.stdin.close()
assert p.stdout.read() == b"" and p.wait() == 0
PYTHON

# 60 MiB of text in less than that
[ "$RUBATO_SANITIZED" -eq 0 ] || exit 0
"$RUBATO" gen lr --out wide.svm --rows 10000 --cols 50 --nnz 20
mkdir big
i=0
while [ "$i" -lt 20 ]; do
    ln wide.svm "big/part-$i.svm"
    i=$((i + 1))
done
python3 "$bounded" 45 "$RUBATO" predict --model model.rbt --data 'big/part-*.svm' --out answers 2>"$err" ||
    fail 'predict takes more than 45 MiB'
[ "$(wc -l <answers)" -eq 200000 ] || fail 'not one answer per row'

# CSV, too: plain, compressed, and with words that come late
{
    echo y,a,b,c,d,e,f,g,h,word
    awk 'BEGIN { for (i = 0; i < 4000; i++) { printf "%d", i % 2; for (j = 1; j < 9; j++) printf ",%.5f", i * j % 997 / 997;
        print "," (i < 3999 ? "" : "late") } }'
} >wide.csv
expect 0 train lr --data wide.csv --epochs 2 --out columns.rbt --quiet
i=0
while [ "$i" -lt 200 ]; do
    cat wide.csv
    i=$((i + 1))
done >long.csv
python3 "$bounded" 45+40 "$RUBATO" predict --model columns.rbt --data long.csv --out answers 2>"$err" ||
    fail "predict takes more than 45 MiB of CSV: $(cat "$err")"
[ "$(wc -l <answers)" -eq 800000 ] || fail 'not one answer per row of CSV'
gzip -1 -c wide.csv >wide.csv.gz
if "$RUBATO" info wide.csv.gz >"$out" 2>"$err"; then # not a build without it
    gzip -1 -c long.csv >long.csv.gz
    python3 "$bounded" 45+40 "$RUBATO" predict --model columns.rbt --data long.csv.gz --out packed.answers 2>"$err" ||
        fail "predict takes more than 45 MiB of compressed CSV: $(cat "$err")"
    cmp -s answers packed.answers || fail 'other answers for compressed CSV'
fi

# who types CSV gets the answer before the end, also of rows that do not show what the columns are
head -n 30 wide.csv >typed.csv
"$RUBATO" predict --model columns.rbt --data typed.csv --out typed
python3 - "$RUBATO" <<'PYTHON' || fail 'an answer to CSV waits for the end of the input'
import subprocess, sys
p = subprocess.Popen([sys.argv[1], "predict", "--model", "columns.rbt", "--data", "-"],
                     stdin=subprocess.PIPE, stdout=subprocess.PIPE)
rows, answers = open("typed.csv", "rb").readlines(), open("typed", "rb").readlines()
p.stdin.write(rows[0])
for row, answer in zip(rows[1:], answers):
    p.stdin.write(row)
    p.stdin.flush()
    assert p.stdout.readline() == answer
p.stdin.close()
assert p.stdout.read() == b"" and p.wait() == 0
PYTHON

# training takes 12 bytes per non-zero of compressed text, too: the text is not beside them
"$RUBATO" gen lr --out dense.svm --rows 30000 --cols 60 --nnz 60 --skew 0
for _ in 1 2 3 4; do cat dense.svm; done | gzip -1 >dense.gz
nnz=$(tr -cd : <dense.svm | wc -c)
if "$RUBATO" info wide.csv.gz >"$out" 2>"$err"; then
    python3 "$bounded" $((20 + nnz * 4 * 12 / 1048576))+200 "$RUBATO" eval --model model.rbt --data dense.gz >"$out" 2>"$err" ||
        fail "more than 12 bytes per non-zero of compressed text: $(cat "$err")"
fi
