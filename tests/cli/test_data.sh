#!/bin/sh
# Where data may come from: a file, a pattern, compressed files, a cache, the standard input; all give the same parameters.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data
train() { # PATH: the hash of what is trained
    "$RUBATO" train lr --data "$1" --workers 2 --sync bsp --clocks 3 >"$out" 2>"$err" || fail "train on $1: $(cat "$err")"
    sed -n 's/.*hash //p' "$out"
}
whole=$(train data.svm)
[ -n "$whole" ] || fail 'no hash was printed'

head -n 150 data.svm >part-1.svm
tail -n +151 data.svm >part-2.svm
[ "$(train 'part-*.svm')" = "$whole" ] || fail 'two files by a pattern give other parameters than one'
[ "$("$RUBATO" info 'part-*.svm' | sed 1d)" = "$("$RUBATO" info data.svm | sed 1d)" ] || fail 'info of a pattern differs'
[ "$("$RUBATO" info - <data.svm | sed 1d)" = "$("$RUBATO" info data.svm | sed 1d)" ] || fail 'info of a pipe differs'
[ "$(train - <data.svm)" = "$whole" ] || fail 'the standard input gives other parameters than the file'
expect 1 train lr --data 'nothing-*.svm'
says 'nothing-*.svm: no file matches'

# several paths, after one --data or several; patterns among them
several() { # ARGUMENTS: the hash
    "$RUBATO" train lr "$@" --workers 2 --sync bsp --clocks 3 >"$out" 2>"$err" || fail "train $*: $(cat "$err")"
    sed -n 's/.*hash //p' "$out"
}
[ "$(several --data part-1.svm part-2.svm)" = "$whole" ] || fail 'two paths give other parameters than one file'
"$RUBATO" train lr --data part-1.svm part-2.svm --quiet --epochs 1 --json list.json
check list.json 'first["data"] == "part-1.svm\npart-2.svm"'
expect 0 train lr --data part-1.svm part-2.svm --epochs 1
prints 'lr on part-1.svm and 1 more'
[ "$(several --data part-1.svm --data 'part-2*')" = "$whole" ] || fail 'two --data give other parameters than one file'
expect 0 convert --data part-1.svm part-2.svm --to libsvm --out both.svm
cmp -s both.svm data.svm || fail 'convert of two paths: other bytes'
expect 2 convert --data part-1.svm part-2.svm --to libsvm --out part-2.svm
says 'would be written over'
expect 0 launch --local 2 -- train lr --data part-1.svm part-2.svm --sync bsp --clocks 3
prints "$whole"
expect 0 train lr --data part-1.svm part-2.svm --cache auto --quiet
expect 1 train lr --data part-1.svm nothing.svm --quiet
says 'nothing.svm: cannot be opened'
expect 2 train lr --data part-1.svm '' --quiet
says '--data needs a value'
expect 2 train lr --quiet --data $(seq -f 'a-file-with-a-long-name-%g.svm' 200)
says 'give a pattern in quotes'
rm -f rubato-*.rbt-cache

for tool in gzip zstd; do
    command -v $tool >/dev/null || continue
    $tool -c <part-1.svm >packed-1
    $tool -c <part-2.svm >packed-2
    if ! "$RUBATO" info packed-1 >"$out" 2>"$err"; then
        says 'which this build lacks'
        continue
    fi
    [ "$(train 'packed-*')" = "$whole" ] || fail "files of $tool give other parameters than plain ones"
    cat packed-1 packed-2 >both
    [ "$(train - <both)" = "$whole" ] || fail "two files of $tool in a row give other parameters than plain ones"
    head -c 500 both >cut.packed
    expect 1 info cut.packed
    says 'cut.packed: the compressed file is cut short at byte 500'
done

# the cache, also compressed and through a pipe; what is read is never written over
expect 0 convert --data data.svm --out data.cache
[ "$(train data.cache)" = "$whole" ] || fail 'the cache gives other parameters than the text'
[ "$(train - <data.cache)" = "$whole" ] || fail 'the cache through a pipe gives other parameters than the text'
expect 2 convert --data data.cache --out data.cache
says 'would be written over'
cp data.svm same.svm
expect 2 train lr --data same.svm --out same.svm
expect 2 train lr --data data.svm --valid same.svm --json same.svm
cp data.svm same.svm
expect 0 train lr --data data.svm --epochs 1 --quiet --out m.rbt
expect 0 train kmeans --data data.svm --clusters 2 --quiet --out k.rbt
printf 'epochs = 1\n' >job.txt
printf '0 - 1\n1 - 2\n' >edges.txt
seq 50 >names.txt
cp m.rbt kept.rbt
keeps() # FILE COMMAND...: which is refused, and FILE is as it was
{
    cp "$1" before
    kept=$1
    shift
    expect 2 "$@"
    says 'would be written over'
    cmp -s before "$kept" || fail "$kept was written over by $*"
}
keeps same.svm eval --model m.rbt --data same.svm --json same.svm
keeps m.rbt eval --model m.rbt --data same.svm --json m.rbt
keeps kept.rbt eval --model m.rbt --baseline kept.rbt --data same.svm --json kept.rbt
keeps k.rbt eval --model k.rbt --data same.svm --json k.rbt
keeps edges.txt graph edges.txt --json edges.txt
keeps edges.txt graph edges.txt --svg edges.txt
keeps names.txt export --model m.rbt --format text --vocab names.txt --out names.txt
keeps job.txt train lr --data same.svm --config job.txt --json job.txt
keeps job.txt compare lr --data same.svm --protocols bsp --config job.txt --report job.txt
keeps edges.txt train lr --data same.svm --sync hop --workers 3 --graph edges.txt --out edges.txt
cmp -s same.svm data.svm || fail 'data was written over'

