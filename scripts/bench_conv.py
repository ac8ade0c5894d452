#!/usr/bin/env python3
"""Compare convolutions with PyTorch one by one: `go test -bench Conv` of the CPU device and torch's operators in turn,
several rounds in one run.

PyTorch runs in four variants, as in bench_compare.py. A ratio is the time of the best variant, over the rounds, to this
program's, where 2 means twice as fast; times are medians.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys

from bench_compare import AVX2, VARIANTS
from bench_pytorch import tune_malloc

LINE = re.compile(r"\{([^}]*)\}: ([\d.e+-]+) ms")
PASSES = ("forward", "grad-input", "grad-weight")
BATCH = 16  # of convNets' depthwise and grouped layers, and of resnet50's


def ours(args, env):
    """Milliseconds by pass and layer; a layer is its fields as text."""
    times = {}
    for pass_ in PASSES:
        out = subprocess.run([args.test, "-test.run", "xxx", "-test.v", "-test.benchtime", f"{args.steps}x", "-test.bench",
            f"^BenchmarkConv$/^{args.level}$/^{args.net}$/^{pass_}$"], check=True, capture_output=True, text=True,
            env=os.environ | env).stdout
        for layer, ms in LINE.findall(out):  # the last run of each has all steps
            times[pass_, layer] = float(ms)
    return times


def theirs(args, layers, env, layout, malloc):
    command = [args.python, __file__, "--layers", json.dumps(layers), "--layout", layout, "--malloc", malloc, "--steps",
        str(args.steps)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | env).stdout
    return {(pass_, layer): ms for pass_, layer, ms in json.loads(out)}


def measure(args):
    """PyTorch's times of one variant, as JSON."""
    if args.malloc == "tuned":
        tune_malloc()
    import time
    import torch
    form = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    rows = []
    for layer in json.loads(args.layers):
        c = {k: int(v) for k, v in (field.split(":") for field in layer.split())}
        groups, stride, pad = max(1, c["groups"]), [c["stride"]] * 2, [c["pad"]] * 2
        x = torch.randn(BATCH, c["channels"], c["size"], c["size"]).to(memory_format=form)
        w = torch.randn(c["others"], c["channels"] // groups, c["kernel"], c["kernel"]).to(memory_format=form)
        dy = torch.randn_like(torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups))

        def backward(x_too, w_too):
            return torch.ops.aten.convolution_backward(dy, x, w, None, stride, pad, [1, 1], False, [0, 0], groups,
                [x_too, w_too, False])
        for pass_, f in zip(PASSES, (lambda: torch.nn.functional.conv2d(x, w, None, stride, pad, 1, groups),
                lambda: backward(True, False), lambda: backward(False, True))):
            for _ in range(2):
                f()
            start = time.perf_counter()
            for _ in range(args.steps):
                f()
            rows.append((pass_, layer, 1e3 * (time.perf_counter() - start) / args.steps))
    json.dump(rows, sys.stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("net", nargs="?", default="depthwise", choices=["depthwise", "grouped", "resnet50"],
        help="of convNets in nn/device/cpu/bench_test.go")
    p.add_argument("--test", default="bin/cpu.test", help="the CPU device's test program: go test -c")
    p.add_argument("--level", default="avx512", help="of this program; avx2 limits PyTorch too")
    p.add_argument("--python", default=sys.executable, help="a Python with torch")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=40, help="of each layer and pass in a round")
    for name in ("layers", "layout", "malloc"):  # of the process of one variant
        p.add_argument("--" + name, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.layers:
        measure(args)
        return
    env = AVX2 if args.level == "avx2" else {}
    own, other = [], {v: [] for v in VARIANTS}
    for _ in range(args.rounds):
        own.append(ours(args, env))
        layers = list(dict.fromkeys(layer for _, layer in own[0]))
        if not layers:
            sys.exit(f"bench_conv: {args.test} has no convolutions of {args.net!r} at level {args.level}: choose another --level")
        for v in VARIANTS:
            other[v].append(theirs(args, layers, env, *v))
    ratios = []
    print(f"{'ms, and ratio to the best variant':55}" + "".join(f"{p:>24}" for p in PASSES))
    for layer in layers:
        row = f"{layer.replace(' times:', ' ×')[:55]:55}"
        for pass_ in PASSES:
            if (pass_, layer) not in own[0]:
                continue
            mine = statistics.median(r[pass_, layer] for r in own)
            best = min(statistics.median(r[pass_, layer] for r in runs) for runs in other.values())
            ratios.append(best / mine)
            row += f"{mine:10.3g} {best:7.3g} {best / mine:5.2f}"
        print(row)
    print(f"{args.net}, {args.level}: ratios {min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}, "
          f"{sum(r < 1.3 for r in ratios)} of {len(ratios)} below 1.3")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as e:
        sys.exit(f"bench_conv: {' '.join(e.cmd)[:200]}: exit status {e.returncode}\n{e.stderr}")
