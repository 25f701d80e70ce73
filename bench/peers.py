#!/usr/bin/python3
"""Rubato beside LIBLINEAR, scikit-learn and (if it is there) Vowpal Wabbit: load time, one pass, time to within 1 % and 0.1 % of the
optimum, rows per second in shared memory, peak memory. docs/benchmarks.md says what each figure means and how it is taken.

    bench/peers.py [--quick] [--folder FOLDER] [SET...]     SET: a9a imdb 20news gen200k gen2m; default: all

Called by scripts/bench. Every round runs every contender once, so that a slow minute of the machine is everybody's; figures are
medians over RBT_BENCH_ROUNDS (5) rounds. RBT_BENCH_DATA names the folder of the real sets (plain or .zst); without it they are
left out with a note. RUBATO names the command. Prints tables and writes peers.json and peers.html into the folder (build/bench);
a figure that falls short is told and is no error. Proved by tests/cli/test_bench.sh.
"""
import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

import peers_page

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
# The system's own, which sees the packages of apt; another one may stand first in the path.
PYTHON = "/usr/bin/python3"
LEVELS = [0.01, 0.001]
# The peers need a few tens; who has not arrived after so many passes is said not to have reached the target.
PASSES_AT_MOST = 200
# Solvers that needed more than this many times the time of their family's best when settings were looked for are not timed
# again. By family (LIBLINEAR, scikit-learn), because loading differs between them and may decide who is first.
SHORT_LOADS = 5  # a load from the cache takes milliseconds: the median of so many counts for one round
WORTH_REPEATING = 2
REAL = {"a9a": "a9a", "imdb": "imdb.tfidf.train.libsvm", "20news": "20news.tfidf.train.libsvm"}
# A row's length, squared, is 1 on average, but for a9a 14.
STEPS = {"a9a": "0.036"}
GENERATED = {"gen200k": (200_000, 100_000, 50), "gen2m": (2_000_000, 1_000_000, 40), "quick": (3_000, 1_500, 20)}
DESCRIBED = {"gen200k": "generated, 200 k x 100 k, 50 per row", "gen2m": "generated, 2 M x 1 M, 40 per row"}


def tell(text):
    print(f"peers: {text}", file=sys.stderr, flush=True)


