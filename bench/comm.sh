#!/bin/sh
# What managed communication saves (Wei et al. 2015, Figures 4 and 5), in the simulator: clocks until a target with updates sent at
# the ends of clocks only, and with early sends within a budget. A clock is a pass over the data. Topic models on 16 nodes, by budget
# and priority; matrix factorisation by plain SGD on 8, each at its best step size of a grid. Data are generated: a matter of bits, not
# of this machine's speed. Every run also checks that no node exceeds its budget by more than the burst in any 100 ms.
#
#   RUBATO=COMMAND sh bench/comm.sh [lda|mf]...      default: both, a few minutes
#
# BUDGETS="14Mbit 50Mbit", PRIORITIES="random relative" and SEEDS="1 2 3" change what is measured; with several seeds figures are means,
# and [least, most] follows. Topic models have several targets, each run gives a figure for each; TARGETS=8.6 takes one. DOCS=FILE (UCI
# bag of words), TOPICS= and TARGETS= take another topic model. What the figures mean:
# docs/reproduction.md.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/comm.sh: set RUBATO to the command" >&2; exit 2; }
[ $# -gt 0 ] || set -- lda mf
priorities=${PRIORITIES:-random relative}
seeds=${SEEDS:-1}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# mean LIST [OVER]: the mean of some numbers, or of their ratios to those of another list, and with several seeds the range.
mean() {
    echo "$1 / ${2:-}" | awk '{
        for (n = 0; $(n + 1) != "/"; n++)
            ;
        for (i = 1; i <= n; i++) {
            x = $i / (NF > n + 1 ? $(n + 1 + i) : 1)
            sum += x
            least = i == 1 || x < least ? x : least
            most = i == 1 || x > most ? x : most
        }
        if (n == 0)
            printf "none"
        else
            printf "%5.2f", sum / n
        if (n > 1)
            printf " [%.2f, %.2f]", least, most
    }'
}

# first_below TARGET: the clock in which the loss that a job has told falls below the target for good, by a straight line between two
# records; nothing: it does not.
first_below() {
    awk -v target="$1" '
        /"event":"clock"/ {
            loss = clock = $0
            gsub(/.*"loss":/, "", loss); gsub(/[,}].*/, "", loss)
            gsub(/.*"clock_min":/, "", clock); gsub(/[,}].*/, "", clock)
            good = loss != "null" && loss + 0 <= target
            if (good && first == "")
                first = loss == last ? clock : clock - (target - loss) / (last - loss) * (clock - before)
            if (!good)
                first = ""
            last = loss == "null" ? loss : loss + 0
            before = clock
        }
        /"event":"done"/ { ended = 1 }
        END { if (ended && first != "") printf "%.2f", first }' "$work/json"
}

# lda_row LABEL OPTION...: clocks to the targets; left in $clocks_to, seed by seed and target by target. The clock before the first pass does not count.
lda_row() {
    label=$1
    clocks_to=
    shift
    for seed in $seeds; do
        # shellcheck disable=SC2086 # options
        "$RUBATO" train lda $options --clocks 16 --seed "$seed" --json "$work/json" --quiet "$@" >"$work/messages" 2>&1 || {
            cat "$work/messages" >&2
            exit 1
        }
        for target in $targets; do
            clocks=$(first_below "$target" | awk '{ print $1 - 1 }')
            [ -n "$clocks" ] || { echo "bench/comm.sh: $label does not reach $target in 16 clocks" >&2; exit 1; }
            clocks_to="$clocks_to $clocks"
        done
        bytes=$(tail -n 1 "$work/json" | sed 's/.*"bytes_sent":\([0-9]*\).*/\1/')
    done
    printf '%-18s %s clocks, %d kB a clock' "$label" "$(mean "$clocks_to")" "$((bytes / 16000))"
}

run_lda() {
    targets=${TARGETS:-9.0 8.8 8.6 8.4}
    docs=${DOCS:-$work/docs}
    [ -n "${DOCS:-}" ] || "$RUBATO" gen docs --out "$docs" --rows 1000 --words 5000 --topics 20 --seed 3 >/dev/null
    options="--data $docs --runtime sim --workers 16 --servers 4 --sync ssp --staleness 2 --eager on --topics ${TOPICS:-20} --cut documents --batch 100% --pieces 32
        --cost nnz=200us --net bw=1Gbit,lat=100us"
    echo "lda: 16 workers, 4 servers, ${TOPICS:-20} topics, staleness 2, loss (-log-likelihood per token) <= $targets"
    lda_row "clocks only"
    echo
    alone=$clocks_to
    for budget in ${BUDGETS:-8Mbit 10Mbit 12Mbit 14Mbit 20Mbit 50Mbit 200Mbit}; do
        random=
        for priority in $priorities; do
            lda_row "$budget, $priority" --budget "$budget" --priority "$priority"
            printf '; %s of clocks only' "$(mean "$clocks_to" "$alone")"
            [ "$priority" != random ] || random=$clocks_to
            [ "$priority" = random ] || [ -z "$random" ] || printf ', %s of random' "$(mean "$clocks_to" "$random")"
            echo
        done
    done
}

# mf_run OPTION...: clocks until the mean squared error is below the target, for good; left in $clocks_to, seed by seed; empty: with
# some seed it is not.
mf_run() {
    all=
    for seed in $seeds; do
        mf_run_seed --seed "$seed" "$@"
        [ -n "$clocks_to" ] || return 0
        all="$all $clocks_to"
    done
    clocks_to=$all
}

mf_run_seed() {
    # shellcheck disable=SC2086 # options
    "$RUBATO" train mf $options --json "$work/json" --quiet "$@" >"$work/messages" 2>&1 ||
        grep -q 'training diverged' "$work/messages" || {
        cat "$work/messages" >&2
        exit 1
    }
    clocks_to=$(first_below "$target")
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
                if [ -n "$clocks_to" ] && awk -v a="$(mean "$clocks_to")" -v b="$(mean "${best:-1e9}")" 'BEGIN { exit !(a + 0 < b + 0) }'; then
                    best=$clocks_to best_lr=$lr
                fi
            done
            if [ "$budget" = none ]; then
                alone=$best
                printf '%-18s %s clocks at --lr %s\n' "clocks only" "$(mean "$best")" "$best_lr"
                break
            fi
            printf '%-18s %s clocks at --lr %s; %s of clocks only\n' "$budget, $priority" "$(mean "$best")" "$best_lr" "$(mean "$best" "$alone")"
        done
    done
}

for part; do
    "run_$part"
done
