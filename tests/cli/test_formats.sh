#!/bin/sh
# What data may look like: LIBSVM, Vowpal Wabbit, CSV and IDX give the same models where they say the same; options that tell
# how to read; rows that may be left out; labels that are words.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
train() { # PATH OPTIONS: the hash of what is trained
    path=$1
    shift
    "$RUBATO" train lr --data "$path" --workers 2 --sync bsp --clocks 3 --lr 0.5 "$@" >"$out" 2>"$err" ||
        fail "train on $path: $(cat "$err")"
    sed -n 's/.*hash //p' "$out"
}

# The same rows in four formats. Numbers in a namespace without a name are Vowpal Wabbit's columns themselves.
python3 - <<'PYTHON'
rows = [line.split() for line in open("data.svm")]
cols = max(int(f.split(":")[0]) for r in rows for f in r[1:])
with open("data.txt", "w") as vw, open("data.csv", "w") as csv, open("zero.svm", "w") as zero:
    csv.write("label," + ",".join("c%d" % i for i in range(1, cols + 1)) + "\n")
    zero.write("# counts from 0\n")
    for r in rows:
        features = dict(f.split(":") for f in r[1:])
        vw.write(r[0] + " 'tag| " + " ".join("%d:%s" % (int(i) - 1, v) for i, v in features.items()) + "\n")
        csv.write(r[0] + "," + ",".join(features.get(str(i), "") for i in range(1, cols + 1)) + "\r\n")
        zero.write(" ".join([r[0], "qid:1", "0:0"] + ["%d:%s" % (int(i) - 1, v) for i, v in features.items() if i != "1"]
                            if "1" not in features else
                            [r[0]] + ["%d:%s" % (int(i) - 1, v) for i, v in features.items()]) + " # end\n")
PYTHON
whole=$(train data.svm)
[ -n "$whole" ] || fail 'no hash was printed'
[ "$(train data.csv)" = "$whole" ] || fail 'CSV gives other parameters than LIBSVM'
[ "$(train zero.svm)" = "$whole" ] || fail 'counting from 0 gives other parameters than counting from 1'
expect 0 info data.txt --bits 6
prints 'features    64'
expect 0 convert --data data.txt --bits 6 --to libsvm --out back.svm
python3 - <<'PYTHON' || fail 'Vowpal Wabbit text converted is not the LIBSVM text'
plain = open("data.svm").read().split("\n")
back = open("back.svm").read().split("\n")
back[-2] = back[-2].removesuffix(" 64:0")
raise SystemExit(plain != back)
PYTHON
for tool in gzip zstd; do
    command -v $tool >/dev/null || continue
    $tool -c <data.csv >packed
    "$RUBATO" info packed >"$out" 2>"$err" || { says 'which this build lacks' && continue; }
    [ "$(train packed)" = "$whole" ] || fail "CSV packed by $tool gives other parameters"
done
[ "$(train - <data.csv)" = "$whole" ] || fail 'CSV from the standard input gives other parameters'
(head -n 200 data.csv && head -n 1 data.csv && tail -n +201 data.csv) >twice.csv
[ "$(train twice.csv)" = "$whole" ] || fail 'a header once more in the middle changes the parameters'

# the format by hand
expect 1 info data.svm --format vw
says "data.svm:1:"
expect 2 info data.svm --format xml
says "--format 'xml' is unknown; choose auto, libsvm, vw, csv, idx, ratings, docword, ldac or cache"
expect 2 train lr --data data.svm --label 2
says '--label makes no sense for data.svm, which is LIBSVM text'
expect 2 train lr --data data.svm --bits 40
says '--bits 40 is out of range'
expect 2 info data.txt --bits 0
says '--bits 0'
expect 2 train lr --data data.csv --label nothing
says 'no such column; it has: label, c1, c2'

# weights: a row that counts twice is the row twice
printf 'y,w,a,b\n1,2,1,0\n0,1,0,1\n1,1,0.5,2\n' >weighted.csv
printf '1 2 | 0:1\n0 | 1:1\n1 1 | 0:0.5 1:2\n' >weighted.vw
expect 0 info weighted.csv --weight w
prints 'weights     1 to 2, 4 in all'
expect 0 info weighted.vw --bits 1
prints 'weights     1 to 2, 4 in all'
expect 0 convert --data weighted.csv --weight w --out weighted.cache
expect 0 info weighted.cache
prints 'weights     1 to 2, 4 in all'
for format in csv vw; do
    expect 0 convert --data weighted.csv --weight w --to $format --out "back.$format"
