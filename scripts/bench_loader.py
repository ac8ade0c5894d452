#!/usr/bin/env python3
"""Compare the loader with torchvision (Pillow) and PyTorch's DataLoader: all in turn, several rounds in one run.

A round measures every program once, so that other load affects all of them alike. Rates are images a second of the
process's own processor time, for one core. Ratios are to torchvision in the same round: the median, with the lowest and
the highest. The DataLoader and the line beside it are images a second of wall time with a worker on every core.

The last table is the number of images a second that N cores load. 1 and 2 are measured, by the processor time of as many
workers. More are computed: N times the rate of one, times the efficiency of two, limited by the memory's bandwidth, of
which an image takes its file, twice its decoded planes and twice the sample."""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SIZE = 224
TWO = "rna, training, each of 2 cores"


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("data", type=pathlib.Path, help="images as train/<class>/*.JPEG")
    p.add_argument("--rna", default="bin/rna", help="this program")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2, help="of each measurement")
    p.add_argument("--out", type=pathlib.Path, help="file for the JSON of all measurements")
    p.add_argument("--worker", choices=("train", "eval"), help=argparse.SUPPRESS)
    p.add_argument("--loader", type=int, help=argparse.SUPPRESS)
    return p.parse_args()


def transform(sample):
    import numpy as np
    import torchvision.transforms as T

    steps = {
        "train": [T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip()],
        "eval": [T.Resize(round(SIZE * 256 / 224)), T.CenterCrop(SIZE)],
    }[sample]
    return T.Compose([*steps, np.array])


def torchvision(args):
    """One process, one thread: files are cached in memory after the first pass."""
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    files = sorted(args.data.glob("train/*/*"))
    change = transform(args.worker)
    random.seed(1)
    torch.manual_seed(1)
    images, start = 0, None
    while start is None or time.process_time() - start < args.seconds:
        for f in files:
            with open(f, "rb") as b:
                change(Image.open(b).convert("RGB"))
        if start is None:
            start = time.process_time()  # after one pass
        else:
            images += len(files)
    return images / (time.process_time() - start)


class Images:
    def __init__(self, files, repeats):
        self.files, self.repeats, self.change = files, repeats, transform("train")

    def __len__(self):
        return len(self.files) * self.repeats

    def __getitem__(self, i):
        import torch
        from PIL import Image

        torch.set_num_threads(1)
        with open(self.files[i % len(self.files)], "rb") as b:
            return torch.from_numpy(self.change(Image.open(b).convert("RGB")))


def dataloader(args):
    """Images a second of wall time."""
    from torch.utils.data import DataLoader

    files = sorted(args.data.glob("train/*/*"))
    repeats = max(1, int(200 * args.loader * args.seconds / len(files)))
    batches = iter(DataLoader(Images(files, repeats), batch_size=64, shuffle=True, num_workers=args.loader))
    next(batches)
    start, images = time.time(), 0
    for b in batches:
        images += len(b)
    return images / (time.time() - start)


def bandwidth():
    """Bytes a second read and written by a copy: the best of several."""
    import numpy as np

    a, best = np.ones(1 << 26, np.uint8), 0
    b = np.empty_like(a)
    for _ in range(10):
        start = time.perf_counter()
        np.copyto(b, a)
        best = max(best, 2 * a.nbytes / (time.perf_counter() - start))
    return best


