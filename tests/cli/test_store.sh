#!/bin/sh
# --cache and --store: the same data whatever they say; data larger than a limit on memory is trained on within it.
# RUBATO_TEST_DATA_MIB is the size of that data (as text); the limit is a fifth of it, 50 MiB at least. [1024]
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

bounded=$OLDPWD/$(dirname "$0")/bounded.py
case $0 in
/*) bounded=$(dirname "$0")/bounded.py ;;
esac
train() { # OPTIONS...: the hash of what is trained; output in $out
    "$RUBATO" train lr --workers 2 --sync bsp --clocks 3 "$@" >"$out" 2>"$err" || fail "train $*: $(cat "$err")"
    sed -n 's/.*hash //p' "$out"
}

small_data
whole=$(train --data data.svm)
[ "$(train --data data.svm --cache auto)" = "$whole" ] || fail 'making a cache changes the parameters'
prints 'cache data.svm.rbt-cache: made for the next start'
[ "$(train --data data.svm --cache auto)" = "$whole" ] || fail 'a kept cache gives other parameters'
grep -q 'cache data' "$out" && fail 'a cache that fits is made again'
[ "$(train --data data.svm --store both)" = "$whole" ] || fail '--store both gives other parameters'
touch -d '2001-02-03' data.svm
[ "$(train --data data.svm --cache auto)" = "$whole" ] || fail 'a cache made again gives other parameters'
prints 'its source has changed, it is made again'
head -c 1000 data.svm.rbt-cache >short && mv short data.svm.rbt-cache
[ "$(train --data data.svm --cache auto)" = "$whole" ] || fail 'a damaged cache is used'
prints 'cache data.svm.rbt-cache: cannot be used, it is made again: data.svm.rbt-cache: the cache is damaged: its length'
head -c 1000 data.svm.rbt-cache >cut.cache
expect 1 train lr --data cut.cache
says 'cut.cache: the cache is damaged: its length does not fit the rows, features and labels it promises; make it again with rubato convert'

# every way to read has a cache of its own, which nobody else makes again; rows that it lacks are told every time
{
    cat data.svm
    echo bad
} >kept.svm
for try in first second; do
    expect 0 train lr --data data.svm --valid data.svm --cache auto --clocks 1 --json "$try.json"
    expect 0 train linear --data data.svm --cache auto --clocks 1
    grep -q 'made again' "$out" && fail "a cache is made again ($try)"
    expect 0 train lr --data kept.svm --skip-bad 2 --cache auto --clocks 1 --json "bad.$try.json"
    prints '1 bad row was left out'
    check "bad.$try.json" "any('1 bad row was left out' in e['note'] for e in events('note'))"
done
check second.json "events('note') == []"
prints '1 bad row was left out when the kept cache was made'
rm kept.svm*

# a file that is trained on and validated with has one cache; where it is read as other data was, it has another one
[ "$(find . -name 'data.svm*.rbt-cache' | wc -l)" -eq 1 ] || fail '--valid of the same file makes a cache of its own'
sed 's/ / 0:1 /' data.svm >zero.svm
for cache in off auto auto; do
    expect 0 train lr --data zero.svm --valid data.svm --cache $cache --clocks 1 --json "zero.$cache.json"
done
python3 - <<'PYTHON' || fail 'a cache of data that was read in another way is used'
import json
ends = [[json.loads(line) for line in open("zero.%s.json" % cache)] for cache in ("off", "auto")]
sums = [[e["loss"] for e in lines if e["event"] == "eval"] for lines in ends]
raise SystemExit(0 if sums[0] and sums[0] == sums[1] else 1)
PYTHON
rm zero.svm* data.svm-*.rbt-cache

# several jobs at once make the same cache
rm data.svm.rbt-cache
for i in 1 2 3 4; do
    "$RUBATO" train lr --data data.svm --cache auto --workers 1 --clocks 1 --quiet >"log.$i" 2>&1 || : >"failed.$i" &
done
wait
ls failed.* >/dev/null 2>&1 && fail 'jobs at the same time trip over each other'
[ "$(train --data data.svm --cache auto)" = "$whole" ] || fail 'the cache of several jobs is not right'
[ "$(find . -name 'data.svm*' | wc -l)" -eq 2 ] || fail 'something is left besides data.svm and its cache'

# disk: another order, the same from text, from the kept cache and from standard input; nothing is left
rm data.svm.rbt-cache
streamed=$(train --data data.svm --store disk)
[ -n "$streamed" ] || fail 'no hash was printed'
[ ! -e data.svm.rbt-cache ] || fail '--store disk keeps a cache that was not asked for'
[ "$(train --data data.svm --store disk --cache auto)" = "$streamed" ] || fail 'disk, kept: other parameters'
[ "$(train --data data.svm --store disk --cache auto)" = "$streamed" ] || fail 'disk, from the kept cache: other parameters'
[ "$(XDG_CACHE_HOME=$work train --data - --store disk <data.svm)" = "$streamed" ] || fail 'disk, from a pipe: other parameters'
[ -z "$(ls rubato)" ] || fail '--store disk leaves a file behind'
[ "$(find . -name '*rbt-cache*' | wc -l)" -eq 1 ] || fail '--store disk leaves a file behind'
expect 0 train lr --data data.svm --valid data.svm --store disk --clocks 3 --quiet --json lines
check lines 'all(sum(w["labels"]) == w["rows"] and len(w["labels"]) == 2 for w in last["workers"])'
expect 2 train lr --data - --cache auto
says '--cache auto makes no sense with the standard input'
expect 2 train lr --data - --store both
says '--store both makes no sense with the standard input'

# dual ascent takes about as many passes as in memory, also where the file is sorted by label
"$RUBATO" gen lr --out mixed.svm --rows 8000 --cols 100 --nnz 10 --seed 4
LC_ALL=C sort -n mixed.svm >sorted.svm
for file in mixed.svm sorted.svm; do
    for store in memory disk; do
        expect 0 train svm --data $file --optimizer sdca --workers 1 --epochs 1000 --tolerance 1e-3 --store $store --quiet \
            --json $store.json
        tail -n 1 $store.json
    done >both.json
    check both.json 'lines[1]["clocks"] <= 1.5 * lines[0]["clocks"]'
done
rm mixed.svm sorted.svm

# what is not there is not there, whatever is to be kept of it
for option in '--cache auto' '--store both' '--store disk'; do
    # shellcheck disable=SC2086
    expect 1 train lr --data nothing.svm $option
    says 'nothing.svm: cannot be opened: No such file'
done

# bounded memory: not under a sanitizer, which has memory of its own
[ "$RUBATO_SANITIZED" -eq 0 ] || exit 0

# a file that cannot be mapped names the limit of address space, not memory
"$RUBATO" convert --data data.svm --out wide.cache
for file in wide.svm wide.cache; do
    truncate -s 8G "$file"
    for level in memory disk; do
        case $file$level in wide.svmdisk) continue ;; esac # text is streamed
        # shellcheck disable=SC3045 # every sh on Linux has it
        (ulimit -v 1000000 && expect 1 train lr --data "$file" --store "$level")
        says "$file: has 8589.9 MB, which cannot be mapped within the limit of address space (ulimit -v) of 1024.0 MB;"
    done
    rm "$file"
done

# rows that have no room may be streamed, and a job that can be is told so
"$RUBATO" gen lr --out wide.svm --rows 160000 --cols 2000 --nnz 20
for folds in '' '--folds 2'; do
    # shellcheck disable=SC2086
    ! python3 "$bounded" 16 "$RUBATO" train lr --data wide.svm --optimizer sgd --lr 1 --workers 1 --epochs 1 --quiet \
        $folds >"$out" 2>"$err" || fail 'enough memory for 3.2 million values in 16 MiB'
    says 'use fewer rows or a larger machine'
    told=$(grep -c 'machine, or train with --store disk' "$err" || :)
    [ "$told" -eq "$([ -z "$folds" ] && echo 1 || echo 0)" ] || fail "--store disk, with '$folds'"
done
rm wide.svm

# hashed columns that do not occur cost the model's own memory only
printf '1 | a b:2\n-1 | c d\n1 | a e\n-1 | c f\n' >wide.vw
python3 "$bounded" 200 "$RUBATO" train lr --data wide.vw --bits 24 --quiet --json lines 2>"$err" ||
    fail "more than 200 MiB for 2^24 columns of which six occur"
check lines "events('start')[0]['optimizer'] == 'newton'"

size=${RUBATO_TEST_DATA_MIB:-1024}
limit=$((size / 5 > 50 ? size / 5 : 50))
mkdir big
"$RUBATO" gen lr --out big/part-0.svm --rows 25000 --cols 20000 --nnz 40
one=$(wc -c <big/part-0.svm)
i=1
while [ $((i * one)) -lt $((size * 1024 * 1024)) ]; do
    ln big/part-0.svm "big/part-$i.svm"
    i=$((i + 1))
done
for try in 'from text' 'from the cache'; do
    python3 "$bounded" "$limit" "$RUBATO" train lr --data 'big/part-*.svm' --store disk --cache auto --workers 2 --epochs 2 \
        --quiet --json lines 2>"$err" || fail "$try: more than $limit MiB for $size MiB of data"
    echo "store disk, $size MiB, $try: $(cat "$err")"
    check lines "last['loss'] < 0.6931 and sum(w['rows'] for w in last['workers']) == $i * 25000"
done

# what looks at rows all over the file (for a step size, typical squares, common features) leaves none of it in memory
most=$((limit * 3 / 4))
for how in '--optimizer sgd' '--optimizer sgd --lr 1' '--sync ssp'; do
    # shellcheck disable=SC2086
    python3 "$bounded" "$most+$limit" "$RUBATO" train lr --data 'big/part-*.svm' --store disk --cache auto \
        --workers 2 --epochs 1 --quiet $how 2>"$err" ||
        fail "$how: more than $most MiB for $size MiB of data: $(cat "$err")"
    echo "store disk, $size MiB, $how: $(cat "$err")"
done
