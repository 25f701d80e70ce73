"""How bench/peers.py shows what it measured: as text, as JSON and as a page that needs no other file.

Called by bench/peers.py only. A row is a ratio of medians; `sense` says which way: `rubato/peer` is good when small, `peer/rubato` and
`more` when large. `holds` is true, false, or none when nothing was asked. tests/cli/test_bench.sh reads what comes out.
"""
import html
import json
import math
import os
import statistics

TITLES = {"load": "Loading LIBSVM text, and the cache", "one pass": "One pass, from text to a saved model",
          "time to target": "Time to within 1 % and 0.1 % of the optimum", "rows per second": "Shared memory, in memory: rows per second",
          "peak memory": "Peak memory"}

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #667085; --line: #e4e7ec; --paper: #fff; --good: #177245; --bad: #b42318; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #2b3340; --paper: #12161d; --good: #4cc38a; --bad: #ff7b6b; } }
body { margin: 2.5rem auto; max-width: 72rem; padding: 0 1.2rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; } summary { cursor: pointer; margin-top: 1.2rem; } p, li { color: var(--soft); margin: .2rem 0; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: .82rem; } th, td { padding: .34rem .6rem .34rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; } td.n, td.v { white-space: nowrap; } .soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; }
.ratio { font-weight: 600; } footer { margin-top: 2.5rem; color: var(--soft); font-size: .85rem; }
"""


def number(value, unit):
    if math.isinf(value):
        return "not reached"
    if unit == "s":
        return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
    if unit == "rows/s":
        return f"{value / 1e6:.3g} M/s" if value >= 1e6 else f"{value / 1e3:.3g} k/s"
    return f"{value / 1e6:.3g} MB" if value >= 1e6 else f"{value:.3g} {unit}"


def asked(row):
    if row["asked"] is None:
        return "-"
    return f"{'<=' if row['sense'] == 'rubato/peer' else '>='} {row['asked']:g}"


def verdict(row):
    return {True: "holds", False: "falls short", None: ""}[row["holds"]]


def ratio(row):
    return "-" if math.isinf(row["ratio"]) else f"{row['ratio']:.3g}x"


def spread(row):
    return f"{row['low']:.3g} to {row['high']:.3g}"


def finite(value):
    """JSON has no infinity: what was not reached becomes null."""
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    if isinstance(value, list):
        return [finite(member) for member in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def sections(result):
    for section, title in TITLES.items():
        rows = [row for row in result["rows"] if row["section"] == section]
        if rows:
            yield title, rows


def count(result):
    return sum(row["holds"] is True for row in result["rows"]), sum(row["holds"] is False for row in result["rows"])


def intro(result):
    rounds = result["rounds"]
    return f"{result['machine']}; medians of {rounds} round{'s' if rounds > 1 else ''}, every contender once per round"


def text(result):
    lines = [f"Rubato beside its peers. {intro(result)}."]
    for title, rows in sections(result):
        lines += ["", title]
        head = ("set", "what", "rubato", "peer", "", "ratio", "spread", "asked", "")
        cells = [head] + [(row["set"], row["what"], number(row["rubato"], row["unit"]), number(row["theirs"], row["unit"]), row["peer"],
                           ratio(row), spread(row), asked(row), verdict(row)) for row in rows]
        widths = [max(len(cell[k]) for cell in cells) for k in range(len(head))]
        lines += ["  " + "  ".join(cell[k].ljust(widths[k]) if k in (0, 1, 4, 7, 8) else cell[k].rjust(widths[k])
                                   for k in range(len(head))).rstrip() for cell in cells]
    good, bad = count(result)
    lines += ["", f"{good} hold, {bad} fall short."] + [f"note: {note}" for note in result["notes"]]
    return "\n".join(lines)


def contenders(result):
    """All peers that reached a target, with the loosest setting that did; the tables above name only the fastest."""
    yield ("<details><summary>All peers' training times and settings</summary><table><tr><th>set<th>model<th>peer<th class='n'>target"
           "<th class='n'>setting<th class='n'>training alone<th>")
    for one in result["sets"]:
        for model, answer in one["tuned"].items():
            for entry in answer["found"]:
                samples = one["samples"].get(f"{entry['contender']} {model} {entry['level']}")
                seconds = statistics.median(samples) if samples else entry["seconds"]
                yield (f"<tr><td>{one['name']}<td>{model}<td>{entry['contender']}<td class='n'>{100 * entry['level']:g} %<td class='n'>"
                       f"{entry['setting']:g}<td class='n'>{number(seconds, 's')}<td class='soft'>{'' if samples else 'one run: far behind the fastest'}")
    yield "</table></details>"


def page(result):
    escape = html.escape
    good, bad = count(result)
    out = ["<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>",
           f"<title>Rubato beside its peers</title><style>{STYLE}</style><h1>Rubato beside its peers</h1>",
           f"<p>{escape(intro(result))}. <span class='good'>{good} hold</span>, <span class='{'bad' if bad else 'soft'}'>{bad} fall short</span>.</p>"]
    for title, rows in sections(result):
        out.append(f"<h2>{escape(title)}</h2><table><tr><th>set<th>what<th class='n'>rubato<th class='n'>peer<th><th class='n'>ratio"
                   "<th class='n'>spread<th class='n'>asked<th>")
        for row in rows:
            colour = {True: "good", False: "bad", None: "soft"}[row["holds"]]
            wanted = asked(row).replace("<=", "≤").replace(">=", "≥").replace("-", "")
            out.append(f"<tr><td>{escape(row['set'])}<td>{escape(row['what'])}<td class='n'>{number(row['rubato'], row['unit'])}"
                       f"<td class='n'>{number(row['theirs'], row['unit'])}<td class='soft'>{escape(row['peer'])}"
                       f"<td class='n ratio {colour}'>{ratio(row).replace('x', '×')}<td class='n soft'>{spread(row)}<td class='n'>{wanted}"
                       f"<td class='v {colour}'>{verdict(row)}")
        out.append("</table>")
    out.append("<h2>Sets</h2><table><tr><th>set<th class='n'>rows<th class='n'>non-zeros<th class='n'>l2<th>optimum, as far as the tight runs tell")
    for one in result["sets"]:
        optima = ", ".join(f"{model} {answer['optimum']:.7g}" for model, answer in one["tuned"].items())
        out.append(f"<tr><td>{escape(one['described'])}<td class='n'>{one['rows']:,}<td class='n'>{one['nonzeros']:,}"
                   f"<td class='n'>{one['l2']:.4g}<td class='soft'>{escape(optima)}")
    out.append("</table>")
    out += contenders(result)
    out.append("<h2>Notes</h2><ul>" + "".join(f"<li>{escape(note)}" for note in result["notes"]))
    out.append("<li>Ratios are what counts; times belong to this machine and this hour. Spread: the smallest and the largest ratio of a round."
               "</ul><footer>docs/benchmarks.md says how each figure is taken; peers.json has all samples.</footer></html>")
    return "\n".join(out)


def write(folder, result):
    with open(os.path.join(folder, "peers.json"), "w", encoding="utf-8") as file:
        json.dump(finite(result), file, indent=1)
    with open(os.path.join(folder, "peers.html"), "w", encoding="utf-8") as file:
        file.write(page(result))
