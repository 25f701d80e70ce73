#!/bin/sh
# Generated data of every kind and in every format; what makes no sense is refused; nothing is left of a failure.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# rows: what was written as a cache is what was written as text, and converting gives the same bytes as generating
for kind in lr regression multiclass clicks; do
    for format in libsvm csv vw cache; do
        expect 0 gen $kind --rows 300 --cols 30 --nnz 5 --seed 4 --to $format --out $kind.$format
    done
    for format in libsvm csv vw; do
        expect 0 convert --data $kind.cache --to $format --out back
        cmp -s back $kind.$format || fail "$kind: cache to $format: not what gen writes as $format"
    done
    expect 0 convert --data $kind.libsvm --out back
    cmp -s back $kind.cache || fail "$kind: libsvm to cache: not what gen writes as a cache"
    [ "$(wc -l <$kind.libsvm)" -eq 300 ] || fail "$kind: not 300 lines of LIBSVM text"
    [ "$(wc -l <$kind.vw)" -eq 300 ] || fail "$kind: not 300 lines of VW text"
    [ "$(head -n 1 $kind.csv | tr ',' '\n' | wc -l)" -eq 31 ] || fail "$kind: not 31 columns of CSV"
done
head -n 1 lr.csv | grep -q '^label,f1,f2,f3,' || fail 'the header of CSV is another'
if grep -Evq '^-?1 \|( [0-9]+:[0-9.e-]+)+$' lr.vw; then fail 'VW text is another'; fi
[ "$(cut -d' ' -f1 multiclass.libsvm | sort -u | tr '\n' ' ')" = '1 2 3 4 5 ' ] || fail 'multiclass: other labels than 1 to 5'
expect 0 train lr --data clicks.cache --workers 2 --clocks 2

# the same options give the same bytes on one core as on all; another seed gives others
expect 0 gen lr --rows 5000 --cols 3000 --nnz 30 --out all.svm
if command -v taskset >/dev/null && taskset -c 0 true 2>/dev/null; then
    taskset -c 0 "$RUBATO" gen lr --rows 5000 --cols 3000 --nnz 30 --out one.svm
    cmp -s all.svm one.svm || fail 'the bytes depend on the number of cores'
fi
expect 0 gen lr --rows 5000 --cols 3000 --nnz 30 --seed 2 --out other.svm
if cmp -s all.svm other.svm; then fail 'the seed makes no difference'; fi
"$RUBATO" gen lr --rows 5000 --cols 3000 --nnz 30 --out - | cmp -s - all.svm || fail 'the standard output differs from a file'

# the other kinds
expect 0 gen ratings --users 50 --items 40 --rows 500 --rank 3 --out ratings.dat
[ "$(grep -Ec '^[0-9]+::[0-9]+::[0-5](\.5)?::[0-9]+$' ratings.dat)" -eq 500 ] || fail 'ratings of another form'
expect 0 gen ratings --users 50 --items 40 --rows 500 --to csv --out ratings.csv
[ "$(head -n 1 ratings.csv)" = 'user,item,rating' ] || fail 'ratings as CSV begin otherwise'
[ "$(wc -l <ratings.csv)" -eq 501 ] || fail 'not 500 ratings as CSV'
expect 0 gen docs --docs 60 --words 200 --nnz 20 --topics 4 --out docs.txt
[ "$(head -n 2 docs.txt | tr '\n' ' ')" = '60 200 ' ] || fail 'the documents begin otherwise'
[ "$(sed -n 3p docs.txt)" -eq $(($(wc -l <docs.txt) - 3)) ] || fail 'the documents have another number of lines than they say'
expect 0 gen docs --rows 60 --cols 200 --nnz 20 --topics 4 --out docs2.txt
cmp -s docs.txt docs2.txt || fail '--rows and --docs are not the same'
expect 0 gen images --rows 100 --side 8 --classes 3 --out digits
[ "$(wc -c <digits-images-idx3-ubyte)" -eq 6416 ] || fail 'images of another size'
[ "$(wc -c <digits-labels-idx1-ubyte)" -eq 108 ] || fail 'labels of another size'

# refused: options a kind has no use for, formats that cannot hold it, bad sizes
expect 2 gen lr --out x --classes 3
says '--classes makes no sense for lr'
expect 2 gen images --out x --cols 3
says '--cols makes no sense for images'
expect 2 gen docs --out x --docs 3 --rows 3
says '--rows and --docs are the same'
expect 2 gen ratings --out x --to libsvm
says "--to 'libsvm' makes no sense for ratings"
expect 2 gen docs --out x --to csv
says 'choose uci'
expect 2 gen images --out x --to cache
says 'choose idx'
for name in svm csv vw; do # a name by which it would be read as something else
    expect 2 gen docs --out x.$name
    says "x.$name: would hold docword, and be read as"
