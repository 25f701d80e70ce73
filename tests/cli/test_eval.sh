#!/bin/sh
# rubato eval: metrics agree with their definitions on what predict says, fit the model, and compare with a baseline.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
expect 0 train lr --data data.svm --workers 1 --epochs 20 --lr 2 --out model.rbt --quiet
expect 0 train lr --data data.svm --workers 1 --epochs 1 --lr 0.1 --out first.rbt --quiet
expect 0 predict --model model.rbt --data data.svm --as score --out scores
expect 0 eval --model model.rbt --data data.svm --json all.json
prints 'true \ predicted'
python3 - <<'PYTHON' || fail 'eval disagrees with the definitions'
import json, math
said = json.load(open("all.json"))
rows = [(float(a.split()[0]) > 0, float(b)) for a, b in zip(open("data.svm"), open("scores"))]
tp = sum(y and z > 0 for y, z in rows)
fp = sum(not y and z > 0 for y, z in rows)
fn = sum(y and z <= 0 for y, z in rows)
tn = len(rows) - tp - fp - fn
yes, no = [z for y, z in rows if y], [z for y, z in rows if not y]
auc = sum((a > b) + (a == b) / 2 for a in yes for b in no) / len(yes) / len(no)
loss = sum(math.log1p(math.exp(-z if y else z)) for y, z in rows) / len(rows)
wanted = {"accuracy": (tp + tn) / len(rows), "auc": auc, "precision": tp / (tp + fp), "recall": tp / (tp + fn),
          "f1": 2 * tp / (2 * tp + fp + fn), "logloss": loss, "loss": loss}
for name, value in wanted.items():
    assert abs(said[name] - value) < 1e-6, (name, said[name], value)
assert said["confusion"] == [[tn, fp], [fn, tp]] and said["labels"] == [-1, 1] and said["rows"] == len(rows)
assert "rmse" not in said and "baseline" not in said
PYTHON

# some metrics only, and refusals of those that do not fit
expect 0 eval --model model.rbt --data data.svm --metric auc,f1
[ "$(wc -l <"$out")" -eq 3 ] || fail 'more than was asked for'
expect 2 eval --model model.rbt --data data.svm --metric rmse
says 'rmse is for models that predict numbers'
expect 2 eval --model model.rbt --data data.svm --metric acuracy
says "did you mean 'accuracy'?"
expect 2 eval --model model.rbt --data data.svm --metric accuracy,
says "--metric '' is unknown"
expect 2 eval --model model.rbt --data data.svm --metric something-very-long-that-is-no-metric-at-all
says 'is unknown; there are loss, logloss'

# beside another model; JSON alone on the standard output
expect 0 eval --model model.rbt --data data.svm --baseline first.rbt
prints 'baseline'
expect 0 eval --model model.rbt --data data.svm --baseline first.rbt --json -
check "$out" 'len(lines) == 1 and first["ratio"]["loss"] == first["loss"] / first["baseline"]["loss"]'
check "$out" 'first["ratio"]["loss"] < 1 < first["ratio"]["accuracy"]'
expect 0 eval --model model.rbt --data data.svm --baseline model.rbt --json same.json
check same.json 'all(r == 1 for r in first["ratio"].values())'

# losses of two kinds have no ratio, what both have does
expect 0 train svm --data data.svm --quiet --out svm.rbt
expect 0 eval --model model.rbt --data data.svm --baseline svm.rbt --json other.json
says 'no ratio of loss: that of lr is another one than that of svm; --metric accuracy compares them'
grep -q '^loss .* -$' "$out" || fail 'the losses of lr and svm have a ratio'
check other.json 'first["ratio"]["loss"] is None and first["baseline"]["loss"] > 0 and first["ratio"]["accuracy"] > 0'
expect 0 eval --model model.rbt --data data.svm --baseline svm.rbt --metric accuracy
[ ! -s "$err" ] || fail 'a ratio that is not asked for is missed'

# numbers instead of classes: rmse in eval and while training
awk '{ $1 = $1 * 3 + NR % 7; print }' data.svm >numbers.svm
expect 0 train linear --data numbers.svm --valid numbers.svm --workers 1 --epochs 5 --lr 0.1 --out linear.rbt --json run.json
prints 'rmse'
check run.json 'all("accuracy" not in e and e["rmse"] > 0 for e in events("eval")) and events("eval")'
expect 0 eval --model linear.rbt --data numbers.svm --json linear.json
check linear.json 'abs(first["rmse"] ** 2 / 2 - first["loss"]) < 1e-9 and "accuracy" not in first and first["r2"] < 1'
check linear.json '"huber" not in first'
expect 0 eval --model linear.rbt --data numbers.svm
! grep -q huber "$out" || fail 'a huber loss whose delta nobody chose'
expect 0 eval --model linear.rbt --data numbers.svm --metric huber,rmse
grep -q '^huber  *[0-9.]* (delta 1)$' "$out" || fail 'no delta'
for delta in 1 2; do
    expect 0 train huber --data numbers.svm --delta $delta --quiet --out huber$delta.rbt
