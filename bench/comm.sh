#!/bin/sh
# What managed communication saves (Wei et al. 2015, Figures 4 and 5), in the simulator: clocks until a target with updates sent at
# the ends of clocks only, and with early sends within a budget. A clock is a pass over the data. Topic models on 16 nodes, by budget
# and priority; matrix factorisation by plain SGD on 8, each at its best step size of a grid. Data are generated: a matter of bits, not
# of this machine's speed. Every run also checks that no node exceeds its budget by more than the burst in any 100 ms.
#
#   RUBATO=COMMAND sh bench/comm.sh [lda|mf]...      default: both, a few minutes
#
# BUDGETS="14Mbit 50Mbit" and PRIORITIES="random relative" change what is measured. DOCS=FILE (UCI bag of words), TOPICS= and TARGET=
# take another topic model. What the figures mean: docs/reproduction.md.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/comm.sh: set RUBATO to the command" >&2; exit 2; }
[ $# -gt 0 ] || set -- lda mf
priorities=${PRIORITIES:-random relative}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", a / b }'
}

# likelihood CLOCKS OPTION...: the log-likelihood per token of the model then, all updates counted. Not the loss that workers tell
# during a run: theirs is that of their own copies, which looks better the less they know of each other.
likelihood() {
    clocks=$1
    shift
    # shellcheck disable=SC2086 # options
    "$RUBATO" train lda $options --clocks "$clocks" --out "$work/model" --json "$work/json" --quiet "$@" >"$work/messages" 2>&1 || {
        cat "$work/messages" >&2
        exit 1
    }
    "$RUBATO" info "$work/model" | awk '/log_likelihood/ { print $2 }'
}

# lda_row LABEL OPTION...: clocks to the target, between two whole numbers by a straight line; left in $clocks_to.
lda_row() {
    label=$1
    shift
    n=4 before=''
    while :; do
        now=$(likelihood "$n" "$@")
        awk -v l="$now" -v t="$target" 'BEGIN { exit !(l < t) }' || break
        before=$now
        n=$((n + 1))
        [ "$n" -le 60 ] || break
    done
    clocks_to=$(awk -v n="$n" -v a="${before:-$now}" -v b="$now" -v t="$target" 'BEGIN { printf "%.2f", (b > a ? n - (b - t) / (b - a) : n) }')
    bytes=$(tail -n 1 "$work/json" | sed 's/.*"bytes_sent":\([0-9]*\).*/\1/')
    printf '%-22s %6s clocks %7d kB a clock' "$label" "$clocks_to" "$((bytes / n / 1000))"
}

run_lda() {
    target=${TARGET:--8.6}
    docs=${DOCS:-$work/docs}
    [ -n "${DOCS:-}" ] || "$RUBATO" gen docs --out "$docs" --rows 1000 --words 5000 --topics 20 --seed 3 >/dev/null
    options="--data $docs --runtime sim --workers 16 --servers 4 --sync ssp --staleness 2 --topics ${TOPICS:-20} --batch 100% --pieces 32
        --cost nnz=200us --net bw=1Gbit,lat=100us"
    echo "lda: 16 workers, 4 servers, ${TOPICS:-20} topics, staleness 2, log-likelihood per token >= $target"
    lda_row "clocks only"
    echo
    alone=$clocks_to
    for budget in ${BUDGETS:-14Mbit 24Mbit 50Mbit 100Mbit 200Mbit}; do
        random=
        for priority in $priorities; do
            lda_row "$budget, $priority" --budget "$budget" --priority "$priority"
            printf '; %s of clocks only' "$(ratio "$clocks_to" "$alone")"
            [ "$priority" != random ] || random=$clocks_to
            [ "$priority" = random ] || [ -z "$random" ] || printf ', %s of random' "$(ratio "$clocks_to" "$random")"
            echo
        done
    done
}

# mf_run OPTION...: clocks until the mean squared error is below the target, for good; left in $clocks_to, empty: it is not.
mf_run() {
    # shellcheck disable=SC2086 # options
    "$RUBATO" train mf $options --json "$work/json" --quiet "$@" >"$work/messages" 2>&1 ||
        grep -q 'training diverged' "$work/messages" || {
        cat "$work/messages" >&2
        exit 1
    }
    clocks_to=$(awk -v target="$target" '
        /"event":"clock"/ {
            loss = clock = $0
            gsub(/.*"loss":/, "", loss); gsub(/[,}].*/, "", loss)
            gsub(/.*"clock_min":/, "", clock); gsub(/[,}].*/, "", clock)
            good = loss != "null" && loss + 0 <= target
            if (good && first == "")
                first = loss == last ? clock : clock - (target - loss) / (last - loss)
            if (!good)
                first = ""
            last = loss == "null" ? loss : loss + 0
        }
        /"event":"done"/ { ended = 1 }
        END { if (ended && first != "") printf "%.2f", first }' "$work/json")
}

run_mf() {
    target=0.8
    "$RUBATO" gen ratings --out "$work/ratings" --rows 50000 --users 1000 --items 500 --rank 8 --seed 3 >/dev/null
    options="--data $work/ratings --runtime sim --workers 8 --servers 2 --sync ssp --staleness 2 --rank 8 --step plain --clocks 80 --batch 100%
        --pieces 32 --cost sample=40us --net bw=1Gbit,lat=100us"
    echo "mf: 8 workers, 2 servers, rank 8, plain SGD, staleness 2, mean squared error <= $target, best step size"
    for budget in none ${BUDGETS:-5Mbit 10Mbit 20Mbit 50Mbit 200Mbit}; do
        for priority in $priorities; do
            best='' best_lr=''
            for lr in 0.0015 0.002 0.003 0.004 0.006 0.008 0.012 0.016 0.024 0.032 0.048; do
                if [ "$budget" = none ]; then
                    mf_run --lr "$lr"
                else
                    mf_run --lr "$lr" --budget "$budget" --priority "$priority"
                fi
                if [ -n "$clocks_to" ] && awk -v a="$clocks_to" -v b="${best:-1e9}" 'BEGIN { exit !(a < b) }'; then
                    best=$clocks_to best_lr=$lr
                fi
            done
            if [ "$budget" = none ]; then
                alone=$best
                printf '%-22s %6s clocks at --lr %s\n' "clocks only" "$best" "$best_lr"
                break
            fi
            printf '%-22s %6s clocks at --lr %s; %s of clocks only\n' "$budget, $priority" "$best" "$best_lr" "$(ratio "$best" "$alone")"
        done
    done
}

for part; do
    "run_$part"
done
