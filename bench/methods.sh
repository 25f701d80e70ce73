#!/bin/sh
# Methods in the simulator. SSP against BSP (Ho et al. 2013, Figure 3): virtual time until matrix factorisation, a topic model
# and a lasso are as good as a target, over the staleness, 32 workers, 10 Gbit/s and 1 Gbit/s. And AdaptiveRevision against a
# decaying step size (Wei et al. 2015, Figure 3): the final loss of matrix factorisation over the first step size.
#
#   RUBATO=COMMAND sh bench/methods.sh [mf|lda|lasso|adarev...]     default: all, a few minutes
#
# Data are generated. EAGER=auto measures with servers that push, which is Rubato's default; SSPTable has none. STRAGGLER=
# changes who is slow. Deterministic: the same table on every machine. What the figures mean: docs/reproduction.md.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/methods.sh: set RUBATO to the command" >&2; exit 2; }
eager=${EAGER:-off}
straggler=${STRAGGLER-p=0.0625,slow=6}
[ $# -gt 0 ] || set -- mf lda lasso adarev
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Prints a number of the last line of the run's records.
figure() {
    tail -n 1 "$work/json" | awk -v key="$1" '{ if (match($0, "\"" key "\":[^,}]*")) print substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) }'
}

# How good the model of the last run is, all updates counted; less is better. Not the loss that workers tell during the
# run: theirs is that of their own copies, which miss what others did and so look better than the model is.
quality() {
    case $method in
    mf) "$RUBATO" eval --model "$work/model" --data "$data" 2>/dev/null | awk '/rmse/ { gsub(/[^0-9.e-]*rmse[^0-9.-]*/, ""); print $1 }' ;;
    lda) "$RUBATO" info "$work/model" | awk '/log_likelihood/ { print -$2 }' ;;
    lasso) "$RUBATO" info "$work/model" | awk '/^ *loss:/ { print $2 }' ;;
    esac
}

# A run that fails may have diverged, which is a finding; all else ends this.
only_diverged() {
    grep -q 'training diverged' "$work/messages" || { cat "$work/messages" >&2; exit 1; }
}

# run CLOCKS: sets `seconds`, `waited` (shares of the workers' time: at the bound and for the network together, then each)
# and whether the target is `reached`; `lost` if training diverged.
run() {
    code=0
    # shellcheck disable=SC2086 # options
    "$RUBATO" train "$method" --data "$data" $options --runtime sim --workers 32 --servers 4 $sync --eager "$eager" --net "$net" \
        ${straggler:+--straggler $straggler} --clocks "$1" --out "$work/model" --json "$work/json" --quiet >/dev/null 2>"$work/messages" || code=$?
    reached=0
    if [ "$code" -ne 0 ]; then
        only_diverged
        reached=lost
        return 0
    fi
    seconds=$(figure seconds)
    waited=$(tail -n 1 "$work/json" | awk '
        function next_of(key) {
            if (!match(rest, "\"" key "\":[^,}]*"))
                return -1
            value = substr(rest, RSTART + length(key) + 3, RLENGTH - length(key) - 3)
            rest = substr(rest, RSTART + RLENGTH)
            return value + 0
        }
        {
            rest = substr($0, index($0, "\"workers\":"))
            while ((c = next_of("compute")) >= 0) {
                compute += c
                bound += next_of("wait")
                network += next_of("communication")
            }
            all = compute + bound + network
            printf "%3.0f %%  (%2.0f + %2.0f)", 100 * (bound + network) / all, 100 * bound / all, 100 * network / all
        }')
    reached=$(quality | awk -v target="$target" '{ print ($1 <= target) + 0 }')
}

# The least number of clocks on a grid, 8 % apart, at which the target is reached, beginning at the one before.
search() {
    limit=54 # 638 clocks
    best=
    while [ "$step" -ge 0 ] && [ "$step" -le "$limit" ]; do
        clocks=$(awk -v k="$step" 'BEGIN { print int(10 * 1.08 ^ k + 0.5) }')
        run "$clocks"
        if [ "$reached" = 1 ]; then
            best=$clocks best_seconds=$seconds best_waited=$waited best_step=$step
            [ "${failed:-}" != "$((step - 1))" ] || break
            step=$((step - 1))
        elif [ "$reached" = lost ]; then
            break
        else
            failed=$step
            [ -z "$best" ] || break
            step=$((step + 1))
        fi
    done
    failed=
    step=${best_step:-$first_step}
}

sweep() {
    for net in bw=10Gbit,lat=100us bw=1Gbit,lat=100us; do
        echo "$1; $net; straggler ${straggler:-none}; eager $eager"
        echo "   s   clocks  virtual ms  ms/clock  not computing (at the bound + for the network)"
        step=$first_step
        for s in 0 1 2 4 8 16 32 inf; do
            case $s in
            0) sync='--sync bsp' ;;
            inf) sync='--sync asp' ;;
            *) sync="--sync ssp --staleness $s" ;;
            esac
            search
            if [ -n "$best" ]; then
                awk -v s="$s" -v n="$best" -v t="$best_seconds" -v w="$best_waited" \
                    'BEGIN { printf " %3s   %6d  %10.1f  %8.3f  %s\n", s, n, 1000 * t, 1000 * t / n, w }'
            else
                printf ' %3s   target not reached, %s\n' "$s" "$([ "$reached" = lost ] && echo diverged || echo "in $clocks clocks")"
            fi
        done
    done
}