done
expect 2 gen lr --out x.csv --to libsvm
says 'x.csv: would hold libsvm, and be read as csv because of its name; let it end otherwise'
expect 2 gen ratings --out x.svm
says 'would hold ratings, and be read as libsvm'
expect 2 gen ratings --out x.csv --to ratings
expect 2 gen lr --out x.tsv
says 'x.tsv: Rubato writes no tabs between cells, only commas; let the name end with .csv'
expect 2 convert --data lr.csv --out x.TSV
says 'end with .csv'
expect 2 convert --data lr.csv --out x.vw --to csv
says 'would hold csv, and be read as vw'
[ -z "$(find . -name 'x.*')" ] || fail 'a refusal leaves a file'
expect 0 convert --data lr.csv --out y.csv --to cache # it is known by its first bytes
expect 0 info y.csv
expect 2 gen images --out -
says 'two files'
expect 2 gen lr --out x --to svm
says 'choose libsvm, csv, vw or cache'
expect 2 gen lr --out x --nnz 1001
says '--nnz 1001 is out of range; give a number from 1 to that of the columns, 1000'
expect 2 gen clicks --out x --rate 1
says '--rate 1'
expect 2 gen ratings --out x --users 3 --items 3 --rows 10
says '--rows 10 is out of range; give a number from 1 to --users times --items, 9'
expect 2 gen lr --out x --rows 5000000000
says '--rows 5000000000'
expect 1 gen lr --out x --cols 100001 --to csv
says 'CSV has every column in every row'
expect 1 gen lr --out x --rows 4000000000 --nnz 500 --to cache
says 'of memory, and this machine has'
[ ! -e x ] || fail 'a refusal leaves a file'

# a full disk, and one that is full after a while
if [ -c /dev/full ]; then
    for kind in lr clicks ratings docs; do
        expect 1 gen $kind --out /dev/full
        says 'No space left on device'
    done
    expect 1 convert --data lr.cache --to csv --out /dev/full
fi
(
    ulimit -f 100
    expect 1 gen lr --rows 50000 --out x
    expect 1 gen images --out x
)
says 'File too large'

writing() # PID: it has begun with x, which has no name yet, or that of a temporary file
{
    for open in "/proc/$1/fd"/*; do
        case $(readlink "$open") in *' (deleted)') return 0 ;; esac
    done
    [ -s "x.tmp-$1" ]
}

# Ctrl-C: the file that is being written goes away
"$RUBATO" gen lr --rows 4000000 --cols 100 --nnz 50 --out x >"$out" 2>"$err" &
pid=$!
until writing "$pid"; do
    kill -0 $pid || fail 'the generator ended too soon'
done
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" -eq 130 ] || fail "interrupted: exit code $code, expected 130"
says 'x: interrupted; nothing was written'
"$RUBATO" gen lr --rows 4000000 --cols 100 --nnz 50 --out x >"$out" 2>"$err" &
pid=$!
until writing "$pid"; do
    kill -0 $pid || fail 'the generator ended too soon'
done
nameless=no
[ -e "x.tmp-$pid" ] || nameless=yes
kill -KILL $pid
wait $pid || code=$?
[ "$nameless" = no ] || [ ! -e "x.tmp-$pid" ] || fail 'a killed process leaves a part of a file behind'
rm -f "x.tmp-$pid"
for left in x*; do
    [ ! -e "$left" ] || fail "$left was left behind"
done

# VW text has as many columns as --bits says: more than usual are told, with the bits that are enough
printf '1 5:1\n-1 262149:1\n' >wide.svm
expect 0 convert --data wide.svm --out wide.vw
says 'rubato convert: 262149 columns were written'
says 'read it with --bits 19'
expect 0 info wide.vw --bits 19
prints '524288, of which 2 occur'
expect 0 gen lr --rows 5 --cols 1048576 --nnz 2 --out wide.vw
says 'rubato gen: 1048576 columns were written'
says 'read it with --bits 20'
printf '1 5:1\n-1 262144:1\n' >wide.svm
expect 0 convert --data wide.svm --out wide.vw
[ ! -s "$err" ] || fail 'a note without need'
printf '1 5:1\n-1 4294967294:1\n' >wide.svm
expect 1 convert --data wide.svm --out wider.vw
says 'wider.vw: not written: Vowpal Wabbit text is read as 2^31 columns at most, and these are 4294967294; choose libsvm or cache'
[ ! -e wider.vw ] || fail 'a file that was refused is there'

# one range for a number, whichever end it is beyond
expect 2 gen images --side 0 --out side
says '--side 0 is too small; give at least 1'
expect 2 gen images --side 100000 --out side
says '--side 100000 is out of range; give a number from 1 to 4096'
expect 2 gen images --side 5000000000 --out side
says '--side 5000000000 is out of range; give a number from 1 to 4096'
expect 2 gen lr --rows -1 --out rows
says '--rows -1 is too small; give at least 1'
expect 2 gen docs --docs -1 --out rows
says '--docs -1 is too small; give at least 1'
expect 2 gen multiclass --classes 1 --out rows
says '--classes 1 is too small; give at least 2'

# an option that nobody gave is not refused: rows are no longer than there are columns
for few in 'lr --cols 10' 'clicks --cols 10' 'docs --words 50'; do
    # shellcheck disable=SC2086
    expect 0 gen $few --rows 30 --out few
done
"$RUBATO" gen lr --rows 30 --cols 10 --nnz 10 --out same
"$RUBATO" gen lr --rows 30 --cols 10 --out few
cmp -s few same || fail '--cols 10 is not --cols 10 --nnz 10'
expect 2 gen lr --cols 10 --nnz 20 --out few
says '--nnz 20 is out of range; give a number from 1 to that of the columns, 10'
