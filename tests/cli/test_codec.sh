#!/bin/sh
# Codecs on all three runtimes: under BSP the lossless ones give the same bits as none, with fewer bytes; fp16 gives the same on all
# three and loses next to nothing; integer tables keep every token; what makes no sense is refused with the reason.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

hash() { sed -n 's/.*"param_hash":"\([0-9a-f]*\)".*/\1/p' "$1" | tail -n 1; }
number() { sed -n "s/.*\"$2\":\\([0-9.e-]*\\).*/\\1/p" "$1" | tail -n 1; }

# job WHERE ARGUMENTS...: a job on that runtime, told in run.json
job() {
    where=$1
    shift
    case $where in
    cluster) expect 0 launch --local 3 --servers 2 -- train "$@" --json run.json --quiet ;;
    *) expect 0 train "$@" --runtime "$where" --workers 3 --servers 2 --json run.json --quiet ;;
    esac
}

codecs="delta keys zeros delta,keys,zeros"
! "$RUBATO" train lr --data none --codec lz4 --sync bsp 2>&1 | grep -q 'the feature LZ4' || no_lz4=1
[ -n "${no_lz4:-}" ] || codecs="$codecs lz4 delta,keys,zeros,lz4"

# few.svm: workers touch less than half of the parameters, and send keys; many.svm: more than half, and send zeros.
expect 0 gen lr --out few.svm --rows 600 --cols 2000 --nnz 5 --seed 4
expect 0 gen lr --out many.svm --rows 600 --cols 2000 --nnz 16 --seed 4
for data in few many; do
    set -- lr --data $data.svm --sync bsp --lr 0.5 --batch 100% --clocks 6
    job local "$@"
    plain=$(hash run.json)
    [ "$(number run.json bytes_sent)" = "$(number run.json bytes_plain)" ] || fail 'without a codec something is saved'
    for codec in $codecs; do
        for where in local sim cluster; do
            job $where "$@" --codec "$codec"
            [ "$(hash run.json)" = "$plain" ] || fail "--codec $codec changes the result on $where"
            sent=$(number run.json bytes_sent)
            [ "$sent" -le "$(number run.json bytes_plain)" ] || fail "--codec $codec makes messages larger on $where"
            case $data,$codec in
            few,*delta* | few,*keys* | many,*zeros* | many,*lz4*)
                [ "$sent" -lt "$(number run.json bytes_plain)" ] || fail "--codec $codec saves nothing on $where" ;;
            esac
        done
    done
done
set -- lr --data few.svm --sync bsp --lr 0.5 --batch 100% --clocks 6
job local "$@"
plain=$(hash run.json)

# The same keys go over a line again and again, and are named.
job sim "$@" --codec delta
once=$(number run.json bytes_sent)
job sim "$@" --codec delta,keys
[ "$(number run.json bytes_sent)" -lt "$once" ] || fail 'keys that were sent before are sent again'

# A slow link shows it.
job sim "$@" --net bw=1Mbit
slow=$(number run.json seconds)
job sim "$@" --net bw=1Mbit --codec delta,keys,zeros
awk "BEGIN { exit !($(number run.json seconds) < 0.8 * $slow) }" || fail 'fewer bytes take as long over a slow link'

# Half precision: the same everywhere, and the loss stays.
job local "$@"
exact=$(number run.json loss)
job local "$@" --codec delta,fp16
half=$(hash run.json)
[ "$half" != "$plain" ] || fail 'fp16 rounds nothing'
awk "BEGIN { d = $(number run.json loss) - $exact; exit !(d < 1e-4 && d > -1e-4) }" || fail 'fp16 changes the loss'
for where in sim cluster; do
    job $where "$@" --codec delta,fp16
    [ "$(hash run.json)" = "$half" ] || fail "fp16 gives something else on $where"
done

# Counts: every token once, also with early sends, on links that lose and repeat.
expect 0 gen docs --out docs.txt --rows 60 --cols 40 --nnz 10 --topics 4
tokens=$(awk 'NF == 3 { sum += $3 } END { print sum }' docs.txt)
set -- lda --data docs.txt --topics 4 --clocks 5 --sync ssp --staleness 2 --pieces 8 --budget 50Mbit --codec delta,keys,zeros
for where in local sim cluster; do
    job $where "$@"
    grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "$where: not $tokens tokens"
done
job sim "$@" --faults drop=0.05,dup=0.1,delay=0.1,partition=2,within=50ms
grep -q "\"table_sum\":${tokens}[,}]" run.json || fail "with faults: not $tokens tokens"

# Peers without servers send their parameters squeezed.
set -- lr --data many.svm --runtime sim --sync hop --workers 4 --lr 0.5 --clocks 10 --json run.json --quiet
expect 0 train "$@"
plain=$(hash run.json)
expect 0 train "$@" --codec zeros
[ "$(hash run.json)" = "$plain" ] || fail 'hop: zeros change the result'
[ "$(number run.json bytes_sent)" -lt "$(number run.json bytes_plain)" ] || fail 'hop: zeros save nothing'

expect 2 train lr --data few.svm --codec zip
says "--codec 'zip' is unknown"
expect 2 train lr --data few.svm --codec delta --sync hogwild
says 'codec makes no sense with --sync hogwild'
expect 2 train lr --data few.svm --codec fp16 --sync hop --workers 4
says 'peers send parameters'
expect 2 train lr --data few.svm --codec fp16 --rule adarev
says 'the rest of one is no part'
expect 2 train lda --data docs.txt --codec fp16
says 'exact sums'
expect 2 train kmeans --data few.svm --codec fp16
says 'exact sums'
expect 0 train lr --data few.svm --codec none --sync hogwild --quiet
