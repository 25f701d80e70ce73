#!/bin/sh
# A model knows how its data was read: predict, eval and --valid read theirs in the same way, or refuse it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

scores()
{
    expect 0 predict "$@" --as score
    cat "$out"
}

# Features that are counted from 0, in files where index 0 does not occur.
python3 - <<'PYTHON'
rows = [(1, (1, 3, 5)), (-1, (0, 2, 4))] * 20
def write(name, rows, base):
    with open(name, "w") as file:
        for label, features in rows:
            file.write("%d %s\n" % (label, " ".join("%d:1" % (i + base) for i in features)))
write("from0.svm", rows, 0)
write("from1.svm", rows, 1)
test = [(1, (1, 3, 5)), (-1, (2, 4)), (1, (3, 5)), (-1, (4,))]
write("test0.svm", test, 0)
write("test1.svm", test, 1)
PYTHON
expect 0 train lr --data from0.svm --workers 1 --out m0.rbt --valid test0.svm --json valid.json --quiet
check valid.json 'events("eval")[-1]["accuracy"] == 1'
expect 0 eval --model m0.rbt --data test0.svm --metric accuracy
prints 'accuracy  100'
expect 0 train lr --data from1.svm --workers 1 --out m1.rbt --quiet
scores --model m1.rbt --data test1.svm >wanted
scores --model m0.rbt --data test0.svm >given
cmp wanted given || fail 'the base is forgotten'
python3 - "$RUBATO" <<'PYTHON' >piped || fail 'an index 0 comes too late for a model that counts from 0'
import subprocess, sys
with subprocess.Popen([sys.argv[1], "predict", "--model", "m0.rbt", "--data", "-", "--as", "score"],
                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
    for row in ("1 1:1 3:1 5:1", "-1 0:1 2:1"):
        print(row, file=process.stdin, flush=True)
        print(process.stdout.readline(), end="")
sys.exit(process.returncode)
PYTHON
[ "$(head -n 1 piped)" = "$(head -n 1 wanted)" ] || fail 'a pipe is read otherwise'
scores --model m1.rbt --data test0.svm --base 0 >given
cmp wanted given || fail '--base 0 is not heeded'
expect 1 eval --model m1.rbt --data from0.svm
says 'from0.svm:2: the row has an index 0, and features are counted from 1 here'
expect 1 train lr --data from1.svm --valid from0.svm
says 'from0.svm:2: the row has an index 0'
expect 0 train lr --data test0.svm --base 0 --out m0b.rbt --quiet
expect 0 info m0b.rbt
prints 'LIBSVM text, features counted from 0'
expect 0 convert --data from0.svm --to libsvm --out back.svm
says 'counted from 0 in the data and from 1 in what is written; give --base 1 when a model'
cmp back.svm from1.svm || fail 'convert counts otherwise'
for command in eval predict; do
    expect 0 $command --model m0.rbt --data back.svm
    says 'of LIBSVM text, that its features count from 0 (--base says otherwise)'
done
printf '1 | 900:1\n-1 | 901:1\n' >wide.vw
expect 0 convert --data wide.vw --bits 10 --out wide.cache
for command in eval predict; do
    expect 1 $command --model m0.rbt --data wide.cache
    says 'wide.cache: is Vowpal Wabbit text, and the training data was LIBSVM text'
done
expect 0 eval --model m0.rbt --data back.svm --base 1
prints 'accuracy  100'
[ ! -s "$err" ] || fail 'a note without need'
expect 0 convert --data from1.svm --to libsvm --out back.svm
[ ! -s "$err" ] || fail 'a note without need'
expect 2 predict --model m0.rbt --data test0.svm --base 2
says "--base '2' is unknown; choose auto, 0 or 1"
expect 2 train lr --data from0.svm --base 2
says '--base'
expect 2 train sketch --data from0.svm --base 0
says '--base makes no sense for sketch'

# The same through caches, which are kept, built block by block, or made on purpose; and for models of methods.
for how in '--cache auto' '--cache auto' '--store disk'; do
    # shellcheck disable=SC2086 # an option and its value
    expect 0 train lr --data from0.svm $how --out m.rbt --quiet
    expect 0 eval --model m.rbt --data test0.svm --metric accuracy
    prints 'accuracy  100'
done
expect 0 convert --data from0.svm --out from0.cache
expect 0 train lr --data from0.cache --out m.rbt --quiet
expect 0 eval --model m.rbt --data test0.svm --metric accuracy
prints 'accuracy  100'
for data in from0.svm from0.cache; do
    expect 0 launch --local 2 -- train lr --data $data --out m.rbt --quiet
    expect 0 eval --model m.rbt --data test0.svm --metric accuracy
    prints 'accuracy  100'
done
expect 0 train l1lr --l1 0.01 --sync bsp --workers 1 --data from0.svm --out m.rbt --quiet
expect 0 predict --model m.rbt --data test0.svm
cp "$out" given
expect 0 train l1lr --l1 0.01 --sync bsp --workers 1 --data from1.svm --out m.rbt --quiet
expect 0 predict --model m.rbt --data test1.svm
cmp "$out" given || fail 'a model of a method forgets the base'

# Hashes.
i=0
while [ $i -lt 40 ]; do
    printf '1 | a b%d\n-1 | c b%d\n' $i $i
    i=$((i + 1))
done >a.vw
expect 0 train lr --data a.vw --bits 10 --out b10.rbt --quiet
scores --model b10.rbt --data a.vw --bits 10 >wanted
scores --model b10.rbt --data a.vw >given
cmp wanted given || fail 'the bits are forgotten'
expect 2 predict --model b10.rbt --data a.vw --bits 12
says '--bits 12: the training data was hashed to 2^10 columns'
expect 2 eval --model b10.rbt --data a.vw --base 1
says '--base makes no sense for a.vw'

# Columns: the label's, and those in another order.
python3 - <<'PYTHON'
import random
random.seed(1)
rows = [(random.random(), random.random(), random.choice("xz")) for _ in range(100)]
for name, order in (("r1", "abwy"), ("r2", "bawy"), ("bare", "wba"), ("more", "abwyk"), ("less", "awy")):
    with open(name + ".csv", "w") as file:
        file.write(",".join(order) + "\n")
        for a, b, w in rows:
            cells = {"a": "%g" % a, "b": "%g" % b, "w": w, "y": str(int(a > b)), "k": "7"}
            file.write(",".join(cells[c] for c in order) + "\n")
PYTHON
expect 0 train lr --data r1.csv --label y --out r.rbt --valid r2.csv --quiet
scores --model r.rbt --data r1.csv --label y >wanted
for data in r1.csv r2.csv bare.csv; do
    scores --model r.rbt --data $data >given
    cmp wanted given || fail "$data is read otherwise than the training data"
done
expect 0 eval --model r.rbt --data r1.csv --metric accuracy
cp "$out" given
expect 0 eval --model r.rbt --data r2.csv --metric accuracy
cmp "$out" given || fail 'eval reads columns in another order'
expect 0 info r.rbt
prints 'CSV of 4 columns, label y, hashed to 2^18 columns'
expect 1 predict --model r.rbt --data more.csv
says "more.csv: column 5, 'k', is no feature of the training data"
expect 1 predict --model r.rbt --data less.csv
says "less.csv: has no column 'b', which the training data had"
expect 2 eval --model r.rbt --data bare.csv
says "bare.csv: has no column 'y', which is the label in the training data"
expect 1 train lr --data r1.csv --valid less.csv --label y
says "less.csv: has no column 'b'"
expect 0 convert --data r2.csv --label y --out r2.cache
expect 1 predict --model r.rbt --data r2.cache
says 'r2.cache: its columns are not those of the training data'

# A cache is read as its text would be, or refused; so are several of them.
expect 0 convert --data test0.svm --out test0.cache
for command in eval predict; do
    expect 1 $command --model m0.rbt --data test0.cache
    says 'test0.cache: its features count from 1, those of the training data from 0; make it again with --base 0'
done
expect 1 train lr --data from0.svm --valid test0.cache
says 'test0.cache: its features count from 1'
expect 0 convert --data test0.svm --base 0 --out test0.cache
expect 0 eval --model m0.rbt --data test0.cache --metric accuracy
prints 'accuracy  100'
expect 0 convert --data back.svm --out back.cache
expect 0 eval --model m0.rbt --data back.cache --base 1 --metric accuracy
prints 'accuracy  100'
expect 0 convert --data from0.svm --out part-0.cache
expect 0 convert --data from1.svm --out part-1.cache
expect 1 info part-0.cache part-1.cache
says 'part-1.cache: its features count from 1, those of part-0.cache from 0; make part-1.cache again with --base 0'
for how in "part-0.cache part-1.cache" "part-0.cache part-1.cache --store disk" "part-{rank}.cache --workers 2"; do
    # shellcheck disable=SC2086 # paths and options
    expect 1 train lr --data $how
    says 'part-1.cache: its features count from 1'
done
expect 1 launch --local 2 -- train lr --data 'part-{rank}.cache' --workers 2
says 'part-1.cache: its features count from 1'

# Two models that read differently cannot be measured on the same text.
expect 2 eval --model m0.rbt --baseline m1.rbt --data test0.svm
says '--baseline m1.rbt: its training data was read in another way'

# Text of another format has its features in other columns: refused, whole and streamed, in text and in caches.
printf '1 | 1:0.5 3:1\n-1 | 2:1\n' >few.vw
printf '+1 1:0.5 3:1\n-1 2:1\n' >few.svm
printf 'y,a,b,c\n1,0.5,0,1\n-1,0,1,0\n' >few.csv
for format in vw svm csv; do
    expect 0 train lr --data few.$format --workers 1 --out $format.rbt --quiet
    expect 0 convert --data few.$format --out few-$format.cache
done
while read -r model data is was; do
    for made in few.$data few-$data.cache; do
        for command in eval predict 'eval --baseline svm.rbt'; do
            [ "$command" != 'eval --baseline svm.rbt' ] || [ "$model" = svm ] || continue
            # shellcheck disable=SC2086 # a command and its option
            expect 1 $command --model "$model.rbt" --data "$made"
            says "$made: is $(echo "$is" | tr _ ' '), and the training data was $(echo "$was" | tr _ ' '), whose"
        done
        expect 1 train lr --data "few.$model" --valid "$made"
        says "$made: is $(echo "$is" | tr _ ' '), and the training data was"
    done
    "$RUBATO" predict --model "$model.rbt" --data - <"few.$data" >"$out" 2>"$err" && fail 'a pipe of another format is read'
    says "standard input: is $(echo "$is" | tr _ ' '), and"
done <<'CASES'
vw svm LIBSVM_text Vowpal_Wabbit_text
vw csv CSV Vowpal_Wabbit_text
svm vw Vowpal_Wabbit_text LIBSVM_text
svm csv CSV LIBSVM_text
csv svm LIBSVM_text CSV
csv vw Vowpal_Wabbit_text CSV
CASES
expect 1 launch --local 2 -- train lr --data few.vw --valid few.svm
says 'few.svm: is LIBSVM text, and the training data was Vowpal Wabbit text'
scores --model vw.rbt --data few.vw >wanted
for data in few-vw.cache 'few.svm --base 0'; do
    # shellcheck disable=SC2086 # a path and an option
    scores --model vw.rbt --data $data >given
    cmp wanted given || fail "$data is read otherwise"
done
scores --model csv.rbt --data few.csv >wanted
scores --model csv.rbt --data few.svm --base 1 >given
cmp wanted given || fail '--base does not say that the indices are those features'
expect 0 convert --data few.svm --out made.csv
scores --model svm.rbt --data few.svm >wanted
scores --model svm.rbt --data made.csv >given
cmp wanted given || fail 'what convert wrote is read otherwise'

# A model that does not know reads as before.
expect 0 export --model svm.rbt --format liblinear --out svm.liblinear
expect 0 import --model svm.liblinear --out import.rbt
for data in few.vw few.csv few.svm; do
    expect 0 eval --model import.rbt --data $data
done
expect 1 eval --model import.rbt --baseline svm.rbt --data few.vw
says 'few.vw: is Vowpal Wabbit text, and the training data was LIBSVM text'

# Two models of methods likewise.
for format in vw svm; do
    expect 0 train l1lr --l1 0.01 --sync bsp --workers 1 --data few.$format --out l1-$format.rbt --quiet
done
expect 2 eval --model l1-svm.rbt --baseline l1-vw.rbt --data few.svm
says '--baseline l1-vw.rbt: its training data was read in another way than that of l1-svm.rbt'
expect 1 eval --model l1-vw.rbt --data few.svm
says 'few.svm: is LIBSVM text, and the training data was Vowpal Wabbit text'
