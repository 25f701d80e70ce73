#!/bin/sh
# rubato info: what it says of data and of models agrees with the files.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# data: Delta, rho and label counts against plain loops
"$RUBATO" gen lr --out data.svm --rows 300 --cols 2000 --nnz 3 --seed 3
expect 0 info data.svm
python3 - "$out" <<'PYTHON' || fail 'info disagrees with the data'
import sys
said = dict((line[:11].strip(), line[12:]) for line in open(sys.argv[1]))
rows = [(line.split()[0], {item.split(":")[0] for item in line.split()[1:] if not item.endswith(":0")}) for line in open("data.svm")]
features = [f for _, row in rows for f in row]
assert said["rows"].split()[0] == "300" and said["non-zeros"].split(";")[0] == str(len(features))
assert "of which %d occur" % len(set(features)) in said["features"]
delta = max(features.count(f) for f in set(features)) / 300
rho = max(sum(bool(a & b) for _, b in rows) for _, a in rows) / 300
assert abs(float(said["Delta"].split(":")[0]) - delta) < 1e-4 and abs(float(said["rho"].split(":")[0]) - rho) < 1e-4
assert said["labels"].startswith("-1: %d rows" % sum(label == "-1" for label, _ in rows))
PYTHON

awk 'BEGIN { for (i = 1; i <= 2000; i++) print i / 8, (i % 7 + 1) ":1" }' >numbers.svm
expect 0 info numbers.svm
prints 'numbers, 0.125 to 250'
printf '16777216 1:1\n4294967296 1:-1\n' >long.svm
expect 0 info long.svm
prints '16777216: 1 row'
prints '4294967296: 1 row'
expect 0 train lr --data long.svm --out long.rbt --quiet
expect 0 info long.rbt
prints 'labels      16777216, 4294967296'
expect 0 predict --model long.rbt --data long.svm
prints '4294967296'
printf '123456789 1:1\n987654321 1:-1\n' >longer.svm
expect 1 train lr --data longer.svm
says "longer.svm:1: the label '123456789' would become 123456792, for labels are kept as 32-bit floats"
expect 1 train l1lr --l1 0.1 --data longer.svm
says "longer.svm:1: the label '123456789' would become"
expect 1 eval --model long.rbt --data longer.svm
says "longer.svm:1: the label '123456789'"
expect 0 train linear --data longer.svm --quiet
awk 'BEGIN { for (i = 1; i <= 30; i++) print i, "1:1" }' >many.svm
expect 0 info many.svm
prints 'and 10 other labels'
prints 'Delta       1: 100 % of the rows have feature '
prints 'rho         1: no row shares a feature with more than 100 % of the rows'

# a model of each kind, with names of features
printf 'alpha\nbeta\t17\ngamma\n' >vocab
awk 'BEGIN { for (i = 0; i < 90; i++) print i % 3 + 1, (i % 3 + 1) ":1" }' >three.svm
expect 0 train softmax --data three.svm --workers 1 --epochs 20 --lr 1 --out softmax.rbt --quiet
expect 0 info softmax.rbt --vocab vocab
prints 'labels      1, 2, 3'
prints 'parameters  12'
python3 - "$out" <<'PYTHON' || fail 'the largest weight of each class is not its own feature'
import sys
text = open(sys.argv[1]).read()
for label, name in (("1", "alpha"), ("2", "beta"), ("3", "gamma")):
    first = text.split(" label %s\n" % label)[1].split("\n")[0].split()
    assert first[0] == label and float(first[1]) > 0 and first[2] == name, first
PYTHON
expect 0 train linear --data numbers.svm --workers 1 --epochs 1 --lr 0.001 --no-bias --out linear.rbt --quiet
expect 0 info linear.rbt
prints 'model       linear'
! grep -q '^labels\|^bias' "$out" || fail 'a regression without bias has labels or a bias'
expect 0 gen regression --rows 100 --cols 10 --nnz 3 --out many.svm
expect 0 info many.svm
prints 'labels      numbers, '
seq -f 'w%g,1' 1500 >words.csv
expect 0 info words.csv
prints 'labels      1500 different words'