done
expect 0 info back.csv --weight weight
prints 'weights     1 to 2, 4 in all'
expect 0 info back.csv # what convert has written says itself what the weights are
prints 'weights     1 to 2, 4 in all'
prints 'features    2'
expect 0 convert --data back.csv --out again.csv
cmp -s back.csv again.csv || fail 'weights become a feature on the way through CSV'
expect 0 train lr --data weighted.csv --weight w --quiet --out weighted.rbt
expect 0 eval --model weighted.rbt --data back.csv
prints 'weight    4'
printf 'label,weight,f2\n1,2,1\n0,1,0\n' >own.csv # another header is another matter
expect 0 info own.csv
prints 'features    2'
expect 0 info back.vw --bits 1
prints 'weights     1 to 2, 4 in all'

# labels that are words, and words as features; the cache keeps both
python3 - <<'PYTHON'
import random
random.seed(1)
with open("words.csv", "w") as f:
    f.write("town,size,kind\n")
    for i in range(300):
        big = random.random() < 0.5
        f.write('"%s, the town",%.3f,%s\n' % (random.choice("abc"), random.gauss(3 if big else -3, 1), "big" if big else "small"))
PYTHON
expect 0 info words.csv --label kind
prints 'big:'
prints 'features    262145'
expect 0 train lr --data words.csv --label kind --bits 4 --valid words.csv --out words.rbt
expect 0 predict --model words.rbt --data words.csv --label kind --bits 4 --out said
[ "$(wc -l <said)" -eq 300 ] || fail 'predict wrote another number of lines than there are rows'
[ "$(cut -d, -f4 words.csv | sed 1d | paste -d' ' - said | awk '$1 == $2' | wc -l)" -gt 280 ] || fail 'the words predicted are not those of the data'
sed 's|,[a-z]*$||' words.csv >unlabelled.csv
expect 0 predict --model words.rbt --data unlabelled.csv --label none --bits 4 --out said2
cmp -s said said2 || fail 'without the label column other labels are predicted'
expect 0 convert --data words.csv --label kind --bits 4 --out words.cache
expect 0 predict --model words.rbt --data words.cache --out said3
cmp -s said said3 || fail 'from the cache other labels are predicted'
expect 0 eval --model words.rbt --data words.cache
expect 0 convert --data words.cache --to csv --out again.csv
expect 0 predict --model words.rbt --data again.csv --out said4
cmp -s said said4 || fail 'from CSV written by convert other labels are predicted'
cp words.cache old.cache
printf '\002' | dd of=old.cache bs=1 seek=8 conv=notrunc 2>/dev/null
expect 1 info old.cache
says 'format version 2, this program reads version 3; make it again from its text with rubato convert'

# a label is a line, however long; blanks at its ends count where it stands in quotes
long=$(printf '%0300d' 0 | tr 0 a)
printf 'y,x\n%sb,1\n%sc,-1\n%sb,2\n%sc,-2\n' "$long" "$long" "$long" "$long" >long.csv
for model in lr 'l1lr --l1 0.01'; do
    # shellcheck disable=SC2086 # a model and its option
    expect 0 train $model --data long.csv --quiet --out long.rbt
    expect 0 predict --model long.rbt --data long.csv
    [ "$(sed 1d long.csv | cut -d, -f1)" = "$(cat "$out")" ] || fail "$model: long labels are cut"
done
printf 'y,x\nb,1\n"b\nc",-1\n' >lines.csv
expect 1 train lr --data lines.csv
says 'lines.csv:3: '
says 'expected a label without line ends and other control characters'
printf 'y,x\n" x",1\nx,2\n"x\t",3\n' >blanks.csv
expect 0 convert --data blanks.csv --out kept.csv
sed 1d kept.csv | cut -d, -f1 | tr '\n\t' ';_' >"$out"
prints '" x";x;"x_";'
expect 0 info kept.csv
prints 'x	: 1 row'

# rows without labels: not for training
printf '| a b\n| c\n' >none.vw
expect 1 train lr --data none.vw
says 'none.vw:1: the row has no label; training needs one'
printf '1 | a b\n-1 | c\n' >labels.vw
expect 0 train lr --data labels.vw --workers 1 --out vw.rbt --quiet
expect 0 predict --model vw.rbt --data none.vw
[ "$(wc -l <"$out")" -eq 2 ] || fail 'rows without labels are not predicted'

# bad rows
(cat data.svm && printf '1 x\n1 3:1 2:1\n') >bad.svm
expect 1 train lr --data bad.svm
says "bad.svm:401: 'x'"
expect 1 train lr --data bad.svm --skip-bad 1
says "bad.svm:401: 'x'"
says 'the first of more than 1 bad rows'
[ "$(train bad.svm --skip-bad 2)" = "$whole" ] || fail 'bad rows that are left out change the parameters'
expect 0 info bad.svm --skip-bad 2
says 'rubato info: 2 bad rows were left out; the first: bad.svm:401:'
expect 0 train lr --data bad.svm --skip-bad 2 --clocks 1 --json log
check log 'any("2 bad rows were left out" in line["note"] for line in events("note"))'

