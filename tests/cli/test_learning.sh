#!/bin/sh
# What is learned: every model, normalising, weights of classes, l1, patience, folds.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$RUBATO" gen lr --rows 1000 --cols 80 --nnz 8 --noise 0.1 --seed 2 --out two.svm
"$RUBATO" gen lr --rows 300 --cols 80 --nnz 8 --noise 0.1 --seed 2 --out valid.svm
awk '{ $1 = ($1 > 0) * 2 + (NF % 3 == 0) * 5; print }' two.svm >four.svm
awk '{ s = 0; for (i = 2; i <= NF; i++) { split($i, f, ":"); s += f[2] * (f[1] % 5 - 2) } $1 = 3 * s + 7 + (NR % 10 == 0) * 50; print }' \
    two.svm >numbers.svm

loss_of()
{
    python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1])["loss"])' "$1"
}

# Every model: two solvers that have nothing in common agree, and eval of the model saved says the same.
for model in lr svm svm2 softmax linear huber; do
    case $model in
    softmax) data=four.svm ;;
    linear | huber) data=numbers.svm ;;
    *) data=two.svm ;;
    esac
    other=newton
    [ $model != svm ] || other='sgd --epochs 100 --decay mult:0.95'
    expect 0 train $model --data $data --optimizer sdca --tolerance 1e-6 --epochs 300 --l2 0.01 --json a.json --quiet --out a.rbt
    # shellcheck disable=SC2086 # several words
    expect 0 train $model --data $data --optimizer $other --l2 0.01 --json b.json --quiet --out b.rbt
    check a.json "abs(last['loss'] / $(loss_of b.json) - 1) < 2e-3"
    expect 0 predict --model a.rbt --data $data --out a.txt
    [ "$(wc -l <a.txt)" -eq 1000 ] || fail "$model: not one prediction per row"
    expect 0 train $model --data $data --l2 0 --lr 0.01 --epochs 3 --json a.json --quiet --out a.rbt
    expect 0 eval --model a.rbt --data $data --metric loss --json eval.json
    check eval.json "abs(first['loss'] / $(loss_of a.json) - 1) < 1e-5"
    expect 0 train $model --data $data --quiet --out default.rbt
done
expect 0 train huber --data numbers.svm --quiet --out huber.rbt
expect 0 train linear --data numbers.svm --quiet --out linear.rbt
expect 0 eval --model huber.rbt --data numbers.svm --baseline linear.rbt --metric mae --json eval.json
check eval.json 'first["ratio"]["mae"] < 0.9' # one row in ten is far off

# --normalize standard: as if the data had been scaled by hand, for data as it is in the file. Features from 1e-6 to 1e5.
python3 - <<'PYTHON'
import random
random.seed(1)
rows = []
for r in range(400):
    x = [random.gauss(3, 1) * 10 ** (2 * j - 6) for j in range(6)]
    z = sum((x[j] / 10 ** (2 * j - 6) - 3) * (1, -2, 0.5, 1, -1, 2)[j] for j in range(6))
    rows.append((1 if z + random.gauss(0, 1) > 0 else -1, [float("%.6g" % v) for v in x]))
mean = [sum(x[j] for _, x in rows) / len(rows) for j in range(6)]
deviation = [(sum((x[j] - mean[j]) ** 2 for _, x in rows) / len(rows)) ** 0.5 for j in range(6)]
def write(name, value):
    with open(name, "w") as file:
        for y, x in rows:
            file.write("%d %s\n" % (y, " ".join("%d:%.9g" % (j + 1, value(x, j)) for j in range(6))))
write("raw.svm", lambda x, j: x[j])
write("scaled.svm", lambda x, j: (x[j] - mean[j]) / deviation[j])
PYTHON
for arguments in '--optimizer newton' '--optimizer sdca --tolerance 1e-6 --epochs 200' \
    '--sync bsp --workers 2 --batch 5 --lr 0.1 --epochs 20'; do
    # shellcheck disable=SC2086 # several words
    expect 0 train lr --data raw.svm --valid raw.svm --normalize standard $arguments --out raw.rbt --json raw.json --quiet
    # shellcheck disable=SC2086 # several words
    expect 0 train lr --data scaled.svm $arguments --out scaled.rbt --json scaled.json --quiet
    check raw.json "abs(last['loss'] / $(loss_of scaled.json) - 1) < 1e-3 and events('eval')[-1]['accuracy'] > 0.85"
    expect 0 predict --model raw.rbt --data raw.svm --as score --out raw.txt
    expect 0 predict --model scaled.rbt --data scaled.svm --as score --out scaled.txt
    paste raw.txt scaled.txt | awk '{ d = $1 - $2; if (d * d > 1e-4 * (1 + $2 * $2)) exit 1 }' || fail "$arguments: not the same scores"
