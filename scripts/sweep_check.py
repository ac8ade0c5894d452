"""Compares the searches of rna sweep with Optuna's at an equal number of trials or epochs.

The functions and learning curves are those of train/sweep/tpe_test.go, whose results the file has that is the argument.
It fails if a search is worse than Optuna's, in the logarithm of the best value, by Welch's t test at the level of 1 %.

A second argument has the records of a whole grid of runs and the results of TestRecorded on them. Optuna's searches
choose on the same records, ten times. Those of rna sweep fail, too, if they take more of the recorded time.
"""

import json
import math
import sys

import numpy as np
import optuna
from scipy import stats

optuna.logging.set_verbosity(optuna.logging.ERROR)

FUNCTIONS = {
    "bowl": lambda t: (math.log10(t.suggest_float("lr", 1e-5, 10, log=True)) + 1.3) ** 2
    + 0.3 * (math.log10(t.suggest_float("wd", 1e-7, 1, log=True)) + 3.5) ** 2,
    "valley": lambda t: valley(t.suggest_float("lr", 1e-3, 1, log=True), t.suggest_float("momentum", 0, 0.99)),
    "mixed": lambda t: mixed(
        t.suggest_float("lr", 1e-4, 1, log=True),
        t.suggest_categorical("batch", [16, 32, 64, 128]),
        t.suggest_int("warmup", 0, 10),
        t.suggest_float("smoothing", 0, 0.5),
    ),
}
EPOCHS = 27


def valley(lr, momentum):
    return (math.log10(lr) - math.log10(1 - momentum) - 0.2) ** 2 + 0.05 * momentum


def mixed(lr, batch, warmup, smoothing):
    a = math.log10(lr) - math.log10(batch / 64) + 1.5
    return a * a + 0.01 * (warmup - 4) ** 2 + abs(smoothing - 0.1) + 0.2 * abs(math.log2(batch / 32))


def curve(epoch, f):
    rate = 1 + f / (1 + f)
    return f + 2 * math.exp(-epoch * 0.1 * rate) - 2 * math.exp(-2.7 * rate)


def search(function, method, seed, trials, epochs):
    """Returns Optuna's best value of whole runs, and the epochs of all. epochs, if not None, bounds these."""
    sampler = optuna.samplers.TPESampler(seed=seed) if "tpe" in method else optuna.samplers.RandomSampler(seed=seed)
    pruner = optuna.pruners.NopPruner()
    if "asha" in method:
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    spent, best = 0, math.inf
    while spent < epochs if epochs else len(study.trials) < trials:
        trial = study.ask()
        f, stopped = function(trial), False
        for epoch in range(1, EPOCHS + 1):
            trial.report(curve(epoch, f), epoch)
            spent += 1
            if epoch < EPOCHS and trial.should_prune():
                stopped = True
                break
        if stopped:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, curve(EPOCHS, f))
            best = min(best, curve(EPOCHS, f))
    return best, spent


def replay(grid, method, seed, trials, epochs):
    """Returns Optuna's best loss of whole runs on recorded ones, their epochs and seconds. See search."""
    table = {tuple(r["Options"]): r for r in grid["Runs"]}
    names = [str(i) for i in range(len(grid["Runs"][0]["Options"]))]
    values = [sorted({p[i] for p in table}) for i in range(len(names))]
    sampler = optuna.samplers.TPESampler(seed=seed) if "tpe" in method else optuna.samplers.RandomSampler(seed=seed)
    pruner = optuna.pruners.NopPruner()
    if "asha" in method:
        pruner = optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3)
    study = optuna.create_study(sampler=sampler, pruner=pruner)
    most = math.inf
    if "tpe" not in method:  # in any order, and no point twice, as rna sweep
        most = len(table)
        for point in np.random.default_rng(seed).permutation(sorted(table)).tolist():
            study.enqueue_trial(dict(zip(names, point)))
    spent, seconds, best, begun = 0, 0, math.inf, 0
    while begun < most and (spent < epochs if epochs else begun < trials):
        begun += 1
        trial = study.ask()
        run = table[tuple(trial.suggest_categorical(n, v) for n, v in zip(names, values))]
        stopped = len(run["Losses"]) < grid["Epochs"]
        for epoch, (loss, took) in enumerate(zip(run["Losses"], run["Seconds"]), 1):
            trial.report(loss, epoch)
            spent, seconds = spent + 1, seconds + took
            if epoch < grid["Epochs"] and trial.should_prune():
                stopped = True
                break
        if stopped:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, loss)
            best = min(best, loss)
    return best, spent, seconds


def judge_records(path):
    """Prints the comparison on recorded runs, and returns whether rna sweep fails it."""
    with open(path) as file:
        grid = json.load(file)
    whole = min(r["Losses"][-1] for r in grid["Runs"] if len(r["Losses"]) == grid["Epochs"])
    print(f"{len(grid['Runs'])} recorded runs, the best loss {whole:.4f}: best loss, mean ± standard deviation; epochs; seconds")
    failed = False
    for method, got in sorted(grid["Results"].items()):
        theirs = []
        for seed in range(len(got["Best"])):
            budget = got["Spent"][seed] if "asha" in method else None
            theirs.append(replay(grid, method, seed, got["Spent"][seed] // grid["Epochs"], budget))
        a, b = np.array(got["Best"]), np.array([x[0] for x in theirs])
        p = stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue
        ours, others = np.mean(got["Seconds"]), np.mean([x[2] for x in theirs])
        print(
            f"{method:9} rna {a.mean():.4f} ± {a.std(ddof=1):.4f}, {np.mean(got['Spent']):5.0f}, {ours:6.1f}   "
            f"optuna {b.mean():.4f} ± {b.std(ddof=1):.4f}, {np.mean([x[1] for x in theirs]):5.0f}, {others:6.1f}   p {p:.3f}"
        )
        failed |= p < 0.01 or "asha" in method and ours > 1.02 * others
    return failed


def main():
    with open(sys.argv[1]) as file:
        ours = json.load(file)
    failed = False
    print("logarithms of the best value, mean ± standard error; epochs")
    for name in sorted(ours):
        for method, got in sorted(ours[name].items()):
            trials = len(got["Best"])
            theirs, spent = [], []
            for seed in range(trials):
                budget = got["Spent"][seed] if "asha" in method else None
                b, s = search(FUNCTIONS[name], method, seed, 60, budget)
                theirs.append(b)
                spent.append(s)
            a, b = np.log(np.array(got["Best"]) + 1e-9), np.log(np.array(theirs) + 1e-9)
            p = stats.ttest_ind(a, b, equal_var=False, alternative="greater").pvalue
            error = lambda x: np.std(x, ddof=1) / math.sqrt(len(x))
            print(
                f"{name:7} {method:9} rna {a.mean():6.2f} ± {error(a):.2f}, {np.mean(got['Spent']):5.0f}   "
                f"optuna {b.mean():6.2f} ± {error(b):.2f}, {np.mean(spent):5.0f}   p {p:.3f}"
            )
            failed |= p < 0.01
    if len(sys.argv) > 2:
        failed |= judge_records(sys.argv[2])
    if failed:
        sys.exit("rna sweep does worse than Optuna")


main()
