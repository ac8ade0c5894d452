"""Compare averages and extrapolations of a run at a constant learning rate with a run whose rate falls.

python merge_study.py RNA [--cifar10 FOLDER] [--seeds N] [--json FILE]: needs Python alone. For each seed LeNet is trained twice with
equal data and steps: at a constant rate, and with a rate that falls linearly over the last four epochs, whose factors are those that
`rna merge --by wsm` stands for. `rna replay` gives RNA and the moving averages of the first run, `rna merge` the merged weights. The
table has the validation error in % and the loss, and the differences to the run with the decay, with 95 % intervals by Student's t."""
import argparse, json, os, statistics, subprocess, sys, tempfile

T95 = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]  # by degrees of freedom
DECAY = 4  # epochs of the decay, with the factors 4/5 to 1/5


def rna(*args):
    p = subprocess.run([RNA, *map(str, args)], capture_output=True, text=True)
    if p.returncode:
        sys.exit(f"rna {' '.join(map(str, args))}: {p.stderr}")
    return p.stdout


def scores(val):
    return 100 - val["top1"], val["loss"]


def one(dir, data, epochs, batches, seed):
    """The points of one seed: validation error and loss by name."""
    common = ["--model", "lenet", "--data", data, "--lr", 0.05, "--seed", seed, "--limit-batches", batches, "--keep-every", 1,
              "--threads", 1, "--workers", 1, "--rna", "off", "--quiet"]
    flat, fall = os.path.join(dir, f"flat-{seed}"), os.path.join(dir, f"fall-{seed}")
    rna("train", *common, "--epochs", epochs, "--schedule", "constant", "--out", flat)
    # one epoch more, at a rate of 0, so that the factors are 4/5, 3/5, 2/5 and 1/5
    rna("train", *common, "--epochs", epochs + 1, "--schedule", "hold", "--lr-hold", epochs - DECAY, "--lr-final", 0, "--out", fall)

    def kept(run, epoch):
        return os.path.join(run, "kept", f"epoch-{epoch:04}.safetensors")

    def judged(file):
        return scores(json.loads(rna("eval", "--weights", file, "--json"))["score"])

    out = {"constant rate": judged(kept(flat, epochs)), "linear decay": judged(kept(fall, epochs))}
    files = [kept(flat, e) for e in range(epochs - DECAY, epochs + 1)]
    for schedule in "linear", "cosine", "1-sqrt":
        to = os.path.join(dir, "merged.safetensors")
        rna("merge", *files, "-o", to, "--by", "wsm", "--schedule", schedule, "--quiet")
        out["wsm " + schedule] = judged(to)
    replay = json.loads(rna("replay", flat, "--rna-window", DECAY, "--lambda", "1e-9,1e-3", "--averages", 2 * DECAY + 2, "--ema", "0.5,0.8",
                            "--json"))
    names = {"average": f"mean of {2 * DECAY + 2}"}
    for c in replay["curves"]:
        if c["kind"] != "sgd":
            assert c["points"][-1]["epoch"] == epochs, c["name"]
            out[names.get(c["kind"], c["name"])] = scores(c["points"][-1]["val"])
    return out


def interval(values):
    mean = statistics.mean(values)
    if len(values) < 2:
        return mean, float("nan")
    return mean, T95[len(values) - 1] * statistics.stdev(values) / len(values) ** 0.5


def main():
    global RNA
    p = argparse.ArgumentParser()
    p.add_argument("rna")
    p.add_argument("--cifar10")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--json")
    a = p.parse_args()
    RNA = os.path.abspath(a.rna)
    sets = {"glyphs": ("glyphs", 12, 1000)}
    if a.cifar10:
        sets["CIFAR-10"] = (os.path.abspath(a.cifar10), 15, 100)
    kept = {}
    for name, (data, epochs, batches) in sets.items():
        with tempfile.TemporaryDirectory(prefix="merge-study-") as dir:
            runs = []
            for seed in range(1, a.seeds + 1):
                runs.append(one(dir, data, epochs, batches, seed))
                print(name, "seed", seed, {k: (round(e, 2), round(l, 3)) for k, (e, l) in runs[-1].items()}, file=sys.stderr, flush=True)
        kept[name] = runs
        if a.json:
            with open(a.json, "w") as f:
                json.dump(kept, f, indent=1)
        print(f"\n| {name}, epoch {epochs} | error | to the decay | loss | to the decay |\n|-|-|-|-|-|")
        for point in runs[0]:
            cells = [point]
            for i, digits in (0, 2), (1, 3):
                mean, _ = interval([r[point][i] for r in runs])
                d, e = interval([r[point][i] - r["linear decay"][i] for r in runs])
                cells += [f"{mean:.{digits}f}", "" if point == "linear decay" else f"{d:+.{digits}f} ± {e:.{digits}f}".replace("-", "−")]
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
