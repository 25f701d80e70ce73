#!/bin/sh
# kmeans: rows need no labels, weights count, and what it has no use for is refused.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

hash_of() { # JSON
    sed -n 's/.*"param_hash":"\([0-9a-f]*\)".*/\1/p' "$1" | tail -n 1
}
means_of() { # MODEL: to six digits, in an order that does not depend on the clusters' numbers
    "$RUBATO" export --model "$1" --format text --out - | sed -n '/^# means/,/^# sizes/p' | grep -v '^#' |
        awk '{ for (i = 1; i <= NF; i++) printf "%.6g%s", $i, i < NF ? " " : "\n" }' | sort -n
}

# --- every column of CSV is a feature, unless --label names one
printf 'a,b,c\n1,2,3\n4,5,6\n7,8,8\n' >u.csv
expect 0 train kmeans --data u.csv --clusters 2 --workers 1 --out all.rbt --quiet
[ ! -s "$err" ] || fail "rows without labels are nothing to be noted"
expect 0 info all.rbt
prints 'means: 2 x 3'
expect 0 train kmeans --data u.csv --label none --clusters 2 --workers 1 --out none.rbt --quiet
cmp all.rbt none.rbt || fail "--label none is what is done anyway"
expect 0 train kmeans --data u.csv --label a --clusters 2 --workers 1 --out two.rbt --quiet
expect 0 info two.rbt
prints 'means: 2 x 2'
expect 0 predict --model all.rbt --data u.csv
[ "$(wc -l <"$out")" -eq 3 ] || fail "a cluster for each row"
expect 0 eval --model all.rbt --data u.csv
[ ! -s "$err" ] || fail "rows without labels are nothing to be noted in eval"

# --- LIBSVM and Vowpal Wabbit rows with and without labels are the same points
printf '1 1:1 2:2\n0 1:1.5 2:2\n7 1:9 2:9\n-1 1:9 2:8\n' >with.svm
sed 's/^[^ ]* //' with.svm >without.svm
printf '| 0:1 1:2\n| 0:1.5 1:2\n| 0:9 1:9\n| 0:9 1:8\n' >without.vw
for data in with.svm without.svm without.vw; do
    expect 0 train kmeans --data $data --clusters 2 --workers 2 --sync bsp --out m.rbt --json j.json --quiet
    [ "$data" != with.svm ] || wanted_hash=$(hash_of j.json)
    [ $data = without.vw ] || [ "$(hash_of j.json)" = "$wanted_hash" ] || fail "$data gives other means"
    expect 0 predict --model m.rbt --data $data
    [ "$(tr '\n' ' ' <"$out")" = '0 0 1 1 ' ] || [ "$(tr '\n' ' ' <"$out")" = '1 1 0 0 ' ] || fail "$data: $(cat "$out")"
    expect 0 eval --model m.rbt --data $data
    prints 'distance  0.15625'
done
expect 0 launch --local 2 -- train kmeans --data without.svm --clusters 2 --workers 2 --sync bsp --json j.json --quiet
[ "$(hash_of j.json)" = "$wanted_hash" ] || fail "a cluster gives other means"
expect 1 train lr --data without.svm
says "without.svm:1: '1:1': expected a label"

# --- a row of weight 3 counts as three; only proportions matter; the same bits everywhere; table_sum is the number of rows
printf 'w,x,y\n3,1,2\n1,2,2\n1,9,9\n2,9,8\n' >w.csv
printf 'w,x,y\n6,1,2\n2,2,2\n2,9,9\n4,9,8\n' >w2.csv
printf 'x,y\n1,2\n1,2\n1,2\n2,2\n9,9\n9,8\n9,8\n' >repeated.csv
expect 0 train kmeans --data repeated.csv --clusters 2 --workers 1 --out repeated.rbt --quiet
for where in local sim cluster; do
    set -- train kmeans --data w.csv --weight w --clusters 2 --workers 2 --sync bsp --json j.json --out w.rbt --quiet
    if [ $where = cluster ]; then expect 0 launch --local 2 -- "$@"; else expect 0 "$@" --runtime $where; fi
    [ $where != local ] || wanted_hash=$(hash_of j.json)
    [ "$(hash_of j.json)" = "$wanted_hash" ] || fail "$where gives other means of weighted rows"
    check j.json 'last["table_sum"] == 4 and abs(last["loss"] - 1.416666667 / 7) < 1e-4'
    [ "$(means_of w.rbt)" = "$(means_of repeated.rbt)" ] || fail "$where: a weight of 3 is not three rows"
done
expect 0 train kmeans --data w2.csv --weight w --clusters 2 --workers 2 --sync bsp --json j.json --quiet
[ "$(hash_of j.json)" = "$wanted_hash" ] || fail "weights that are all twice as large change something"
expect 0 eval --model repeated.rbt --data w.csv --weight w
prints 'distance  0.20238'

# --- many rows: floats that are added up lose a part of each, and give 0.0997
awk 'BEGIN { for (i = 0; i < 300000; i++) print "0.1,1" }' >many.csv
for weight in '' '--weight 2 --batch 50%'; do
    # shellcheck disable=SC2086
    expect 0 train kmeans --data many.csv $weight --clusters 1 --workers 1 --epochs 2 --out many.rbt --quiet
    means_of many.rbt | awk '{ exit !($1 > 0.099999 && $1 < 0.100001) }' || fail "the mean of many rows: $(means_of many.rbt)"
done

# --- what cannot be
printf '1\n2\n3\n' >bare.svm
expect 1 train kmeans --data bare.svm --clusters 2
says 'none of the 3 rows has a feature'
printf '1::a::3\n1::b::4\n2::a::5\n2::c::2\n' >ratings.dat
expect 1 train kmeans --data ratings.dat --format ratings --clusters 2
says 'kmeans cannot use ratings: items are numbered anew in every file'
for command in eval predict; do
    expect 1 $command --model all.rbt --data ratings.dat --format ratings
    says 'kmeans cannot use ratings'
done
printf '1 1:1e38 2:-1e38\n1 1:-1e38\n1 2:1e38\n1 1:3e38\n' >large.svm
expect 1 train kmeans --data large.svm --clusters 2 --workers 1
says 'make the values of the data smaller'
expect 3 train kmeans --data with.svm --clusters 1 --workers 1 --target-loss 0.001
says 'or a higher target'