# final RULE... : the loss after the last clock, and virtual ms per clock; `diverged` if it did.
final() {
    code=0
    "$RUBATO" train mf --data "$data" --rank 8 --runtime sim --workers 8 --servers 8 --sync bsp --net bw=1Gbit,lat=100us --epochs 100 \
        --json "$work/json" --quiet "$@" >/dev/null 2>"$work/messages" || code=$?
    if [ "$code" -eq 0 ]; then
        awk -v l="$(figure loss)" -v t="$(figure seconds)" -v n="$(figure clocks)" 'BEGIN { printf "%.4f (%.2f ms)", l, 1000 * t / n }'
    else
        only_diverged
        printf diverged
    fi
}

adarev() {
    echo "mf, 8 workers, BSP, a clock = a pass, 100 passes: mean squared error (virtual ms per clock) by the first step size"
    for share in items both; do
        echo "--share $share"
        for lr in 0.08 0.16 0.32 0.64 1.28; do
            printf '  %-7s  adarev %s   mult:0.98 %s\n' "$lr" "$(final --share "$share" --rule adarev --lr "$lr")" \
                "$(final --share "$share" --rule sum --step plain --decay mult:0.98 --lr "$lr")"
        done
        for lr in 0.0005 0.001 0.002 0.004 0.008; do
            printf '  %-7s  mult:0.98 %s\n' "$lr" "$(final --share "$share" --rule sum --step plain --decay mult:0.98 --lr "$lr")"
        done
    done
}

for method in "$@"; do
    case $method in
    mf | adarev)
        data=$work/ratings.dat
        [ -e "$data" ] || "$RUBATO" gen ratings --rows 100000 --users 1600 --items 500 --rank 8 --seed 1 --out "$data"
        options='--rank 8 --batch 10% --cost sample=1us,nnz=20ns' target=0.56 first_step=29
        if [ "$method" = mf ]; then
            sweep "mf, 100,000 ratings, 1,600 x 500, rank 8, RMSE <= $target"
        else
            adarev
        fi
        ;;
    lda)
        data=$work/docs.uci
        "$RUBATO" gen docs --rows 640 --words 600 --nnz 60 --topics 10 --seed 1 --out "$data"
        options='--topics 10 --batch 10% --cost nnz=3us' target=6.2 first_step=34
        sweep "lda, 640 documents, 600 words, 10 topics, log-likelihood per token >= -$target"
        ;;
    lasso)
        data=$work/lasso.svm
        "$RUBATO" gen regression --rows 500 --cols 20000 --nnz 200 --noise 0.1 --seed 1 --out "$data"
        options='--l1 0.005 --nonzeros all --cost nnz=30ns' target=8.84 first_step=9
        sweep "lasso, 500 x 20,000, objective <= $target"
        ;;
    *)
        echo "methods.sh: there is no '$method'; use mf, lda, lasso or adarev" >&2
        exit 2
        ;;
    esac
done