done
expect 0 train lr --data raw.svm --normalize standard --no-bias --out raw.rbt --quiet
awk '{ print $1, "1:" NR % 7 "e-35", "2:" NR % 5 }' raw.svm >faint.svm
expect 0 train lr --data faint.svm --normalize standard --epochs 1
prints 'note: 1 feature varies by less than 1e-30, too little for --normalize standard'
expect 0 train lr --data two.svm --normalize unit --out unit.rbt --quiet
expect 0 eval --model unit.rbt --data two.svm --metric accuracy --json eval.json
check eval.json 'first["accuracy"] > 0.7'

# --class-weight 1=3 is three copies of these rows; the objective is the weighted mean.
awk '{ print } $1 > 0 { print; print }' two.svm >copies.svm
expect 0 train lr --data two.svm --class-weight 1=3 --l2 0.001 --tolerance 1e-9 --json a.json --out a.rbt --quiet
expect 0 train lr --data copies.svm --l2 0.001 --tolerance 1e-9 --json b.json --out b.rbt --quiet
check a.json "abs(last['loss'] / $(loss_of b.json) - 1) < 1e-5"
expect 0 predict --model a.rbt --data two.svm --as score --out a.txt
expect 0 predict --model b.rbt --data two.svm --as score --out b.txt
paste a.txt b.txt | awk '{ d = $1 - $2; if (d * d > 1e-5) exit 1 }' || fail 'weights are not copies'
awk '$1 > 0 && NR % 10 > 0 { next } { print }' two.svm >rare.svm
expect 0 train lr --data rare.svm --out plain.rbt --quiet
expect 0 train lr --data rare.svm --class-weight balanced --out balanced.rbt --quiet
expect 0 eval --model balanced.rbt --data rare.svm --baseline plain.rbt --metric recall --json eval.json
check eval.json 'first["recall"] > 0.5 > first["baseline"]["recall"]'
expect 2 train lr --data two.svm --class-weight 5=1
says "the data has no label '5'; it has -1, 1"
expect 2 train linear --data numbers.svm --class-weight balanced
says 'which predicts numbers; leave it out'

# --l1: zeros, more of them the larger it is
expect 0 train lr --data two.svm --out m.rbt --quiet
expect 0 info m.rbt
prints 'parameters  81, of which 81 are not zero'
nonzeros=81
for l1 in 0.001 0.005 0.02; do
    expect 0 train lr --data two.svm --l1 $l1 --out m.rbt --json run.json --quiet
    check run.json "first['optimizer'] == 'newton' and first['l1'] == $l1"
    expect 0 info m.rbt
    now=$(awk '$1 == "parameters" { print $5 }' "${out:?}")
    if [ "$now" -eq 0 ] || [ "$now" -ge "$nonzeros" ]; then
        fail "l1 $l1: $now parameters are not zero, before it were $nonzeros"
    fi
    nonzeros=$now
done
# ... and the same objective from batches and servers, whatever makes the steps
expect 0 train lr --data two.svm --l1 0.005 --tolerance 1e-7 --epochs 300 --json optimum.json --quiet
for optimizer in 'sgd --lr 0.5' 'momentum --lr 0.05' adagrad adam; do
    # shellcheck disable=SC2086 # several words
    expect 0 train lr --data two.svm --l1 0.005 --sync bsp --workers 2 --batch 5 --epochs 100 --decay mult:0.95 --optimizer $optimizer \
        --json run.json --quiet
    check run.json "-1e-6 < last['loss'] / $(loss_of optimum.json) - 1 < 5e-3"
done

# --patience: ends after so many looks without a better one, and saves the best
expect 0 train lr --data two.svm --valid valid.svm --optimizer sgd --lr 2 --decay none --epochs 500 --l2 0 --patience 4 --json run.json \
    --out best.rbt