# images
printf '\000\000\010\003\000\000\000\002\000\000\000\001\000\000\000\002\001\000\000\377' >t-images-idx3-ubyte
expect 1 train lr --data t-images-idx3-ubyte
says 't-labels-idx1-ubyte: cannot be opened'
printf '\000\000\010\001\000\000\000\002\005\007' >t-labels-idx1-ubyte
expect 0 info t-images-idx3-ubyte
prints 'features    2'
prints '5: 1 row ('
cp t-labels-idx1-ubyte other
expect 0 train lr --data t-images-idx3-ubyte --label other --workers 1 --clocks 1 --out images.rbt
rm t-labels-idx1-ubyte
expect 0 predict --model images.rbt --data t-images-idx3-ubyte

# words without a header: that the first row was taken for one is said when its words come again below
printf 'spam,hello\nham,bye\nspam,foo\n' >bare.csv
expect 0 info bare.csv
prints 'rows        2'
says 'line 1 was taken for the names of the columns'
"$RUBATO" convert --data - --format csv --out bare.cache <bare.csv 2>"$err"
says 'line 1 was taken for the names of the columns'
expect 0 launch --local 2 -- train lr --data bare.csv --sync bsp --epochs 1
prints 'note: line 1 was taken for the names of the columns'
printf 'spam,hello\nham,bye\nspam,hello\n' >twice.csv
expect 0 info twice.csv
says 'line 1 was taken for the names of the columns, and lines that equal it were left out; put a line of names before'
printf '1,2,3x\n0,1,1\n' >slip.csv
expect 0 info slip.csv
prints 'rows        1'
says 'line 1 was taken for the names of the columns'
printf 'class,word,n\nspam,class,1\nham,bye,2\nclass,word,n\nspam,foo,3\n' >headed.csv
expect 0 info headed.csv
[ ! -s "$err" ] || fail 'a header is doubted that stands there twice'

# the name of a file says what is written to it; what cannot be written has a way out that works
expect 0 gen lr --rows 50 --cols 5 --nnz 3 --out named.csv
expect 0 info named.csv
prints 'features    5'
expect 0 gen ratings --rows 50 --out named-ratings.csv
[ "$(head -n 1 named-ratings.csv)" = user,item,rating ] || fail 'ratings that are no CSV'
expect 0 convert --data named.csv --out named.svm
grep -q '^-\{0,1\}1 [0-9]*:' named.svm || fail 'convert does not heed the name of its output'
expect 0 convert --data named.csv --out named
expect 0 info named --format cache
for out_name in x.svm.gz x.csv.ZST; do
    expect 2 gen lr --rows 50 --out $out_name
    says "$out_name: Rubato writes nothing compressed"
    expect 2 convert --data named.csv --out $out_name
    says "$out_name: Rubato writes nothing compressed"
done
printf 'y,t\nyes,a\nno,b\n' >town.csv
expect 2 convert --data town.csv --to libsvm --out town.svm
says 'choose cache, or csv with fewer columns (--bits 16)'
expect 1 convert --data town.csv --to csv --out town-out.csv
says 'give fewer with --bits 16, or choose cache'
expect 0 convert --data town.csv --to csv --bits 16 --out town-out.csv

# files that do not belong together, without a line feed in the message
expect 0 convert --data named.svm --out named.cache
expect 1 train lr --data named.cache named.svm
says 'train: named.cache and 1 more: named.cache is a cache, and named.svm is none; give caches alone, or none of them'
expect 1 train lr --data named.svm named.cache --store disk
says 'train: named.svm and 1 more: named.cache is a cache, and named.svm is none; give caches alone, or none of them'
expect 1 train lr --data 'named.[sc][va]*' --quiet
says 'named.[sc][va]*: named.cache is a cache, and named.svm is none; give caches alone, or none of them'
expect 1 launch --local 2 -- train lr --data named.svm named.cache --quiet
says 'named.svm and 1 more: some of the files are caches, and some are none; give caches alone, or none of them'
expect 1 train lr --data town.csv named.svm
says 'named.svm: its first row is none of 2 cells, as that of town.csv is: other columns, or another format'
expect 0 gen images --rows 10 --out lonely
rm lonely-labels-idx1-ubyte
expect 1 train softmax --data lonely-images-idx3-ubyte
says 'lonely-labels-idx1-ubyte: cannot be opened: No such file or directory; it should have the labels of lonely-images-idx3-ubyte: give --label FILE'

# validation data may be several files
expect 0 train lr --data named.svm --valid named.svm named.svm --epochs 1 --class-weight balanced
prints 'validated on named.svm and 1 more'
prints 'class weights balanced'
prints 'non-zeros'