# rows without a label are not counted with those of label 0, nor, of words, with those of the first
printf 'y,x\n1,2\n,3\n' >some.csv
expect 0 info some.csv
prints 'labels      1: 1 row (100.00 %)'
! grep -q '0: 1 row' "$out" || fail 'a row without a label is counted'
says '1 row has no label'
printf 'y,x\n1,2\n,3\n0,4\n' >some.csv
expect 0 info some.csv
prints 'labels      0: 1 row (50.00 %)'
printf 'y,x\na,2\n,3\nb,3\n' >some.csv
expect 0 info some.csv
prints 'labels      a: 1 row (50.00 %)'
expect 0 info some.csv --label none
prints 'labels      none'
awk 'BEGIN { print "y,x"; for (i = 1; i <= 2000; i++) print i / 8 "," i; print ",1" }' >some.csv
expect 0 info some.csv
prints 'labels      numbers, 0.125 to 250, 125.062 on average'

# features are called what the data calls them, or counted as it counts
largest() # FILE, WHAT IS SAID OF A MODEL, ITS LARGEST WEIGHT, THE SAME OF L1LR
{
    expect 0 train linear --data "$1" --quiet --optimizer newton --out named.rbt
    expect 0 info named.rbt
    prints "largest weights ($2)"
    grep -A1 'largest weights' "$out" | grep -q "$3" || fail "$1: the largest weight is not that of $3"
    expect 0 train l1lr --data "$1" --l1 1e-4 --quiet --epochs 50 --out named.rbt
    expect 0 info named.rbt
    prints "largest     $4: "
}
awk 'BEGIN { for (i = 0; i < 80; i++) print i % 2 "," i % 5 ",1," i % 2 * 3 "," i % 3 }' >bare.csv
{
    echo 'y,noise,same,"the, one",rest'
    cat bare.csv
} >names.csv
awk -F, '{ print $1, "0:" $2, "1:1", "2:" $4, "3:" $5 }' bare.csv >zero.svm
awk -F, '{ print $1, "1:" $2, "2:1", "3:" $4, "4:" $5 }' bare.csv >one.svm
awk -F, '{ print $1, "| 0:" $2, "1:1", "2:" $4, "3:" $5 }' bare.csv >hashed.vw
awk -F, 'NR == 1 { print "y,noise,word,one" } { print $1 "," $2 "," ($5 == 0 ? "a" : "b") "," $4 }' bare.csv >words.csv
largest names.csv 'features are columns, counted from 1, but label and weight' '^ *3  .*  the, one$' 'the, one'
largest bare.csv 'features are columns, counted from 1, but label and weight' '^ *3  ' 'feature 3'
largest words.csv 'features are columns of numbers, counted from 1, then hashes of words' '^ *2  .*  one$' one
largest zero.svm 'feature as in the file, from 0' '^ *2  ' 'feature 2'
largest one.svm 'feature as in the file, from 1' '^ *3  ' 'feature 3'
largest hashed.vw 'features are hashes, from 0' '^ *2  ' 'hash 2'
expect 0 info zero.svm
prints 'of the rows have feature 1, the most frequent'
printf '\357\273\277a\nb\nc\nd\n' >marked
expect 0 info named.rbt --vocab marked
says '--vocab has 4 names, the model 262144 features; are they of the same data?'
prints 'largest     c: '
: >none
for model in named.rbt softmax.rbt; do
    expect 0 info $model --vocab none
    says '--vocab has 0 names, the model'
done
expect 0 train linear --data names.csv --quiet --out named.rbt
printf 'p\nq\nr\ns\n' >vocab
expect 0 info named.rbt --vocab vocab
! grep -q 'the, one' "$out" || fail '--vocab does not have the last word'

expect 1 info /dev/null
[ ! -s "$out" ] || fail 'info of nothing prints something'
expect 1 info softmax.rbt --vocab missing
says 'missing: cannot be opened'

# several files are one data set; indices up to the last there may be
expect 0 info many.svm many.svm
prints 'file        many.svm and 1 more'
prints 'rows        200'
printf '1 3:1 4294967294:1\n-1 4294967294:2\n' >high.svm
expect 0 info high.svm
prints 'features    4294967294, of which 2 occur'
prints 'Delta       1: 100 % of the rows have feature 4294967294, the most frequent'

# labels are those of the text, however small
printf '1e-05 1:1e-05 2:1.5e-06\n3e-05 1:2 2:2.5e+09\n' >small.svm
expect 0 info small.svm
prints 'labels      1e-05: 1 row'
expect 0 train lr --data small.svm --quiet --normalize unit --out small.rbt
expect 0 info small.rbt
prints 'labels      1e-05, 3e-05'
expect 0 predict --model small.rbt --data small.svm
printf '1e-05\n3e-05\n' | cmp -s - "$out" || fail 'predict prints other labels than the data has'
expect 0 convert --data small.svm --to libsvm --out -
cmp -s small.svm "$out" || fail 'small and large numbers are written in more digits than they need'
