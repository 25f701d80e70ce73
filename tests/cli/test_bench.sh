#!/bin/sh
# The comparison with the peers runs from beginning to end on a small set, gives every figure once, and its JSON and page can
# be read. Nothing is said here about speed. Needs LIBLINEAR and scikit-learn (make bench installs them).
peers=$(cd "$(dirname "$0")/../../bench" && pwd)/peers.py
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
[ "${RUBATO_SANITIZED:-0}" -eq 0 ] || exit 77
command -v liblinear-train >/dev/null || exit 77
/usr/bin/python3 -c 'import sklearn' 2>/dev/null || exit 77

# shellcheck disable=SC2154 # work, out and err are of lib.sh
RUBATO=$RUBATO /usr/bin/python3 -B "$peers" --quick --folder "$work/bench" >"$out" 2>"$err" || fail 'peers.py --quick'
prints 'Time to within 1 % and 0.1 % of the optimum'
prints 'LIBLINEAR'
python3 - "$work/bench" <<'PYTHON' || fail 'peers.json or peers.html is not as promised'
import json, sys
from html.parser import HTMLParser
result = json.load(open(sys.argv[1] + "/peers.json"))
rows = result["rows"]
assert {row["section"] for row in rows} == {"load", "one pass", "time to target", "rows per second", "peak memory"}
whats = [(row["section"], row["what"], row["peer"]) for row in rows]
assert len(whats) == len(set(whats))
for model in "lr", "svm":
    for level in "1 %", "0.1 %":
        for part in "load + train", "train":
            assert sum(row["what"] == f"{model}, {level}, {part}" for row in rows) == 1, (model, level, part)
assert all(row["rubato"] > 0 and row["theirs"] > 0 and row["low"] <= row["ratio"] <= row["high"] for row in rows)
(one,) = result["sets"]
for model, answer in one["tuned"].items():  # two independent solvers agree on the optimum
    assert abs(answer["reference_objective"] / answer["optimum"] - 1) < 1e-3, (model, answer)
    assert all(entry["excess"] <= entry["level"] for entry in answer["found"])
page = open(sys.argv[1] + "/peers.html").read()
HTMLParser().feed(page)
assert page.count("<tr>") > len(rows) and "http" not in page
PYTHON