done
expect 0 eval --model huber2.rbt --data numbers.svm
grep -q '^huber  *[0-9.]* (delta 2)$' "$out" || fail 'another delta than that of the model'
expect 0 eval --model huber1.rbt --data numbers.svm --baseline huber2.rbt --json other.json
says 'no ratio of loss: its delta is 1 for one model and 2 for the other; --metric rmse compares them'
says 'no ratio of huber: its delta'
check other.json 'first["ratio"]["loss"] is None and first["ratio"]["huber"] is None and first["ratio"]["rmse"] > 0'
expect 0 eval --model huber1.rbt --data numbers.svm --baseline linear.rbt --json other.json
says 'no ratio of loss: that of huber is another one than that of linear; --metric rmse compares them'
check other.json 'first["ratio"]["loss"] is None and first["ratio"]["huber"] > 0'
expect 2 eval --model linear.rbt --data numbers.svm --metric auc
says 'use rmse'
expect 2 eval --model linear.rbt --data numbers.svm --metric confusion
says 'confusion is for 2 to'
expect 2 eval --model linear.rbt --data numbers.svm --baseline model.rbt
says 'two of a kind'

# three classes
awk '{ $1 = ($1 > 0) + (NR % 5 == 0); print }' data.svm >three.svm
expect 0 train softmax --data three.svm --workers 1 --epochs 5 --lr 0.5 --out softmax.rbt --quiet
expect 0 eval --model softmax.rbt --data three.svm --json three.json
check three.json 'len(first["confusion"]) == 3 and sum(map(sum, first["confusion"])) == 400 and "auc" not in first'
expect 2 eval --model softmax.rbt --data three.svm --metric auc
says 'the model has 3'
expect 1 eval --model model.rbt --data three.svm
says 'has the label 2'

# where the JSON cannot go
expect 1 eval --model model.rbt --data data.svm --json no/such/folder
says 'no/such/folder'

# a label that the model does not know is told with its file and line, wherever it is
printf -- '-1 1:1\n1 2:1\n' >two.svm
printf '# none\n1 1:1\n5 1:1\n' >third.svm
expect 0 train lr --data two.svm --epochs 1 --out two.rbt --quiet
expect 1 eval --model two.rbt --data two.svm third.svm
says 'third.svm:3: the row has the label 5, but'
expect 1 train lr --data two.svm third.svm --epochs 1
says 'more than two labels: -1 (two.svm:1), 1 (two.svm:2) and 5 (third.svm:3)'
expect 1 train l1lr --l1 0.1 --data two.svm third.svm --epochs 1
says 'more than two labels: -1 (two.svm:1), 1 (two.svm:2) and 5 (third.svm:3)'
expect 1 train lr --data two.svm --valid third.svm --epochs 1
says 'third.svm:3: the row has the label 5, but'

# every metric relative to one sequential pass, as docs/training.md has it
expect 0 train lr --data data.svm --sync sequential --optimizer sgd --epochs 1 --out one.rbt
prints 'sequential in shared memory'
expect 0 eval --model model.rbt --data data.svm --baseline one.rbt --json -
check "$out" 'set(first["ratio"]) >= {"loss", "logloss", "accuracy", "auc", "f1"}'

# a linear model of a method beside one of gradients, both ways; others are told apart
expect 0 train l1lr --data data.svm --l1 0.001 --epochs 5 --out l1.rbt --quiet
expect 0 train kmeans --data data.svm --clusters 2 --epochs 2 --out means.rbt --quiet
for pair in 'model.rbt l1.rbt' 'l1.rbt model.rbt'; do
    expect 0 eval --model "${pair% *}" --baseline "${pair#* }" --data data.svm --metric accuracy --json both.json
    check both.json 'first["ratio"]["accuracy"] == first["accuracy"] / first["baseline"]["accuracy"]'
done
expect 2 eval --model model.rbt --baseline means.rbt --data data.svm
says '--baseline means.rbt is a model of kmeans, model.rbt one of lr: they have no metric in common; give two of a kind'
expect 2 eval --model means.rbt --baseline model.rbt --data data.svm
says '--baseline model.rbt is a model of lr, means.rbt one of kmeans: they have no metric in common; give two of a kind'

# labels that are numbers among words are the same however they are written
printf 'y,a\n1.0,1\n2.0,2\nx,3\n1.0,1\n2.0,2\nx,3\n' >words.csv
printf 'y,a\n1,1\n2,2\n' >numbers.csv
expect 0 train softmax --data words.csv --out words.rbt --quiet
expect 0 eval --model words.rbt --data numbers.csv --metric accuracy
prints '100.0000 %'
