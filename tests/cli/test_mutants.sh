#!/bin/sh
# A checker that never fails proves nothing: each deliberately broken command is caught within 200 seeds, with the exit code
# of a broken guarantee and a line that replays the seed; the replay fails too, and the sound command passes that seed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

[ -n "${RUBATO_MUTANTS:-}" ] || exit 77

sound=$RUBATO
for name in staleness duplicate slice reach early own undo rest budget expire release token late jump gossip held; do
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
