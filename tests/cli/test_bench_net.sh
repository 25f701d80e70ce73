#!/bin/sh
# rubato bench net measures every size over a kind of connection and tells what there is to measure. Nothing is said here
# about speed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
[ "${RUBATO_SANITIZED:-0}" -eq 0 ] || exit 77

# shellcheck disable=SC2154 # out and err are of lib.sh
"$RUBATO" bench net --only ring >"$out" 2>"$err" || fail 'bench net --only ring'
[ "$(grep -c '^ring .* | .*GB/s.* | .*GB/s' "$out")" -eq 10 ] || fail 'not every size and form has a line'
for size in '256 B' '4 KiB' '64 KiB' '1 MiB' '16 MiB'; do
    prints "$size"
done
expect 2 bench net --only pigeon
says 'unix, ring, tcp, tls'