# who may read an output that is replaced may read the new one, and nobody else
cp same.svm private.svm
chmod 600 private.svm
expect 0 convert --data data.svm --to libsvm --out private.svm
[ "$(stat -c %a private.svm)" = 600 ] || fail 'a private file has become public'

# each worker's own files, the labels of images, a trace of stragglers and a key are read, too
cp data.svm part-0.svm
cp data.svm part-1.svm
keeps part-0.svm train lr --data 'part-{rank}.svm' --workers 2 --out part-0.svm
keeps part-1.svm train lr --data 'part-{rank}.svm' --workers 2 --json part-1.svm
keeps part-1.svm train lr --data 'part-{rank}.svm' --workers 3 --json part-1.svm # also when another's are missing
expect 0 train lr --data 'part-{rank}.svm' --workers 2 --epochs 1 --quiet --json part-2.svm
printf '\0\0\010\003\0\0\0\002\0\0\0\001\0\0\0\002\377\0\0\377' >im-images-idx3-ubyte
printf '\0\0\010\001\0\0\0\002\0\001' >im-labels-idx1-ubyte
cp im-labels-idx1-ubyte im-other
cp im-images-idx3-ubyte plain-images
gzip -k im-images-idx3-ubyte
cp im-labels-idx1-ubyte im-labels-idx1-ubyte.gz
expect 0 train lr --data im-images-idx3-ubyte --epochs 1 --quiet --out images.rbt
keeps im-labels-idx1-ubyte train lr --data im-images-idx3-ubyte --out im-labels-idx1-ubyte
keeps im-labels-idx1-ubyte.gz train lr --data im-images-idx3-ubyte.gz --out im-labels-idx1-ubyte.gz
keeps im-labels-idx1-ubyte train lr --data data.svm --valid im-images-idx3-ubyte --json im-labels-idx1-ubyte
keeps im-other train lr --data im-images-idx3-ubyte --label im-other --json im-other
keeps im-other eval --model images.rbt --data im-images-idx3-ubyte --label im-other --json im-other
keeps im-labels-idx1-ubyte eval --model images.rbt --data im-images-idx3-ubyte --json im-labels-idx1-ubyte
keeps im-labels-idx1-ubyte predict --model images.rbt --data im-images-idx3-ubyte --out im-labels-idx1-ubyte
keeps im-labels-idx1-ubyte convert --data im-images-idx3-ubyte --out im-labels-idx1-ubyte
printf '0 1 2\n' >slow.txt
keeps slow.txt train lr --data data.svm --workers 2 --sync ssp --straggler 'p=0.1,slow=2;trace=slow.txt' --json slow.txt
keeps slow.txt train lr --data data.svm --workers 2 --sync ssp --straggler trace=slow.txt --out slow.txt
expect 0 key new job.key
keeps job.key top 127.0.0.1:1 --key job.key --json job.key
RUBATO_KEY_FILE=job.key
export RUBATO_KEY_FILE
keeps job.key top 127.0.0.1:1 --json job.key
keeps job.key train lr --data data.svm --runtime cluster --workers 1 --listen 127.0.0.1:0 --json job.key
unset RUBATO_KEY_FILE
# names alone make no images
cp data.svm my-images.svm
cp data.svm my-labels.svm
expect 0 convert --data my-images.svm --out my-labels.svm

# nor is one output written over another, whether the file is there or not
expect 2 train lr --data data.svm --out one --json ./one
says '--out and --json would both be written to ./one; give each a file of its own'
[ ! -e one ] || fail 'an output was begun'
: >one
expect 2 train lr --data data.svm --out one --report "$PWD/one"
says '--out and --report would both be written to'
expect 2 compare lr --data data.svm --protocols bsp,asp --report one --json one
says '--json and --report would both be written to one'
expect 2 train lr --data data.svm --out - --json -
says '--out and --json would both be written to the standard output'
expect 0 train lr --data data.svm --epochs 1 --out /dev/null --json /dev/null --report other --quiet
expect 0 convert --data data.cache --to libsvm --out back.svm
cmp -s back.svm data.svm || fail 'text, cache, text: not the same bytes'
if command -v gzip >/dev/null; then
    gzip -c <data.cache >cache.gz
    "$RUBATO" info cache.gz >"$out" 2>"$err" || says 'which this build lacks'
fi
[ "$("$RUBATO" info data.cache | sed 1d)" = "$("$RUBATO" info data.svm | sed 1d)" ] || fail 'info of a cache differs'
head -c 3000 data.cache >cut.cache
expect 1 info cut.cache
says 'cut.cache: the cache is damaged: its length does not fit'
[ ! -c /dev/full ] || expect 1 convert --data data.svm --out /dev/full
