#!/bin/sh
# A checker that never fails proves nothing: each deliberately broken command is caught within 200 seeds, with the exit code
# of a broken guarantee and a line that replays the seed; the replay fails too, and the sound command passes that seed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

[ -n "${RUBATO_MUTANTS:-}" ] || exit 77

sound=$RUBATO
for name in staleness duplicate slice reach early own undo rest budget expire release token late jump gossip held again; do
    RUBATO=$RUBATO_MUTANTS/rubato-mutant-$name
    [ -x "$RUBATO" ] || fail "$RUBATO was not built"
    expect 5 swarm --seeds 200
    says 'Replay: rubato swarm --replay '
    seed=$(sed -n 's/.*Replay: rubato swarm --replay \([0-9][0-9]*\).*/\1/p' "$err" | head -n 1)
    [ "${seed:-201}" -le 200 ] || fail "mutant $name: no seed to replay"
    says "seed $seed: "
    expect 5 swarm --replay "$seed"
    RUBATO=$sound
    expect 0 swarm --replay "$seed"
done

# what a run itself checks: an update that is applied twice is noticed at the end, by models and by methods
"$RUBATO" gen lr --out rows.svm --rows 400 --cols 50 --nnz 8 --seed 3
for what in 'kmeans --clusters 3' 'lr --lr 0.1 --rule sum --clocks 10'; do
    for code in 0 5; do
        [ $code -eq 0 ] || RUBATO=$RUBATO_MUTANTS/rubato-mutant-duplicate
        # shellcheck disable=SC2086
        expect $code train $what --data rows.svm --workers 4 --servers 2 --sync ssp --staleness 1 --runtime sim --faults drop=0.05,dup=0.05 --verify --quiet
        RUBATO=$sound
    done
    says 'clocks, the servers have'
done
