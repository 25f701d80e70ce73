#!/bin/sh
# lasso, l1lr and sketch from the command line: the same bits on all runtimes under BSP, other protocols, their models in use,
# slips. tests/unit/test_lasso.c and test_sketch.c have the rest.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
small_data
awk 'BEGIN { for (i = 0; i < 5000; i++) printf "%d\tk%d\n", i, int(sqrt(i * 7 % 900)) }' >events.tsv

# $1: what to train
everywhere()
{
    for runtime in local sim; do
        # shellcheck disable=SC2086 # options
        expect 0 train $1 --workers 3 --sync bsp --runtime $runtime --out $runtime.rbt --json $runtime.json --quiet
    done
    # shellcheck disable=SC2086 # options
    expect 0 launch --local 3 -- train $1 --workers 3 --sync bsp --json cluster.json --quiet
    cat sim.json cluster.json >>local.json
    check local.json 'len({l["param_hash"] for l in lines if l["event"] == "done"}) == 1'
    cmp local.rbt sim.rbt || fail 'the models of two runtimes differ'
    for sync in "ssp --staleness 2" asp; do
        # shellcheck disable=SC2086 # options
        expect 0 train $1 --workers 3 --sync $sync --json other.json --quiet
    done
}

everywhere "lasso --data data.svm --l1 0.02 --epochs 20 --path 4"
expect 0 info local.rbt
prints 'are not zero'
prints 'l1 0.02: loss'
expect 0 predict --model local.rbt --data data.svm --out out
[ "$(wc -l <out)" -eq 400 ] || fail 'a line per row'
expect 0 export --model local.rbt --format liblinear --out lasso.txt
grep -q '^nr_feature 50' lasso.txt || fail 'lasso as LIBLINEAR has it'
expect 0 eval --model local.rbt --data data.svm --json e.json
check e.json 'last["rmse"] < 0.9 and last["nonzeros"] > 0'

everywhere "l1lr --data data.svm --l1 0.01 --epochs 20"
check sim.json 'all(w["samples"] == 20 * w["rows"] for w in last["workers"])' # and not once for every range
expect 0 predict --model local.rbt --data data.svm --out out
[ "$(sort -u out | tr '\n' ' ')" = "$(cut -d' ' -f1 data.svm | sort -u | tr '\n' ' ')" ] || fail 'labels, one to a line'
# what it has learned is a model like lr's, and used as such
expect 0 export --model local.rbt --format liblinear --out l1lr.txt
expect 0 import --model l1lr.txt --out lr.rbt
for as in label probability score; do
    expect 0 predict --model local.rbt --data data.svm --as $as --out out
    expect 0 predict --model lr.rbt --data data.svm --as $as --out other
    cmp out other || fail "--as $as differs from the exported model's"
done
expect 0 eval --model local.rbt --data data.svm --json e.json
expect 0 eval --model lr.rbt --data data.svm --json o.json
cat o.json >>e.json
check e.json 'all(abs(first[m] - last[m]) < 1e-6 for m in ("loss", "logloss", "accuracy", "auc", "f1", "precision", "recall"))'
grep '^1' data.svm >ones.svm # of one class there is no auc
for model in local.rbt lr.rbt; do
    expect 0 eval --model $model --data ones.svm --metric auc
    [ "$(sed -n 's/^auc *//p' "$out")" = - ] || fail "$model: an auc that does not exist is shown as something else"
done
for names in 50 3; do
    seq $names | sed 's/^/name/' >voc
    expect 0 info --vocab voc local.rbt
    grep -q 'largest     name' "$out" || [ $names -eq 3 ] || fail 'the largest weights are not named'
    grep -q "has 3 names, the model 50 features" "$err" || [ $names -eq 50 ] || fail 'too few names and not a word'
done
expect 0 eval --model local.rbt --data data.svm --json e.json
check e.json 'last["accuracy"] > 0.7 and last["nonzeros"] < 50'
# each process has the features of its own rows alone, and labels, here words, and weights of all
awk 'BEGIN { print "kind,weight,a,b,c" } { x = NR * 7 % 11; print (x + NR % 3 > 6 ? "yes" : "no") "," 1 + NR % 2 "," x "," NR % 3 "," NR % 5 }' data.svm >words.csv
everywhere "l1lr --data words.csv --label kind --weight weight --l1 0.01 --epochs 20"

