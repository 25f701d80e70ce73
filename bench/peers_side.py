#!/usr/bin/python3
"""The peers that are measured inside a process: scikit-learn, and LIBLINEAR's library (so that training alone can be timed
exactly, without its reading and saving).

Called by bench/peers.py, once per data set to find settings and once per round to time them, with a job as JSON on the standard
input: {"data": PATH, "tasks": [...]}. Writes one JSON object per line: first {"task": "load", ...}, then one per task, in order.
A peer that is not installed is told in "missing" and left out. Only the fit itself is timed; objectives are computed by this
file, outside of the timing, with the formula that rubato reports: mean loss + l2/2 |w|^2. tests/cli/test_bench.sh runs it.
"""
import ctypes
import ctypes.util
import json
import math
import resource
import sys
import time
import warnings

try:
    import numpy as np
    import sklearn
    from sklearn.datasets import load_svmlight_file
    from sklearn.linear_model import LogisticRegression, SGDClassifier
except ImportError as problem:  # told to the driver, which goes on without these peers
    print(json.dumps({"task": "load", "missing": f"scikit-learn is not there ({problem}); apt-get install python3-sklearn"}))
    sys.exit(0)

# From loose to tight: the first setting that is good enough is the one that is timed.
TOLERANCES = [10, 3, 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 1e-5]
ITERATIONS = [1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 25, 30, 40, 50, 65, 80, 100, 150, 200, 300]
# A solver that needs this many times the time of the best one of its family without being there is given up.
GIVE_UP = 3
# A fit so short that repeating it costs nothing: the give-up rule waits that long.
SHORT_SECONDS = 0.5


class Node(ctypes.Structure):
    _fields_ = [("index", ctypes.c_int), ("value", ctypes.c_double)]


class Problem(ctypes.Structure):
    _fields_ = [("l", ctypes.c_int), ("n", ctypes.c_int), ("y", ctypes.c_void_p), ("x", ctypes.c_void_p), ("bias", ctypes.c_double)]


class Parameter(ctypes.Structure):
    # Newer versions have `nu` where older ones have `init_sol`: both are zero here, so that either may read it.
    _fields_ = [("solver_type", ctypes.c_int), ("eps", ctypes.c_double), ("C", ctypes.c_double), ("nr_weight", ctypes.c_int),
                ("weight_label", ctypes.c_void_p), ("weight", ctypes.c_void_p), ("p", ctypes.c_double), ("nu", ctypes.c_double),
                ("init_sol", ctypes.c_void_p), ("regularize_bias", ctypes.c_int), ("w_recalc", ctypes.c_bool)]


class Liblinear:
    """LIBLINEAR's own library on rows in its own layout, one array of nodes, as its reader makes it."""

    def __init__(self, rows, labels):
        self.library = ctypes.CDLL(ctypes.util.find_library("linear"))
        self.library.train.restype = ctypes.c_void_p
        self.library.get_decfun_coef.restype = ctypes.c_double
        self.library.get_decfun_coef.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int]
        self.silence = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda _: None)
        self.library.set_print_string_function(self.silence)
        count, features = rows.shape
        ends = np.arange(1, count + 1) + rows.indptr[1:]  # every row ends with index -1
        self.nodes = np.empty(rows.nnz + count, dtype=np.dtype([("index", np.int32), ("value", np.float64)], align=True))
        assert self.nodes.dtype.itemsize == ctypes.sizeof(Node)
        inner = np.ones(len(self.nodes), dtype=bool)
        inner[ends - 1] = False
        self.nodes["index"][inner] = rows.indices + 1
        self.nodes["value"][inner] = rows.data
        self.nodes["index"][~inner] = -1
        self.nodes["value"][~inner] = 0
        starts = np.concatenate(([0], ends[:-1]))
        self.pointers = (self.nodes.ctypes.data + starts * self.nodes.dtype.itemsize).astype(np.uint64)
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.classes = np.unique(labels)
        self.problem = Problem(count, features, self.labels.ctypes.data, self.pointers.ctypes.data, -1.0)

    def train(self, solver, eps, cost):
        """Returns the seconds of train() and the weights, one row per class (one row in all for two classes)."""
        parameter = Parameter(solver_type=solver, eps=eps, C=cost, p=0.1, regularize_bias=1)
        start = time.perf_counter()
        model = self.library.train(ctypes.byref(self.problem), ctypes.byref(parameter))
        seconds = time.perf_counter() - start
        order = (ctypes.c_int * len(self.classes))()
        self.library.get_labels(ctypes.c_void_p(model), order)
        coefficient, features = self.library.get_decfun_coef, self.problem.n
        wanted = [list(order).index(int(label)) for label in (self.classes if len(self.classes) > 2 else self.classes[1:])]
        weights = np.array([[coefficient(model, i, k) for i in range(1, features + 1)] for k in wanted])
        handle = ctypes.c_void_p(model)
        self.library.free_and_destroy_model(ctypes.byref(handle))
        return seconds, weights


