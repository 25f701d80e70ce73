#!/bin/sh
# Models handed on: LIBLINEAR's programs predict the same labels from what is exported, and what is imported from them
# predicts as they do; .npy, JSON and text hold the same numbers.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
awk '{ $1 = ($1 > 0) + (NR % 5 == 0) + 3; print }' data.svm >three.svm
awk '{ $1 = ($1 > 0) ? 0 : 1; print }' data.svm >zero.svm # the first label is the smaller
awk '{ $1 = $1 * 3 + NR % 7; print }' data.svm >numbers.svm
for file in data three zero numbers; do # rows without any feature that the model knows
    { cat "$file.svm" && awk '{ print $1, "999:1" } NR == 3 { exit }' "$file.svm"; } >"$file.test"
done
awk 'BEGIN { print "first\nsecond\tand more\nthird"; while (n++ < 47) print "" }' >vocab

expect 0 train lr --data data.svm --workers 1 --epochs 5 --lr 1 --out lr.rbt --quiet
expect 0 train lr --data zero.svm --workers 1 --epochs 5 --lr 1 --no-bias --out zero.rbt --quiet
expect 0 train svm --data data.svm --workers 1 --epochs 5 --lr 0.1 --out svm.rbt --quiet
expect 0 train softmax --data three.svm --workers 1 --epochs 5 --lr 0.5 --out softmax.rbt --quiet
expect 0 train softmax --data data.svm --workers 1 --epochs 5 --lr 0.5 --no-bias --out two.rbt --quiet
expect 0 train linear --data numbers.svm --workers 1 --epochs 5 --lr 0.1 --out linear.rbt --quiet

# the same numbers in every form
for model in lr softmax linear; do
    expect 0 export --model $model.rbt --format npy --out $model.npy
    expect 0 export --model $model.rbt --format json --out $model.json
    expect 0 export --model $model.rbt --format liblinear --out $model.txt
    expect 0 export --model $model.rbt --format text --out $model.text --vocab vocab
done
python3 - <<'PYTHON' || fail 'the exported forms disagree'
import ast, json, struct
for model in ("lr", "softmax", "linear"):
    raw = open(model + ".npy", "rb").read()
    assert raw[:8] == b"\x93NUMPY\x01\x00"
    length = struct.unpack("<H", raw[8:10])[0]
    about = ast.literal_eval(raw[10:10 + length].decode())
    assert about["descr"] == "<f4" and not about["fortran_order"] and (10 + length) % 64 == 0
    outputs = about["shape"][1] if len(about["shape"]) > 1 else 1
    assert about["shape"][0] == 51 and outputs == (3 if model == "softmax" else 1)
    npy = struct.unpack("<%df" % (51 * outputs), raw[10 + length:])
    f32 = lambda x: struct.unpack("<f", struct.pack("<f", x))[0]
    said = json.load(open(model + ".json"))
    flat = [x for row in said["weights"] for x in (row if outputs > 1 else [row])] + said["bias"]
    assert tuple(map(f32, flat)) == npy, model
    text = open(model + ".txt").read().split("\nw\n")[1].split()
    assert tuple(map(float, text)) == npy, model
    assert said["labels"] == {"lr": [-1, 1], "softmax": [3, 4, 5], "linear": []}[model] and said["features"] == 50
    lines = [line.split("\t") for line in open(model + ".text")]
    names = ["first", "second", "third"] + [str(i) for i in range(4, 51)]
    wanted = [(name, npy[i * outputs:(i + 1) * outputs]) for i, name in enumerate(names)]
    wanted = [("bias", npy[50 * outputs:])] + [(name, w) for name, w in wanted if any(w)]
    assert [(line[0], tuple(f32(float(x)) for x in line[1:])) for line in lines] == wanted, model
PYTHON

# columns of CSV have names of their own
awk 'BEGIN { print "y,one,\"the, two\",word"; for (i = 0; i < 40; i++) print i % 2 "," i % 5 "," i % 2 * 3 "," (i % 3 ? "a" : "b") }' >named.csv
expect 0 train lr --data named.csv --workers 1 --bits 4 --out named.rbt --quiet
expect 0 export --model named.rbt --format text --out -
[ "$(cut -f1 "$out" | sed -n 1,3p | tr '\n' ';')" = 'bias;one;the, two;' ] || fail 'the columns have no names'
expect 0 export --model named.rbt --format json --out named.json
check named.json 'last["names"] == ["one", "the, two"] + [None] * 16'
printf 'p\nq\n' >two
expect 0 export --model named.rbt --format json --vocab two --out named.json
check named.json 'last["names"] == ["p", "q"] + [None] * 16'
expect 0 export --model lr.rbt --format json --out named.json
check named.json '"names" not in last'
sed '1s/.*/y,one,"the, two",word/; s/,[abw][a-z]*$//' named.csv >numbers.csv
expect 0 train lasso --data numbers.csv --workers 1 --l1 0.01 --sync bsp --out lasso.rbt --quiet
expect 0 export --model lasso.rbt --format json --out named.json
check named.json 'last["vocabulary"] == ["one", "the, two"]'

