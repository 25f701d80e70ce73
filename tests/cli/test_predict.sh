#!/bin/sh
# A trained model, used: predict, eval and info agree with each other and with the data.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
expect 0 train lr --data data.svm --workers 2 --epochs 30 --lr 2 --out model.rbt --quiet

expect 0 predict --model model.rbt --data data.svm
[ "$(wc -l <"$out")" -eq 400 ] || fail 'not one line per row'
cp "$out" labels
[ -z "$(grep -vxE -- '-?1' labels || :)" ] || fail 'labels other than those of the data'
expect 0 predict --model model.rbt --data data.svm --as probability --out probabilities
[ ! -s "$out" ] || fail 'predict --out prints'
expect 0 predict --model model.rbt --data data.svm --as score --out scores
awk '{ $1 = NR % 3 + 9; print }' data.svm >three.svm # 9, 10, 11, ascending by number
expect 0 train softmax --data three.svm --workers 1 --epochs 2 --lr 0.5 --out softmax.rbt --quiet
for as in label probability score; do
    expect 0 predict --model softmax.rbt --data three.svm --as $as --out softmax.$as
done
paste -d ' ' softmax.label softmax.probability softmax.score | awk '{
    for (best = k = 2; k <= 4; k++) if ($k > $best) best = k
    for (top = k = 5; k <= 7; k++) if ($k > $top) top = k
    if (NF != 7 || $1 != best + 7 || $1 != top + 4) exit 1 }' || fail 'not one column for each class, in the order of the labels'
expect 0 predict --help
prints 'Of softmax the last two are one for each'
python3 - <<'PYTHON' || fail 'label, probability and score disagree'
import math
rows = list(zip(*(map(float, open(name)) for name in ("labels", "probabilities", "scores"))))
assert all((label > 0) == (score > 0) for label, probability, score in rows)
assert all(abs(probability - 1 / (1 + math.exp(-score))) < 1e-6 for label, probability, score in rows)
PYTHON

expect 0 eval --model model.rbt --data data.svm
prints 'rows      400'
python3 - "$out" <<'PYTHON' || fail 'eval disagrees with predict'
import sys
said = dict(line.split(None, 1) for line in open(sys.argv[1]).read().split("\n\n")[0].splitlines())
truth = [float(line.split()[0]) for line in open("data.svm")]
right = sum(a == float(b) for a, b in zip(truth, open("labels")))
assert abs(float(said["accuracy"].split()[0]) - 100 * right / len(truth)) < 1e-3, (said, right)
assert right > 0.6 * len(truth)
PYTHON

# standard input and output
"$RUBATO" predict --model model.rbt --data - --out - <data.svm >piped || fail 'predict from standard input'
cmp piped labels || fail 'predict from standard input differs'
"$RUBATO" eval --model model.rbt --data - <data.svm >"$out" || fail 'eval from standard input'
prints 'rows      400'

# rows without labels
cut -d' ' -f2- data.svm >bare.svm
expect 0 predict --model model.rbt --data bare.svm
cmp "$out" labels || fail 'rows without labels are predicted otherwise'
[ ! -s "$err" ] || fail 'rows without labels are complained about'
printf '1:1 2:1\n' | "$RUBATO" predict --model model.rbt --data - >"$out" || fail 'a row without a label from standard input'
expect 1 eval --model model.rbt --data bare.svm
says 'expected a label'

# features that the model does not know are left out
printf '1 1:1 999:5\n-1 2:1\n' >wide.svm
expect 0 predict --model model.rbt --data wide.svm
[ "$(wc -l <"$out")" -eq 2 ] || fail 'unknown features break predict'
says 'the data has 999 features, the model was trained with 50 and does not look at the others'
expect 0 eval --model model.rbt --data wide.svm --metric accuracy
says 'the data has 999 features, the model was trained with 50'

# a model in the place of data is told apart; columns of a CSV file that are not those of the training are told
expect 1 predict --model model.rbt --data model.rbt
says 'model.rbt: is a model of Rubato, not data'
expect 1 train lr --data model.rbt
says 'model.rbt: is a model of Rubato, not data'
expect 1 import --model model.rbt --out x.rbt
says 'is no text'
printf 'y,a,b\n1,2.5,3\n0,1,2\n1,7,4\n' >train.csv
expect 0 train lr --data train.csv --out csv.rbt --quiet
expect 0 predict --model csv.rbt --data train.csv
[ ! -s "$err" ] || fail 'the columns of the training are complained about'
printf 'y,a,b\n1,2.5,3\n0,oops,2\n' >moved.csv
expect 1 predict --model csv.rbt --data moved.csv
says "moved.csv:3: 'oops' in column 2, a: expected a number, as everywhere in this column of the training data"
expect 1 eval --model csv.rbt --data moved.csv
says "'oops' in column 2, a"
printf 'a,b\n2.5,3\n' >bare.csv
for label in '' '--label none'; do
    # shellcheck disable=SC2086 # an option and its value
    expect 0 predict --model csv.rbt --data bare.csv $label
    [ ! -s "$err" ] || fail 'data without labels is complained about'
done

# info
expect 0 info model.rbt
prints 'trained model'
prints 'features    50'
prints 'parameters  51'
prints 'largest weights'
expect 0 info data.svm
prints 'rows        400'
prints 'features    50'
prints '-1: '
prints 'values'

# generated data is a function of its options
expect 0 gen lr --out again.svm --rows 400 --cols 50 --nnz 8 --seed 3
cmp data.svm again.svm || fail 'gen is not repeatable'
expect 0 gen lr --out - --rows 5
[ "$(wc -l <"$out")" -eq 5 ] || fail 'gen to standard output'