everywhere "sketch --data events.tsv --column 2 --width 2^10 --depth 3 --events-per-clock 500"
check other.json 'last["table_sum"] == 15000'
check other.json 'last["loss"] is None and last["minobj"] is None and events("clock")[-1]["loss"] is None' # it has none
expect 0 train sketch --data events.tsv --column 2 --width 2^10 --report s.html
if grep -q 'loss *[0-9]' "$out" || grep -q 'final loss\|Loss over' s.html; then fail 'a loss of a method without one'; fi
expect 2 train sketch --data events.tsv --column 2 --target-loss 1
says 'sketch, which has no loss'
expect 0 export --model local.rbt --format json --out s.json
check s.json 'len(last["heavy_names"]) == len(last["heavy"][0]) and last["heavy_names"][0].startswith("k")'
expect 0 info local.rbt
prints 'never too low'
printf 'k29\nk3\nnever seen\n' >keys
expect 0 predict --model local.rbt --data keys --out out
[ "$(sed -n 1p out)" -eq "$(cut -f2 events.tsv | grep -cx k29)" ] || fail 'an estimate without collisions is exact'
expect 0 eval --model local.rbt --data events.tsv --json e.json
check e.json 'last["events"] == 5000 and last["within_bound"] == 1'
# compressed or not: the same model, also where the candidates are more than are kept and others go
awk 'BEGIN { for (i = 0; i < 90000; i++) print "key " int((i * 7919 % 90000) ^ 0.7 * 6) }' >many.txt
gzip -k many.txt
for file in many.txt many.txt.gz; do
    expect 0 train sketch --data $file --top 2 --width 2^12 --workers 3 --sync bsp --out "$file.rbt" --json "$file.json" --quiet
done
cat many.txt.gz.json >>many.txt.json
check many.txt.json 'len({l["param_hash"] for l in events("done")}) == 1'
"$RUBATO" train sketch --data - --column 2 --width 2^10 --depth 3 --out pipe.rbt --json p.json --quiet <events.tsv
check p.json 'last["table_sum"] == 15000'

# Ctrl-C, once, while nobody writes to the pipe: what was counted is the result, without the line that is not whole.
mkfifo idle
cat >idle.py <<'PYTHON'
import fcntl, json, os, signal, subprocess, sys, termios
data, written, expected = sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
into = os.open("idle", os.O_RDWR) if written or data == "-" else subprocess.DEVNULL  # then nobody can write at all
job = subprocess.Popen([sys.argv[1], "train", "sketch", "--data", data, "--depth", "3", "--json", "-", "--quiet"] + sys.argv[5:],
                       stdin=into, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
assert json.loads(job.stdout.readline())["event"] == "start"
if written:
    os.write(into, written)
    left = bytearray(b"left")
    while any(left):  # until it has been read
        fcntl.ioctl(into, termios.FIONREAD, left)
job.send_signal(signal.SIGINT)
last = json.loads(job.stdout.readlines()[-1])
assert job.wait() == 130 and last["interrupted"] and last.get("table_sum", 0) == expected, (job.returncode, last)
PYTHON
for how in '--runtime local --workers 2' '--runtime sim --workers 2' '--workers 1'; do
    for data in - idle; do
        # shellcheck disable=SC2086
        python3 idle.py "$RUBATO" $data 'a
b
a
half a li' 9 $how || fail "interrupted at a pipe: $data $how"
        # shellcheck disable=SC2086
        python3 idle.py "$RUBATO" $data '' 0 $how || fail "interrupted at an empty pipe: $data $how"
    done
done

# Filters: the same on all runtimes; what was held back arrives in the end; what makes no sense is refused.
everywhere "l1lr --data data.svm --l1 0.01 --epochs 20 --filter kkt=0.9,significant=1e-3"
everywhere "lasso --data data.svm --l1 0.02 --epochs 20 --filter significant=0.1"
for filter in threshold=0 significant=0.2; do
    expect 0 train lr --data data.svm --workers 3 --sync bsp --rule sum --epochs 30 --lr 0.05 --runtime sim --filter $filter --json $filter.json --quiet
done
cat significant=0.2.json >>threshold=0.json
check threshold=0.json '[l["loss"] for l in lines if l["event"] == "done"][1] < 1.02 * [l["loss"] for l in lines if l["event"] == "done"][0]'
check threshold=0.json '[l["bytes_sent"] for l in lines if l["event"] == "done"][1] < [l["bytes_sent"] for l in lines if l["event"] == "done"][0]'
expect 2 train lr --data data.svm --l1 0.1 --filter kkt=0.5
says 'train l1lr'
expect 2 train sketch --data events.tsv --filter significant=0.1
says 'must add up to the events'

expect 2 train lasso --data data.svm
says 'give --l1 above 0'
expect 2 train l1lr --data data.svm --l1 0.1 --rule dyn
says 'must add up'
expect 2 train lasso --data data.svm --l1 0.1 --path 50 --epochs 3
says 'give more --epochs'
expect 1 train sketch --data events.tsv --column 3
says 'events.tsv:1'
expect 2 train sketch --data events.tsv --width 2^40
says 'out of range'
