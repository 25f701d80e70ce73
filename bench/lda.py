#!/usr/bin/python3
"""Topic models: Rubato beside gensim, tokens per second in training, on generated documents.

    bench/lda.py [--quick] [--rounds N] [K...]          K: topics; default: 100 1000

Called by scripts/bench. 5,000 documents of a vocabulary of 10,000 with about a million tokens (`rubato gen docs`), two workers or
processes on both sides. Every round runs both, so that a slow minute of the machine is everybody's; figures are medians, beside
the lowest and the highest. Wall seconds of training alone: what `done` says of Rubato, a sweep being the difference between a long
and a short run; one pass of gensim's LdaMulticore (variational, chunks of 2,000 documents). Seconds of processor time are there too:
on a busy machine they are the fairer figure. RUBATO names the command. Without gensim (python3-gensim) its column is left out. A
figure that falls short is told and is no error.
"""
import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RUBATO = os.environ.get("RUBATO", os.path.join(ROOT, "build/release/rubato"))
WANTED = {100: 2.5e6, 1000: 1e6}


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def train(data, topics, sweeps, folder):
    """Wall seconds of training, processor seconds of the whole run."""
    out = os.path.join(folder, "run.json")
    before = processor_seconds()
    subprocess.run([RUBATO, "train", "lda", "--data", data, "--topics", str(topics), "--workers", "2", "--sync", "bsp", "--epochs",
                    str(sweeps), "--json", out, "--quiet"], check=True)
    with open(out, encoding="utf-8") as lines:
        done = [json.loads(line) for line in lines][-1]
    return done["seconds"], processor_seconds() - before


def rubato(data, tokens, topics, sweeps, folder):
    """Tokens per second of wall time, and of processor time."""
    short, short_cpu = train(data, topics, 1, folder)
    long, long_cpu = train(data, topics, 1 + sweeps, folder)
    return tokens * sweeps / max(long - short, 1e-9), tokens * sweeps / max(long_cpu - short_cpu, 1e-9)


def gensim_pass(data, topics):
    """The same of one pass of gensim, in this process and two of its own; None without it."""
    try:
        from gensim.models import LdaMulticore
    except ImportError:
        return None
    documents = {}
    with open(data, encoding="utf-8") as lines:
        for line in lines:
            parts = line.split()
            if len(parts) == 3:
                documents.setdefault(parts[0], []).append((int(parts[1]) - 1, int(parts[2])))
    corpus = list(documents.values())
    tokens = sum(count for document in corpus for _, count in document)
    words = {i: str(i) for i in range(10000)}
    usage = resource.getrusage(resource.RUSAGE_SELF)
    before, cpu = time.time(), usage.ru_utime + usage.ru_stime + processor_seconds()
    LdaMulticore(corpus, num_topics=topics, id2word=words, workers=2, passes=1, eval_every=None, random_state=1)
    took = time.time() - before
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return tokens / took, tokens / max(usage.ru_utime + usage.ru_stime + processor_seconds() - cpu, 1e-9)


def spread(values):
    return f"{statistics.median(values) / 1e6:8.3f} ({min(values) / 1e6:.3f} to {max(values) / 1e6:.3f})"


def measure(data, tokens, topics, rounds, sweeps, folder):
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(rubato(data, tokens, topics, sweeps, folder))
        other = gensim_pass(data, topics)
        if other is not None:
            theirs.append(other)
    for kind, name in enumerate(["wall", "processor"]):
        print(f"K = {topics:<5} {name:<10} rubato {spread([o[kind] for o in ours])} M tokens/s", end="")
        if theirs:
            ratios = [o[kind] / t[kind] for o, t in zip(ours, theirs)]
            print(f"   gensim {spread([t[kind] for t in theirs])}   ratio {statistics.median(ratios):.1f}", end="")
        print()
    if topics in WANTED and tokens > 500000:  # asked for a million
        fast = statistics.median(o[0] for o in ours)
        print(f"K = {topics:<5} at least {WANTED[topics] / 1e6:g} M tokens/s: {'holds' if fast >= WANTED[topics] else 'DOES NOT HOLD'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="*", type=int, default=[100, 1000])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("RBT_BENCH_ROUNDS", "3")))
    parser.add_argument("--quick", action="store_true", help="a tenth of the documents, one round")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "docword.txt")
        subprocess.run([RUBATO, "gen", "docs", "--rows", "500" if given.quick else "5000", "--cols", "10000", "--nnz", "135",
                        "--topics", "100", "--out", data], check=True, stdout=subprocess.DEVNULL)
        with open(data, encoding="utf-8") as lines:
            tokens = sum(int(line.split()[2]) for line in lines if line.count(" ") == 2)
        print(f"{tokens} tokens")
        for topics in given.topics:
            measure(data, tokens, topics, 1 if given.quick else given.rounds, 20, folder)


main()