def feed(results, base, place):
    """Print the number of images a second that N cores load."""
    from PIL import Image

    files = sorted(place.glob("train/*/*"))
    planes = statistics.mean(w * h * 3 for w, h in (Image.open(f).size for f in files))
    traffic = statistics.mean(f.stat().st_size for f in files) + 2 * planes + 2 * 3 * SIZE * SIZE
    copy = bandwidth()
    print(f"\nAn image takes {traffic / 1e6:.1f} MB of the memory's bandwidth, which is {copy / 1e9:.0f} GB/s for one "
        f"core here.")
    one, other = statistics.median(results["rna, training"]), statistics.median(results[base])
    print("| cores | images/s, training | | torchvision, a process a core |\n|-|-|-|-|")
    print(f"| 1 | {one:.0f} | measured | {other:.0f} |")
    efficiency = 1
    if TWO in results:
        two = statistics.median(results[TWO])
        efficiency = min(1, two / one)
        print(f"| 2 | {2 * two:.0f} | measured | {2 * other:.0f}, computed |")
    for n in 8, 16:
        print(f"| {n} | {min(n * one * efficiency, copy / traffic):.0f} | computed | {n * other:.0f}, computed |")


def main():
    args = parse()
    if args.worker:
        print(json.dumps(torchvision(args)))
        return
    if args.loader:
        print(json.dumps(dataloader(args)))
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)

        def pack(name, *options):
            subprocess.run([args.rna, "data", "pack", str(args.data), str(folder / name), "--quiet", *options],
                check=True, stdout=subprocess.DEVNULL)
            return folder / name

        def rna(place, sample, workers, *options, wall=False):
            file = folder / "result.json"
            subprocess.run([args.rna, "bench", "data", str(place), "--sample", sample, "--workers", str(workers),
                "--seconds", str(args.seconds),
                            "--json-file", str(file), *options], check=True, stdout=subprocess.DEVNULL)
            r = json.loads(file.read_text())
            usage = r["usage"]["user_s"] + r["usage"]["system_s"]
            return r["images"] / (r["seconds"] if wall else usage)

        def other(*options):
            return json.loads(subprocess.run([sys.executable, __file__, str(args.data), "--seconds", str(args.seconds),
                *options], check=True,
                                             capture_output=True, text=True).stdout)

        jpeg512, jpeg256, raw = pack("512", "--size", "512"), pack("256", "--size", "256"), pack("raw", "--raw", "256")
        recoded = pack("recoded", "--size", "512", "--recode")
        # Name: the measurement, and the row with which it is compared.
        base, evaluation, loader = "torchvision, training", "torchvision, evaluation", f"DataLoader, training, {cores} workers, wall time"
        programs = {
            base: (lambda: other("--worker", "train"), None),
            "rna, training": (lambda: rna(args.data, "train", 1), base),
            "rna, training, packed at 512": (lambda: rna(jpeg512, "train", 1), base),
            "rna, training, packed at 512, recoded": (lambda: rna(recoded, "train", 1), base),
            "rna, training, packed at 256": (lambda: rna(jpeg256, "train", 1), base),
            "rna, training, raw at 256": (lambda: rna(raw, "train", 1), base),
            evaluation: (lambda: other("--worker", "eval"), None),
            "rna, evaluation": (lambda: rna(args.data, "eval", 1), evaluation),
            loader: (lambda: other("--loader", str(cores)), None),
            f"rna, training, {cores} workers, wall time": (lambda: rna(args.data, "train", cores, wall=True), loader),
        }
        if cores > 1:
            programs[TWO] = (lambda: rna(args.data, "train", 2), base)
        results = {name: [] for name in programs}
        for _ in range(args.rounds):
            for name, (measure, _) in programs.items():
                results[name].append(measure())
        print(f"{cores} cores, load {os.getloadavg()[0]:.1f}; {len(sorted(args.data.glob('train/*/*')))} images; "
            f"{args.rounds} rounds")
        print("| samples | images/s | ratio |\n|-|-|-|")
        for name, (_, to) in programs.items():
            rate, ratio = statistics.median(results[name]), ""
            if to:
                q = sorted(a / b for a, b in zip(results[name], results[to]))
                ratio = f"{statistics.median(q):.2f} ({q[0]:.2f}–{q[-1]:.2f})"
            print(f"| {name} | {rate:.0f} | {ratio} |")
        feed(results, base, args.data)
        if args.out:
            args.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