# A process counts as at least as large as the one that started it: this one grows with its samples, a fresh one stays small.
START = """import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""


def peak(command, allowed=(0,)):
    """Runs to the end; returns peak bytes."""
    answer = subprocess.run([PYTHON, "-I", "-S", "-c", START, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    code, kib = map(int, answer.stdout.split())
    if code not in allowed:
        raise SystemExit(f"peers: '{' '.join(command)}' ended with {code}:\n{answer.stderr}")
    return kib * 1024


def run(command, allowed=(0,)):
    """Runs to the end; returns wall seconds. What the command printed appears only if it failed."""
    read, write = os.pipe()
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=write)
    os.close(write)
    with os.fdopen(read, "rb") as errors:
        message = errors.read()
    process.wait()
    seconds = time.perf_counter() - start
    if process.returncode not in allowed:
        raise SystemExit(f"peers: '{' '.join(command)}' ended with {process.returncode}:\n{message.decode(errors='replace')}")
    return seconds


class Bench:
    def __init__(self, options, rounds):
        self.folder = options.folder
        self.rounds = rounds
        self.quick = options.quick
        self.models = options.models.split(",") if options.models else []
        self.solvers = options.solvers.split(",") if options.solvers else []
        self.rubato_path = os.environ.get("RUBATO") or os.path.join(ROOT, "build", "release", "rubato")
        self.liblinear = shutil.which("liblinear-train")
        self.vw = shutil.which("vw")
        self.notes = []
        self.rows = []  # what is printed
        self.raw = {}  # set -> contender -> samples
        if not self.liblinear:
            self.note("LIBLINEAR is left out: liblinear-train is not there; apt-get install liblinear-tools")
        if not self.vw:
            self.note("Vowpal Wabbit is left out: there is no command vw on this machine")
        if self.solvers:
            self.note(f"of the peers' solvers only those called {', '.join(self.solvers)} were run")

    def note(self, text):
        if text not in self.notes:
            tell(text)
            self.notes.append(text)

    def rubato(self, *options):
        """One training run; the members of its `done` record, and wall seconds."""
        record = os.path.join(self.folder, "run.json")
        seconds = run([self.rubato_path, "train", *options, "--quiet", "--json", record], allowed=(0, 3))
        with open(record, encoding="utf-8") as lines:
            done = json.loads(lines.readlines()[-1])
        return {**done, "wall": seconds}

    def side(self, data, tasks):
        """bench/peers_side.py in a process of its own; its answers, or none when scikit-learn is missing."""
        job = json.dumps({"data": data, "tasks": tasks})
        answer = subprocess.run([PYTHON, os.path.join(HERE, "peers_side.py")], input=job, stdout=subprocess.PIPE, text=True, check=False)
        if answer.returncode != 0:
            raise SystemExit("peers: the measurements of scikit-learn and LIBLINEAR failed, as told above")
        answers = [json.loads(line) for line in answer.stdout.splitlines()]
        if answers[0].get("missing"):
            self.note(answers[0]["missing"])
        return answers

    def find(self, name):
        """The path of a set's LIBSVM text, unpacked or generated if need be; None with a note when there is none."""
        path = os.path.join(self.folder, name + ".svm")
        if name in GENERATED:
            if not os.path.exists(path):
                tell(f"{name}: generating")
                rows, cols, nnz = map(str, GENERATED[name])
                run([self.rubato_path, "gen", "lr", "--rows", rows, "--cols", cols, "--nnz", nnz, "--out", path + ".part"])
                os.rename(path + ".part", path)
            return path
        source = os.environ.get("RBT_BENCH_DATA")
        plain = os.path.join(source or "", REAL[name])
        if source and os.path.exists(plain):
            return plain
        if source and os.path.exists(plain + ".zst") and shutil.which("zstd"):
            run(["zstd", "-q", "-d", "-f", plain + ".zst", "-o", path])
            return path
        self.note(f"{name} is left out: RBT_BENCH_DATA names no folder with {REAL[name]} (or {REAL[name]}.zst, and zstd to unpack it)")
        return None


