#!/bin/sh
# What can be wrong with files, data and disks: a sentence that names the place, exit code 1 or 2, no crash.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

small_data

# data that is missing or damaged
expect 1 train lr --data missing.svm
says 'missing.svm'
says 'No such file or directory'
printf '1 1:1\n-1 2:0.5\n1 3:abc\n' >damaged.svm
expect 1 train lr --data damaged.svm --workers 1
says 'damaged.svm:3'
printf '1 1:1\n-1 2:nan\n' >nan.svm
expect 1 train lr --data nan.svm --workers 1
says 'nan.svm:2'
printf '1::2::3\n2::3::4\n1::3::5\n' >ratings.dat
for command in 'train lr' 'train linear' 'train l1lr --l1 0.1' 'launch --local 2 -- train lr --sync bsp'; do
    # shellcheck disable=SC2086 # several words
    expect 1 $command --data ratings.dat
    says 'the data was taken for ratings, which have no labels'
done
printf '3\n3\n3\n1 1 2\n2 2 1\n3 3 4\n' >docword.txt
expect 1 train lr --data docword.txt
says 'the data was taken for documents, which have no labels'
expect 0 convert --data ratings.dat --out ratings.cache
expect 0 convert --data docword.txt --out docword.cache
printf '0 1:1\n1 2:1\n0 1:1\n1 2:1\n' >zeros.svm
for model in 'lr --normalize unit' linear softmax 'l1lr --l1 0.1'; do
    # shellcheck disable=SC2086 # several words
    expect 0 train $model --data zeros.svm --out labels.rbt
    for command in 'eval --model labels.rbt --data' 'predict --model labels.rbt --data' \
        "train $model --data zeros.svm --valid"; do
        for file in ratings.dat ratings.cache; do
            # shellcheck disable=SC2086 # likewise
            expect 1 $command $file
            says 'the data was taken for ratings, which have no labels'
        done
        for file in docword.txt docword.cache; do
            # shellcheck disable=SC2086 # likewise
            expect 1 $command $file
            says 'the data was taken for documents, which have no labels'
        done
    done
done
says '--valid docword.cache: the data'
! "$RUBATO" predict --model labels.rbt --data - <ratings.dat >"$out" 2>"$err" ||
    fail 'ratings from a pipe are predicted'
says 'the data was taken for ratings, which have no labels'
: >empty.svm
expect 1 train lr --data empty.svm
says 'empty.svm'
expect 1 train lr --data .
says '.'
expect 1 train lr --data data.svm --valid missing.svm
says 'missing.svm'

# damaged first bytes: nothing is taken for text that is none
bare='is neither text nor a cache, a model or compressed data'
expect 0 convert --data data.svm --out whole.cache
expect 0 train kmeans --data zeros.svm --clusters 2 --out fitted.rbt
expect 0 train lr --data zeros.svm --out trained.rbt
cp data.svm plain # no name that says what it is
for file in whole.cache fitted.rbt trained.rbt plain.gz plain.zst; do
    [ $file != plain.gz ] || gzip -kn plain
    if [ $file = plain.zst ]; then
        command -v zstd >/dev/null || continue
        zstd -qk plain
    fi
    for byte in 0 1; do
        python3 -c 'import sys
bytes = bytearray(open(sys.argv[1], "rb").read())
bytes[int(sys.argv[2])] ^= 0x80
open("bad.bin", "wb").write(bytes)' $file $byte
        for command in 'info' 'train lr --data' 'predict --model trained.rbt --data'; do
            # shellcheck disable=SC2086 # several words
            expect 1 $command bad.bin
            says "bad.bin: $bare (its first bytes are those of none); copy it again, or make it again"
        done
        "$RUBATO" info - <bad.bin >"$out" 2>"$err" && fail "$file without byte $byte is data"
        says "$bare"
        expect 1 predict --model bad.bin --user 42
        says 'bad.bin: is not a Rubato model (its first bytes are others)'
    done
done
expect 2 predict --model trained.rbt --user 42
says '--user makes no sense for trained.rbt, which is no model of mf; leave it out'
printf '\377\3761\000 \0001\000:\0001\000\n\000' >wide.svm # UTF-16, which is text
expect 1 info wide.svm
says 'wide.svm:1:'
printf "1 1:1\n-1 2:0.5\n1 2:0\\0003\n" >zero.svm # far down it is one bad row
expect 1 info zero.svm
says 'zero.svm:3:'

# more workers than rows
printf '1 1:1\n-1 2:1\n1 1:0.5\n' >three.svm
code=0
"$RUBATO" train lr --data three.svm --workers 4 >"$out" 2>"$err" || code=$?
[ "$code" -eq 1 ] || [ "$code" -eq 2 ] || fail "more workers than rows: exit code $code"
says '4'
says '3'

# a loss that blows up says at which clock
expect 1 train lr --data data.svm --workers 2 --lr 1e30 --clocks 20 --sync bsp --rule sum
says 'clock'

# outputs that cannot be written are found before training
expect 1 train lr --data data.svm --workers 2 --out no/such/folder/m.rbt
says 'no/such/folder/m.rbt'
[ ! -s "$out" ] || fail 'training began although --out cannot be written'
expect 1 train lr --data data.svm --workers 2 --json no/such/folder/x.json
says 'no/such/folder/x.json'
[ ! -s "$out" ] || fail 'training began although --json cannot be written'
expect 1 train lr --data data.svm --workers 2 --report no/such/folder/x.html
says 'no/such/folder/x.html'
expect 1 train lr --data data.svm --workers 2 --out .
says 'is a folder'
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod 555 locked
    expect 1 train lr --data data.svm --workers 2 --json locked/x.json
    says 'Permission denied'
fi

# a disk that is full at the end
if [ -c /dev/full ]; then
    expect 1 train lr --data data.svm --workers 2 --clocks 2 --out /dev/full
    says '/dev/full'
    says 'No space left on device'
    expect 1 train lr --data data.svm --workers 2 --clocks 2 --json /dev/full
    says '/dev/full'
    expect 1 train lr --data data.svm --workers 2 --clocks 2 --report /dev/full
    says '/dev/full'
    expect 1 gen lr --out /dev/full
    says 'No space left on device'
    code=0
    "$RUBATO" info data.svm >/dev/full 2>"$err" || code=$?
    [ "$code" -eq 1 ] || fail "info into a full disk: exit code $code"
    says 'standard output'
fi

# model files
expect 1 predict --model missing.rbt --data data.svm
says 'missing.rbt'
expect 1 predict --model data.svm --data data.svm
says 'data.svm'
expect 0 train lr --data data.svm --workers 2 --clocks 2 --out model.rbt --quiet
[ ! -s "$out" ] || fail '--quiet prints'
head -c 100 model.rbt >cut.rbt
expect 1 info cut.rbt
says 'cut.rbt'
expect 1 eval --model cut.rbt --data data.svm
says 'cut.rbt'

# job files
printf 'model = lr\nwrokers = 2\n' >job.conf
expect 2 train --config job.conf
says "job.conf:2: unknown option '--wrokers'; did you mean '--workers'?"
expect 1 train --config missing.conf
says 'missing.conf'

# specifications of the simulator and of stragglers
expect 2 train lr --data data.svm --straggler nonsense=1
says 'nonsense'
expect 2 train lr --data data.svm --runtime sim --net speed=1
says 'speed'