# there and back again
for model in lr softmax linear; do
    expect 0 import --format liblinear --model $model.txt --out back.rbt
    expect 0 export --model back.rbt --format liblinear --out back.txt
    cmp $model.txt back.txt || fail "$model: an exported model is imported as another one"
done

# refusals
expect 2 export --model lr.rbt --format xml --out x
says 'choose liblinear, npy, json or text'
expect 2 export --model lr.rbt --format npy --out x --vocab vocab
says '--vocab goes with'
expect 2 export --model lr.rbt --format npy
says '--out is missing'
expect 1 export --model data.svm --format npy --out x
says 'is not a Rubato model'
expect 1 import --model data.svm --out x.rbt
says 'data.svm:1:'
expect 2 import --model lr.txt --out x.rbt --format npy
says 'only liblinear can'
head -n 49 vocab >few
cat vocab few >many
for vocab in few:49 many:99; do
    for format in text json; do
        expect 1 export --model lr.rbt --format $format --out x --vocab ${vocab%:*}
        says "${vocab%:*}: has ${vocab#*:} names, the model 50 features"
    done
done
expect 1 export --model lasso.rbt --format json --out x --vocab vocab
says 'vocab: has 50 names, the model 2 features'
expect 1 export --model named.rbt --format text --out x --vocab vocab
says 'vocab: has 50 names, the model 18 features'
awk '{ $1 = $1 + 0.5; print }' data.svm >half.svm
expect 0 train lr --data half.svm --workers 1 --epochs 1 --out half.rbt --quiet
expect 1 export --model half.rbt --format liblinear --out x
says 'labels are whole numbers'
[ ! -e x ] && [ ! -e x.rbt ] || fail 'a refusal left a file behind'

if ! command -v liblinear-predict >/dev/null || ! command -v liblinear-train >/dev/null; then
    echo 'liblinear-predict is not installed (package liblinear-tools): not compared with it'
    exit 0
fi

same() # FILE FILE: the same numbers, up to what %g leaves of them
{
    python3 - "$1" "$2" <<'PYTHON'
import sys
a, b = ([float(x) for x in open(name)] for name in sys.argv[1:])
sys.exit(len(a) != len(b) or any(abs(x - y) > 1e-4 * (1 + abs(y)) for x, y in zip(a, b)))
PYTHON
}

for pair in lr:data zero:zero svm:data softmax:three two:data linear:numbers; do
    model=${pair%:*} test=${pair#*:}.test
    expect 0 export --model "$model.rbt" --format liblinear --out theirs
    liblinear-predict "$test" theirs predicted >"$out" 2>"$err" || fail "liblinear-predict on $model"
    expect 0 predict --model "$model.rbt" --data "$test" --out ours
    same predicted ours || fail "$model: liblinear-predict on the export differs from predict"
done

for file in data three zero; do
    for options in '-s 0' '-s 0 -B 1' '-s 1 -B 1' '-s 2' '-s 3' '-s 4' '-s 5' '-s 6 -B 1 -c 0.01' '-s 0 -B 0' '-s 7 -B 2'; do
        # shellcheck disable=SC2086 # options are meant to be split
        liblinear-train -q $options "$file.svm" theirs >"$out" 2>"$err" || fail "liblinear-train $options"
        liblinear-predict "$file.test" theirs predicted >"$out" 2>"$err" || fail "liblinear-predict $options"
        expect 0 import --model theirs --out ours.rbt
        expect 0 predict --model ours.rbt --data "$file.test" --out ours
        same predicted ours || fail "$file $options: predict with the imported model differs from liblinear-predict"
    done
done
for options in '-s 11' '-s 12 -B 1' '-s 13'; do
    # shellcheck disable=SC2086
    liblinear-train -q $options numbers.svm theirs >"$out" 2>"$err" || fail "liblinear-train $options"
    liblinear-predict numbers.test theirs predicted >"$out" 2>"$err" || fail "liblinear-predict $options"
    expect 0 import --model theirs --out ours.rbt
    expect 0 predict --model ours.rbt --data numbers.test --out ours
    same predicted ours || fail "regression $options: predict with the imported model differs"
done
