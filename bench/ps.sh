#!/bin/sh
# Pushes and pulls between two processes of one machine, beside those of a parameter server on ZeroMQ (ps_yardstick.c: the steps of
# ps-lite, which is not packaged): in turn, three rounds, ratios of each. `ps.sh --quick`: one round. Run in an empty folder.
# On another machine ps-lite itself made 1.4, 2.1, 2.5 GB/s of pushes and 1.3, 1.9, 1.9 of pulls.
set -eu
[ -n "${RUBATO:-}" ] || { echo "bench/ps.sh: set RUBATO to the command" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
rounds=3
[ "${1:-}" != --quick ] || rounds=1
if ! ${CC:-cc} -O2 -pthread -o ps_yardstick "$here/ps_yardstick.c" -lzmq 2>ps_yardstick.log; then
    echo "left out: ZeroMQ cannot be compiled against (apt install libzmq3-dev; ps_yardstick.log says what is missing)"
    exit 0
fi

python3 - "$RUBATO" "$rounds" <<'PYTHON'
import re, statistics, subprocess, sys
rubato, rounds = sys.argv[1], int(sys.argv[2])
sizes = {"64 KiB": 65536, "1 MiB": 1 << 20, "16 MiB": 16 << 20}

def ours():
    out = subprocess.run([rubato, "bench", "net", "--only", "ring"], check=True, capture_output=True, text=True).stdout
    rates = {}
    for line in out.splitlines():
        size = re.match(r"ring +dense +(\d+ \w+)", line)
        if size and size[1] in sizes:
            rates[size[1]] = [float(x) for x in re.findall(r"([\d.]+) GB/s", line)]
    return rates

def yardstick():
    out = subprocess.run(["./ps_yardstick", *map(str, sizes.values())], check=True, capture_output=True, text=True).stdout
    return {size: [float(x) for x in line.split()[1:]] for size, line in zip(sizes, out.splitlines())}

ratios = {}
for turn in range(rounds):
    results = {}
    for who in (ours, yardstick) if turn % 2 == 0 else (yardstick, ours):
        results[who] = who()
    for size in sizes:
        for i, what in enumerate(("push", "pull")):
            a, b = results[ours][size][i], results[yardstick][size][i]
            ratios.setdefault((size, what), []).append(a / b)
            print(f"round {turn + 1}: {size:>6} {what}: ring {a:5.2f} GB/s, yardstick {b:5.2f} GB/s, {a / b:.1f}x", flush=True)
for (size, what), r in ratios.items():
    median = statistics.median(r)
    print(f"{size:>6} {what}: {median:.1f}x ({min(r):.1f} to {max(r):.1f}), asked 3x: {'holds' if median >= 3 else 'falls short'}")
PYTHON
