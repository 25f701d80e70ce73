#!/bin/sh
# What --codec saves, in the simulator: bytes sent with each codec alone and together, beside the bytes without, the virtual time
# over links of 100 Mbit/s, and the objective. 8 workers, 2 servers. The bytes do not depend on this machine's speed (those with
# lz4 do on the version of LZ4).
#
#   sh bench/codec.sh [a9a|imdb|lda|mf]...   default: all whose data is there
#
# RUBATO names the command, RUBATO_DATA a folder with a9a, imdb.tfidf.train.libsvm, docword.kos.txt, movietweetings-100k.dat.
# A line per run: bytes sent, their share of those without, seconds, objective, codec.
set -eu
rubato=${RUBATO:-rubato}
data=${RUBATO_DATA:-}
[ -n "$data" ] || { echo "bench/codec.sh: set RUBATO_DATA to the folder with the data; skipped"; exit 0; }
[ $# -gt 0 ] || set -- a9a imdb lda mf
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

field() { sed -n "s/.*\"$1\":\\([0-9.e+-]*\\).*/\\1/p" "$work/run" | tail -n 1; }

# measure CODECS TRAIN-ARGUMENTS...
measure() {
    codecs=$1
    shift
    for codec in $codecs; do
        "$rubato" train "$@" --runtime sim --workers 8 --servers 2 --net bw=100Mbit,lat=100us --eval-every 0 --codec "$codec" \
            --json "$work/run" --quiet
        [ "$codec" != none ] || plain=$(field bytes_sent)
        awk -v sent="$(field bytes_sent)" -v plain="$plain" -v seconds="$(field seconds)" -v loss="$(field loss)" -v codec="$codec" \
            'BEGIN { printf "%10.2f MB  %5.1f %%  %8.3f s  %-9.6g %s\n", sent / 1e6, 100 * sent / plain, seconds, loss, codec }'
    done
}

exact="none delta keys zeros lz4 delta,keys,zeros,lz4"
half="fp16 delta,keys,zeros,lz4,fp16"
for what; do
    case $what in
    a9a) file=$data/a9a ;;
    imdb) file=$data/imdb.tfidf.train.libsvm ;;
    lda) file=$data/docword.kos.txt ;;
    mf) file=$data/movietweetings-100k.dat ;;
    *) echo "bench/codec.sh: there is no '$what'; use a9a, imdb, lda or mf" >&2; exit 2 ;;
    esac
    [ -e "$file" ] || { echo "$what: $file is not there; skipped"; continue; }
    case $what in
    a9a)
        echo "a9a, lr: bsp, 30 clocks of one batch of 10 %"
        measure "$exact $half" lr --data "$file" --sync bsp --lr 1 --batch 10% --batches-per-clock 1 --clocks 30 ;;
    imdb)
        echo "imdb, lr: bsp, 30 clocks of one batch of 1 %"
        measure "$exact $half" lr --data "$file" --sync bsp --lr 1 --batch 1% --batches-per-clock 1 --clocks 30 ;;
    lda)
        echo "kos, lda: 100 topics, staleness 2, 10 clocks"
        measure "$exact" lda --data "$file" --topics 100 --sync ssp --staleness 2 --clocks 10 ;;
    mf)
        echo "movietweetings, mf: rank 16, staleness 2, 10 clocks"
        measure "$exact $half" mf --data "$file" --rank 16 --sync ssp --staleness 2 --clocks 10 ;;
    esac
done