def binary_loss(kind, margins):
    if kind == "lr":
        return np.logaddexp(0, -margins).mean()
    hinge = np.maximum(0, 1 - margins)
    return (hinge if kind == "svm" else hinge * hinge).mean()


class Side:
    def __init__(self, job):
        start = time.perf_counter()
        self.rows, self.labels = load_svmlight_file(job["data"])
        self.load_seconds = time.perf_counter() - start
        self.peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.classes = np.unique(self.labels)
        self.liblinear = None
        self.missing = None
        if any(task["task"] in ("tune", "fit") for task in job["tasks"]):
            if ctypes.util.find_library("linear"):
                self.liblinear = Liblinear(self.rows, self.labels)
            else:
                self.missing = "LIBLINEAR's library is not there; apt-get install liblinear-tools"

    def cost(self, l2):
        return 1 / (l2 * self.rows.shape[0])

    def objective(self, model, weights, l2):
        """`ovr`: one-vs-rest, the sum over the classes of what lr minimises for each."""
        scores = self.rows @ weights.T
        penalty = l2 / 2 * float((weights * weights).sum())
        if model == "softmax":
            shift = scores.max(axis=1)
            total = np.log(np.exp(scores - shift[:, None]).sum(axis=1)) + shift
            own = scores[np.arange(len(scores)), np.searchsorted(self.classes, self.labels)]
            return float((total - own).mean()) + penalty
        if model == "ovr":
            return sum(float(binary_loss("lr", np.where(self.labels == label, 1, -1) * scores[:, k]))
                       for k, label in enumerate(self.classes)) + penalty
        return float(binary_loss(model, np.where(self.labels == self.classes[1], 1, -1) * scores[:, 0])) + penalty

    def fit(self, model, contender, setting, l2):
        family, _, detail = contender.partition(" ")
        if family == "LIBLINEAR":
            return self.liblinear.train(int(detail.split()[1]), setting, self.cost(l2))
        if detail == "SGDClassifier":
            loss = {"lr": "log_loss", "svm": "hinge", "svm2": "squared_hinge"}[model]
            learner = SGDClassifier(loss=loss, alpha=l2, fit_intercept=False, max_iter=setting, tol=None, random_state=1)
        else:
            solver = detail.split()[1]
            limits = {"tol": setting, "max_iter": 1000} if solver == "liblinear" else {"tol": 1e-12, "max_iter": setting}
            kind = "multinomial" if model == "softmax" else "auto"
            learner = LogisticRegression(C=self.cost(l2), fit_intercept=False, solver=solver, multi_class=kind, random_state=1, **limits)
        start = time.perf_counter()
        learner.fit(self.rows, self.labels)
        return time.perf_counter() - start, learner.coef_

    def contenders(self, model):
        names = {"lr": ["LIBLINEAR -s 0", "LIBLINEAR -s 7", "scikit-learn SGDClassifier", "scikit-learn LogisticRegression lbfgs",
                        "scikit-learn LogisticRegression liblinear", "scikit-learn LogisticRegression newton-cg"],
                 "svm": ["LIBLINEAR -s 3", "scikit-learn SGDClassifier"],
                 "svm2": ["LIBLINEAR -s 1", "LIBLINEAR -s 2", "scikit-learn SGDClassifier"],
                 "softmax": ["scikit-learn LogisticRegression lbfgs", "scikit-learn LogisticRegression newton-cg",
                             "scikit-learn LogisticRegression saga"],
                 "ovr": ["LIBLINEAR -s 0", "LIBLINEAR -s 7"]}[model]
        return [name for name in names if self.liblinear or not name.startswith("LIBLINEAR")]

    def reference(self, model, l2, wanted):
        """A second opinion on the optimum: the name of a peer, if it is wanted, and the objective of its tight run."""
        name, setting = {"lr": ("LIBLINEAR -s 0", 1e-4), "svm": ("LIBLINEAR -s 3", 1e-3), "svm2": ("LIBLINEAR -s 2", 1e-4),
                         "softmax": ("scikit-learn LogisticRegression newton-cg", 30), "ovr": ("LIBLINEAR -s 0", 1e-4)}[model]
        if name not in self.contenders(model) or not name.endswith(wanted):
            return None, math.inf
        return name, self.objective(model, self.fit(model, name, setting, l2)[1], l2)

    def tune(self, task):
        """The loosest setting of each contender that comes within each level of the optimum."""
        model, l2, levels = task["model"], task["l2"], task["levels"]
        wanted = tuple(task.get("solvers") or [""])
        name, second = self.reference(model, l2, wanted)
        first = task["optimum"] if task["optimum"] is not None else math.inf
        optimum = min(first, second)
        best = {}  # of each family: who trains fastest need not be first when loading is counted
        found = []
        for contender in [name for name in self.contenders(model) if name.endswith(wanted)]:
            family = contender.split()[0]
            print(f"peers:   {model}: {contender}", file=sys.stderr, flush=True)
            open_levels = list(levels)
            by_tolerance = contender.startswith("LIBLINEAR") or contender.endswith("liblinear")
            for setting in TOLERANCES if by_tolerance else ITERATIONS:
                seconds, weights = self.fit(model, contender, setting, l2)
                excess = self.objective(model, weights, l2) / optimum - 1
                for level in [level for level in open_levels if excess <= level]:
                    open_levels.remove(level)
                    best[family, level] = min(best.get((family, level), math.inf), seconds)
                    found.append({"contender": contender, "level": level, "setting": setting, "seconds": seconds, "excess": excess})
                open_levels = [level for level in open_levels
                               if seconds <= max(SHORT_SECONDS, GIVE_UP * best.get((family, level), math.inf))]
                if not open_levels:
                    break
        return {"optimum": optimum, "reference": name, "reference_objective": second if name else None, "found": found}

    def epoch(self, task):
        """Rows per second of a pass of SGDClassifier over data in memory; the first pass, which prepares, is not counted."""
        learner = SGDClassifier(loss="log_loss", alpha=task["l2"], fit_intercept=False, random_state=1)
        learner.partial_fit(self.rows, self.labels, classes=self.classes)
        passes = task["passes"]
        start = time.perf_counter()
        for _ in range(passes):
            learner.partial_fit(self.rows, self.labels)
        return {"rows_per_second": passes * self.rows.shape[0] / (time.perf_counter() - start)}

    def run(self, task):
        if task["task"] == "tune":
            return self.tune(task)
        if task["task"] == "epoch":
            return self.epoch(task)
        seconds, _ = self.fit(task["model"], task["contender"], task["setting"], task["l2"])
        return {"seconds": seconds}


def main():
    warnings.simplefilter("ignore")  # not converged is what a short run is meant to be
    job = json.load(sys.stdin)
    side = Side(job)
    load = {"task": "load", "seconds": side.load_seconds, "peak": side.peak, "missing": side.missing, "version": sklearn.__version__}
    print(json.dumps(load), flush=True)
    for task in job["tasks"]:
        print(json.dumps({**task, **side.run(task)}), flush=True)


if __name__ == "__main__":
    main()