check run.json 'last["clocks"] < 500 and len(events("eval")) == last["clocks"] + 1' # and the best once more
check run.json 'min(e["loss"] for e in events("eval")) == events("eval")[-6]["loss"] == events("eval")[-1]["loss"]'
check run.json 'abs(last["loss"] - events("clock")[-5]["loss"]) < 1e-9'
check run.json 'all(events("eval")[-6][k] == events("eval")[-1][k] for k in ("clock", "seconds"))' # with its clock and time
expect 0 eval --model best.rbt --data valid.svm --metric loss --json eval.json
best=$(python3 -c 'import json; print(json.load(open("eval.json"))["loss"])')
check run.json "abs(min(e['loss'] for e in events('eval')) - $best) < 1e-6"
expect 2 train lr --data two.svm --patience 3
says '--patience watches the loss on --valid'

# --tolerance: a tighter one takes longer and ends nearer
expect 0 train lr --data two.svm --optimizer sdca --tolerance 0.1 --json a.json --quiet
expect 0 train lr --data two.svm --optimizer sdca --tolerance 1e-5 --json b.json --quiet
check a.json "last['clocks'] < $(python3 -c 'import json; print(json.loads(open("b.json").readlines()[-1])["clocks"])')"
check a.json "1 < last['loss'] / $(loss_of b.json) < 1.1"

# --folds
expect 0 train lr --data two.svm --folds 4 --json run.json --out m.rbt
[ -s m.rbt ] || fail 'no model after the folds'
grep -q 'folds  *4: loss .*, accuracy [0-9.]* % +- [0-9.]* % on the rows' "$out" || fail 'an accuracy of folds that is no percentage'
check run.json 'sum(": loss" in e["note"] and e["note"].count(" % on the rows") for e in events("note")) == 4 and last["fold_score"] <= 1'
printf '1 1:1\n1 1:2\n1 1:3\n-1 1:-1\n' >rare.svm
expect 0 train lr --data rare.svm --folds 4 --json run.json
check run.json '["same label" in e["note"] for e in events("note") if "fold " in e["note"]].count(True) == 1'
expect 2 train lr --data two.svm --folds 1
says 'leaves nothing to train on'
expect 2 train lr --data two.svm --folds 3 --valid valid.svm
says 'leave out --valid'
expect 2 train lr --data two.svm --folds 900 --class-weight 7=1
says "no label '7'"

# a labels column that begins with a thousand zeros is not a blow-up
awk '{ $1 = 0; print }' two.svm >late.svm
awk '{ $1 = NR % 3; print }' two.svm >>late.svm
expect 0 train linear --data late.svm --quiet

# why it ended is told, and so is that the end was not reached
expect 0 train lr --data two.svm --json run.json
check run.json '"--tolerance" in last["ended"]'
expect 0 train lr --data two.svm --optimizer sdca --tolerance 1e-12 --epochs 2 --json run.json
check run.json '"ended" not in last and any("without coming within" in e["note"] for e in events("note"))'

# an objective of 0 is an end; what was done already is not advised
printf '1 1:1\n' >one.svm
expect 0 train linear --data one.svm --json run.json
check run.json '"as good as 0" in last["ended"] and not events("note") and last["clocks"] < 10'
expect 0 train lr --data two.svm --optimizer sdca --normalize standard --tolerance 1e-12 --epochs 2 --json run.json
check run.json 'any("without coming within" in e["note"] and "--normalize" not in e["note"] for e in events("note"))'

# where passes cost nothing, sdca makes as many as it needs; steps by row do not say that they are near when they are not
awk 'NR <= 60' two.svm >few.svm
expect 0 train svm --data few.svm --json run.json
check run.json "first['optimizer'] == 'newton' and '--tolerance' in last['ended'] and last['clocks'] < 20"
expect 0 train svm --data few.svm --optimizer sdca --json run.json
check run.json 'events("start")[0]["epochs"] == 10000 and "--tolerance" in last["ended"]'
expect 0 train lr --data two.svm --tolerance 1e-6 --json run.json --quiet
expect 0 train lr --data two.svm --optimizer adagrad --json b.json --quiet
check b.json "'ended' not in last or last['loss'] < 1.002 * $(loss_of run.json)"

# the standard input is read once
expect 2 train lr --data - --valid -
says 'read once'

# what a solver keeps of each row and class may be far more than the data: then another one is chosen
expect 0 gen multiclass --rows 30000 --cols 6 --nnz 2 --classes 100 --out classes.svm
expect 0 train softmax --data classes.svm --epochs 1 --json run.json --quiet
check run.json "first['optimizer'] == 'sdca'"
expect 0 gen multiclass --rows 300 --cols 6 --nnz 2 --classes 100 --out classes.svm
expect 0 train softmax --data classes.svm --epochs 1 --json run.json --quiet
check run.json "first['optimizer'] == 'newton'"