class Measured:
    """One data set: its settings, found once, and the samples of all rounds."""

    def __init__(self, bench, name, path):
        self.bench, self.name, self.path = bench, name, path
        self.samples = {}
        self.cache = os.path.join(bench.folder, name + ".cache")
        self.model_file = os.path.join(bench.folder, name + ".model")
        self.models = ["softmax"] if name == "20news" else bench.models or (["lr", "svm"] if bench.quick else ["lr", "svm", "svm2"])
        run([bench.rubato_path, "convert", "--data", path, "--out", self.cache])
        once = bench.rubato(self.models[0], "--data", path, "--no-bias", "--epochs", "1", "--eval-every", "0")
        self.count = sum(worker["rows"] for worker in once["workers"])
        self.nonzeros = sum(worker["nonzeros"] for worker in once["workers"])
        self.parameter_bytes = once["parameter_bytes"]
        self.l2 = 1 / (self.count * (10 if name == "20news" else 1))
        # About a second: less says more about threads that start than about rows.
        self.passes = max(2, (8_000_000 if bench.quick else 200_000_000) // self.nonzeros)
        self.tuned = {}  # model -> the side's answer
        if bench.vw and self.models[0] == "lr":
            self.vw_path = os.path.join(bench.folder, name + ".vw")
            with open(path, encoding="utf-8") as lines, open(self.vw_path, "w", encoding="utf-8") as out:
                out.writelines(line.replace(" ", " | ", 1) for line in lines)

    def add(self, contender, value):
        self.samples.setdefault(contender, []).append(value)

    def tune(self):
        """The optimum of each model and the peers' settings that come within each level of it."""
        bench, tasks = self.bench, []
        for model in self.models:
            tight = bench.rubato(model, "--data", self.cache, "--no-bias", "--l2", repr(self.l2), "--optimizer", "sdca",
                                 "--workers", "1", "--tolerance", "1e-4" if bench.quick else "1e-5", "--epochs", "1000")
            tasks.append({"task": "tune", "model": model, "l2": self.l2, "levels": LEVELS, "optimum": tight["loss"], "solvers": bench.solvers})
        if self.name == "20news":
            tasks.append({"task": "tune", "model": "ovr", "l2": self.l2, "levels": LEVELS[:1], "optimum": None})
        for task, answer in zip(tasks, bench.side(self.path, tasks)[1:]):
            self.tuned[task["model"]] = answer
            apart = (task["optimum"] or answer["optimum"]) / answer["optimum"] - 1
            if apart > 1e-4 and not bench.quick:
                bench.note(f"{self.name} {task['model']}: rubato's tight run is {100 * apart:.3g} % above that of {answer['reference']}; "
                           "the lower one counts as the optimum")
        for task in tasks:  # without the peers rubato's own optimum has to do
            self.tuned.setdefault(task["model"], {"optimum": task["optimum"], "found": []})

    def worth_repeating(self):
        for model, answer in self.tuned.items():
            for level in LEVELS:
                for family in ("LIBLINEAR", "scikit-learn"):
                    found = [entry for entry in answer["found"] if entry["level"] == level and entry["contender"].startswith(family)]
                    best = min((entry["seconds"] for entry in found), default=0)
                    yield from ((model, entry) for entry in found if entry["seconds"] <= WORTH_REPEATING * best)

    def round(self):
        bench = self.bench
        once = [self.models[0], "--epochs", "1", "--eval-every", "0"]
        alone = [bench.rubato_path, "train", *once, "--out", self.model_file, "--quiet", "--data"]
        self.add("rubato one pass", run([*alone, self.path]))
        self.add("rubato peak", peak([*alone, self.path]))
        self.add("rubato peak cache", peak([*alone, self.cache]))
        load = [*once, "--optimizer", "sdca"]  # which looks for no step size before it begins
        self.add("rubato load", bench.rubato(*load, "--data", self.path, "--out", self.model_file)["load_seconds"])
        caches = [bench.rubato(*load, "--data", self.cache, "--out", self.model_file)["load_seconds"] for _ in range(SHORT_LOADS)]
        self.add("rubato load cache", statistics.median(caches))
        if bench.liblinear:  # a wrong cost is found after reading and before anything else: exactly the reading is timed
            reading = [bench.liblinear, "-c", "-1", self.path, os.devnull]
            self.add("LIBLINEAR load", run(reading, allowed=(1,)))
            self.add("LIBLINEAR peak", peak(reading, allowed=(1,)))
        if bench.vw and self.models[0] == "lr":
            learning = [bench.vw, "--quiet", "--loss_function", "logistic", "-d", self.vw_path, "-f", self.model_file + ".vw"]
            self.add("vw one pass", run(learning))
            self.add("vw peak", peak(learning))
        for model in self.models:
            for level in LEVELS:
                self.reach(model, level)
        if self.models[0] == "lr":
            self.shared_memory()
        self.peers()

    def reach(self, model, level):
        target = self.tuned[model]["optimum"] * (1 + level)
        done = self.bench.rubato(model, "--data", self.path, "--no-bias", "--l2", repr(self.l2), "--epochs", str(PASSES_AT_MOST),
                                 "--target-loss", repr(target))
        self.add(f"rubato {model} {level}", done["seconds"] if done["reached"] else math.inf)
        self.add(f"rubato {model} {level} with load", done["wall"] if done["reached"] else math.inf)
        if not done["reached"]:
            self.bench.note(f"{self.name} {model}: rubato did not come within {100 * level:g} % of the optimum in {PASSES_AT_MOST} passes")

    def shared_memory(self):
        for sync, workers in [("hogwild", 1), ("hogwild", 2), ("aig", 2), ("round-robin", 2)]:
            done = self.bench.rubato("lr", "--data", self.cache, "--sync", sync, "--workers", str(workers), "--optimizer", "sgd",
                                     "--lr", STEPS.get(self.name, "0.5"), "--epochs", str(self.passes), "--eval-every", "0")
            self.add(f"rubato {sync} {workers}", done["samples_per_second"])

    def peers(self):
        """scikit-learn and LIBLINEAR's library, in a fresh process that loads the data first."""
        tasks = [{"task": "fit", "model": model, "contender": entry["contender"], "setting": entry["setting"], "level": entry["level"],
                  "l2": self.l2} for model, entry in self.worth_repeating()]
        if self.models[0] == "lr":
            tasks.append({"task": "epoch", "l2": self.l2, "passes": self.passes})
        answers = self.bench.side(self.path, tasks)
        if "seconds" in answers[0]:
            self.add("scikit-learn load", answers[0]["seconds"])
            self.add("scikit-learn peak", answers[0]["peak"])
        for answer in answers[1:]:
            if answer["task"] == "epoch":
                self.add("scikit-learn epoch", answer["rows_per_second"])
            else:
                self.add(f"{answer['contender']} {answer['model']} {answer['level']}", answer["seconds"])


class Table:
    """Turns the samples of a set into rows: a ratio of medians, its spread over the rounds, what was asked, and the verdict."""

    def __init__(self, bench, measured):
        self.bench, self.m = bench, measured

    def row(self, section, what, unit, ours, peer, theirs, sense, asked):
        """ours and theirs: samples by round. sense: `rubato/peer` (asked: at most) or `peer/rubato`, `more` (at least)."""
        if not ours or not theirs:
            return
        if self.bench.quick:  # so small a set says nothing about speed
            asked = None
        pairs = [(b / a if sense == "peer/rubato" else a / b) for a, b in zip(ours, theirs)]
        mine, other = statistics.median(ours), statistics.median(theirs)
        ratio = other / mine if sense == "peer/rubato" else mine / other
        holds = None if asked is None else (ratio <= asked if sense == "rubato/peer" else ratio >= asked)
        self.bench.rows.append({"section": section, "set": self.m.name, "what": what, "unit": unit, "rubato": mine, "peer": peer,
                                "theirs": other, "ratio": ratio, "low": min(pairs), "high": max(pairs), "sense": sense,
                                "asked": asked, "holds": holds})

    def fill(self):
        s = self.m.samples.get
        load = "load"
        self.row(load, "text", "s", s("rubato load"), "scikit-learn", s("scikit-learn load"), "peer/rubato", 10)
        self.row(load, "text", "s", s("rubato load"), "LIBLINEAR", s("LIBLINEAR load"), "peer/rubato", 5)
        self.row(load, "cache", "s", s("rubato load cache"), "rubato, text", s("rubato load"), "peer/rubato", 20)
        asked = 0.25 if self.m.models[0] == "lr" else None
        self.row("one pass", f"{self.m.models[0]}, text to model", "s", s("rubato one pass"), "LIBLINEAR reading only",
                 s("LIBLINEAR load"), "rubato/peer", asked)
        self.row("one pass", "lr, text to model", "s", s("rubato one pass"), "Vowpal Wabbit", s("vw one pass"), "rubato/peer", 0.33)
        for model in self.m.models:
            for level in LEVELS:
                self.reach(model, level)
        if s("rubato hogwild 2"):
            self.shared_memory(s)
        self.memory()

    def with_load(self, peer, seconds):
        reading = self.m.samples.get("LIBLINEAR load" if peer.startswith("LIBLINEAR") else "scikit-learn load")
        return [a + b for a, b in zip(reading, seconds)] if reading else None

    def reach(self, model, level):
        """Against the fastest peer, once with and once without loading; which one that is may differ."""
        ours = f"rubato {model} {level}"
        losses = [model] if model != "softmax" else ["softmax", "ovr"]
        for loss in losses:
            alone = {}
            for entry in self.m.tuned[loss]["found"]:
                samples = self.m.samples.get(f"{entry['contender']} {loss} {entry['level']}")
                if entry["level"] == level and samples:
                    alone[entry["contender"]] = samples
            total = {peer: with_load for peer, samples in alone.items() if (with_load := self.with_load(peer, samples))}
            what = f"{model}, {100 * level:g} %"
            counted = level == LEVELS[0] and loss == model and self.m.name != "a9a"
            if not alone and loss == model and self.m.tuned[loss]["found"]:
                self.bench.note(f"{self.m.name} {loss}: no peer came within {100 * level:g} % of the optimum")
            for label, key, times, asked in [("load + train", ours + " with load", total, 0.5), ("train", ours, alone, 1.0)]:
                if times:
                    best = min(times, key=lambda peer: statistics.median(times[peer]))
                    name = best + (" (one-vs-rest: another model)" if loss == "ovr" else "")
                    self.row("time to target", f"{what}, {label}", "s", self.m.samples.get(key), name, times[best], "rubato/peer",
                             asked if counted else None)

    def shared_memory(self, s):
        section, two = "rows per second", s("rubato hogwild 2")
        self.row(section, "hogwild, 2 threads", "rows/s", two, "hogwild, 1 thread", s("rubato hogwild 1"), "more", 1.7)
        self.row(section, "hogwild, 2 threads", "rows/s", two, "scikit-learn SGDClassifier", s("scikit-learn epoch"), "more", 3)
        self.row(section, "hogwild, 2 threads", "rows/s", two, "round-robin, 2 threads", s("rubato round-robin 2"), "more", 1)
        self.row(section, "hogwild, 2 threads", "rows/s", two, "aig, 2 threads", s("rubato aig 2"), "more", None)

    def memory(self):
        """Per non-zero the parameters are taken off first. Small sets are left out: the process that starts them is about as
        large, and the program itself and text that is kept mapped count for much."""
        if self.m.nonzeros < 1_000_000 and not self.bench.quick:
            return
        section, text = "peak memory", self.m.samples["rubato peak"]
        for source, asked in [("text", 1.0), ("cache", None)]:
            whole = text if source == "text" else self.m.samples["rubato peak cache"]
            each = [(bytes_ - self.m.parameter_bytes) / self.m.nonzeros for bytes_ in whole]
            self.row(section, f"{source}, per non-zero", "B", each, "12 bytes", [12.0] * len(each), "rubato/peer", asked)
        for peer, key in [("LIBLINEAR, reading only", "LIBLINEAR peak"), ("scikit-learn, loading only", "scikit-learn peak"),
                          ("Vowpal Wabbit", "vw peak")]:
            self.row(section, "text, one pass", "B", text, peer, self.m.samples.get(key), "rubato/peer", None)


def machine():
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description="Rubato beside its peers; see docs/benchmarks.md.")
    parser.add_argument("sets", nargs="*", metavar="SET", help="a9a imdb 20news gen200k gen2m; default: all")
    parser.add_argument("--quick", action="store_true", help="a small generated set and one round: does everything work?")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench"), help="for data and results [build/bench]")
    parser.add_argument("--models", help="lr,svm,svm2: these only, where the set has two classes")
    parser.add_argument("--solvers", help="those whose names end so, such as '-s 7,SGDClassifier': on large sets others take hours")
    options = parser.parse_args()
    names = options.sets or (["quick"] if options.quick else [*REAL, "gen200k", "gen2m"])
    for name in names:
        if name not in REAL and name not in GENERATED:
            parser.error(f"there is no set called '{name}'; use a9a, imdb, 20news, gen200k or gen2m")
    os.makedirs(options.folder, exist_ok=True)
    rounds = 1 if options.quick else int(os.environ.get("RBT_BENCH_ROUNDS") or 5)
    bench = Bench(options, rounds)
    sets = []
    for name in names:
        path = bench.find(name)
        if path is None:
            continue
        measured = Measured(bench, name, path)
        tell(f"{name}: looking for the optimum and the peers' settings")
        measured.tune()
        for count in range(rounds):
            tell(f"{name}: round {count + 1} of {rounds}")
            measured.round()
        Table(bench, measured).fill()
        sets.append({"name": name, "described": DESCRIBED.get(name, name), "rows": measured.count, "nonzeros": measured.nonzeros,
                     "parameter_bytes": measured.parameter_bytes, "l2": measured.l2, "tuned": measured.tuned, "samples": measured.samples})
        result = {"machine": machine(), "rounds": rounds, "quick": options.quick, "notes": bench.notes, "sets": sets, "rows": bench.rows}
        peers_page.write(options.folder, result)  # after each set: an interrupted run has shown what it found
    if sets:
        print(peers_page.text(result))


if __name__ == "__main__":
    main()
