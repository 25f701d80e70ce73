#!/bin/sh
# Ratings and documents: what rubato gen writes reads back; every form is told apart or named; info says what they are;
# caches, pipes, packed files and patterns; bad lines.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# ratings
expect 0 gen ratings --users 40 --items 30 --rows 500 --out r.dat
expect 0 gen ratings --users 40 --items 30 --rows 500 --to csv --out r.csv
expect 0 info r.dat
prints 'kind        ratings'
prints 'users       40'
prints 'ratings     500;'
tail -n +2 "$out" >plain
same() { # OPTIONS: info says the same as of r.dat
    expect 0 info "$@"
    tail -n +2 "$out" | cmp -s - plain || fail "info $* differs"
}
same r.csv --format ratings
tr -s ':' ' ' <r.dat >r.txt
same r.txt --format ratings
split -n l/3 r.dat part-
same 'part-*'
expect 0 convert --data r.dat --out r.cache
same r.cache
for data in r.dat r.cache; do
    expect 0 convert --data $data --out names.csv
    same names.csv --format ratings
    sort r.csv >expected
    sort names.csv | cmp -s - expected || fail "$data as CSV is not what gen writes"
done
for format in libsvm vw; do
    expect 2 convert --data r.dat --to $format --out none
    says 'text has no place for the names of their users and items; choose ratings, csv or cache'
    [ ! -e none ] || fail 'what was refused has been written'
done
expect 0 convert --data r.cache --to ratings --out back.dat
cut -d: -f1-5 r.dat | sort >expected # a user's items are in the order in which items first occur
sort back.dat | cmp -s - expected || fail 'ratings written are not those read'
"$RUBATO" info - <r.dat >"$out" 2>"$err" || fail 'ratings from the standard input'
prints 'ratings     500;'
for tool in gzip zstd; do
    command -v $tool >/dev/null || continue
    $tool -c <r.dat >packed
    "$RUBATO" info packed >"$out" 2>"$err" || { says 'which this build lacks' && continue; }
    same packed
done
expect 0 info r.csv
prints 'kind        data'

# the last rating of a pair counts; bad lines
printf 'ann::film::4\nbob::film::x\nann::film::3\nbob::book::1\n' >bad.dat
expect 1 info bad.dat
says "bad.dat:2: 'bob::film::x': expected a rating in the third place: one finite number such as 4 or 3.5"
expect 0 info bad.dat --skip-bad 1
prints 'ratings     2; 1 to 1 per user'
says '1 rating has a later one of the same user and item, which counts; 1 bad row was left out; the first: bad.dat:2'
expect 2 info bad.dat --label 2
says '--label makes no sense for bad.dat, which has ratings; leave it out'
expect 2 convert --data bad.dat --skip-bad 1 --to docword --out x
says 'the data has no documents'

# documents
expect 0 gen docs --docs 50 --words 80 --nnz 12 --out d.txt
expect 0 info d.txt
prints 'kind        documents'
prints 'documents   50'
prints 'words       80, of which'
tail -n +2 "$out" >plain
expect 0 convert --data d.txt --out d.cache
same d.cache
expect 0 convert --data d.cache --to docword --out back.txt
cmp -s d.txt back.txt || fail 'documents written are not those read'
python3 - <<'PYTHON'
docs = {}
lines = [list(map(int, line.split())) for line in open("d.txt")]
for doc, word, count in lines[3:]:
    docs.setdefault(doc, []).append("%d:%d" % (word - 1, count))
with open("d.ldac", "w") as out:
    for doc in range(1, lines[0][0] + 1):
        words = docs.get(doc, [])
        out.write(" ".join([str(len(words))] + words[::-1]) + "\n")
PYTHON
expect 0 info d.ldac
prints 'kind        documents'
grep tokens "$out" >tokens
grep -qFf tokens plain || fail 'lda-c has other tokens'
head -n 20 d.txt >cut.txt
expect 1 info cut.txt
says 'cut.txt:3: promises'
says 'get the file again'
printf '1\n' >one.svm
expect 1 info one.svm --format docword
says "one.svm:2: '': expected the number of words"
expect 1 info one.svm --format ldac
says 'one.svm:1: the line promises 1 words and has fewer'

# a model of rows takes the counts as features
expect 0 convert --data d.ldac --to libsvm --out d.svm
expect 0 info d.svm
prints 'rows        50'
