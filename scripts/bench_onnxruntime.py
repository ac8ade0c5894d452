#!/usr/bin/env python3
"""Measure evaluation by onnxruntime in the same way as `rna bench train --eval`.

The net is one of torchvision or timm with weights that are not trained; `rna export` writes it as ONNX. A step runs one
batch of float32 images in float32 on the CPU. The printed JSON has the fields of `rna bench train --json` that
bench_compare.py reads.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

import bench_pytorch


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="resnet50", help="a model of torchvision or timm that rna has")
    p.add_argument("--batch", type=int, default=16, help="images per step")
    p.add_argument("--eval", action="store_true", help="the only mode")
    p.add_argument("--rna", default="bin/rna", help="the program that exports the net")
    p.add_argument("--onnx", type=pathlib.Path, help="file of the net; written if it is not there (default: a temporary one)")
    p.add_argument("--steps", type=int, default=10, help="measured steps")
    p.add_argument("--warmup", type=int, default=3, help="unmeasured steps at the start")
    p.add_argument("--threads", type=int, default=0, help="computing threads (default: one per core)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json-file", metavar="FILE", help="write the result to FILE instead of standard output")
    args = p.parse_args()
    if args.batch < 1 or args.steps < 1 or args.warmup < 1:
        p.error("--batch, --steps and --warmup must be at least 1")
    return args


def export(args, file):
    """Write the net to file, and facts about it beside it. It runs in a process of its own, for PyTorch's memory."""
    import torch
    torch.manual_seed(args.seed)
    model, size, channels, classes = bench_pytorch.build(torch, args.model)
    model.eval()
    facts = {"gflop": bench_pytorch.count(torch, model, torch.zeros(1, channels, size, size), False) / 1e9,
        "parameters": sum(p.numel() for p in model.parameters()), "image_size": size, "channels": channels}
    weights = file.with_suffix(".pth")
    torch.save(model.state_dict(), weights)
    subprocess.run([args.rna, "export", str(weights), "--model", args.model, "-o", str(file)], check=True,
        stdout=subprocess.DEVNULL)
    weights.unlink()
    file.with_suffix(".json").write_text(json.dumps(facts))


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        file = args.onnx or pathlib.Path(folder) / "net.onnx"
        if not file.exists():
            child = multiprocessing.get_context("spawn").Process(target=export, args=(args, file))
            child.start()
            child.join()
            if child.exitcode:
                sys.exit(f"bench_onnxruntime: {args.model} was not exported")
        facts = json.loads(file.with_suffix(".json").read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads = args.threads or len(os.sched_getaffinity(0))
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    size, channels = facts["image_size"], facts["channels"]
    images = np.random.default_rng(args.seed).random((args.batch, channels, size, size), np.float32)

    def step():
        return session.run(["logits"], {"input": images})

    for _ in range(args.warmup):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF)
    gflop = facts.pop("gflop") * args.batch
    result = {
        "model": args.model, "mode": "evaluation", "batch": args.batch, **facts,
        "software": f"onnxruntime {onnxruntime.__version__}", "device": "cpu", "threads": threads, "precision": "float32",
        "processor": bench_pytorch.processor(), "load": os.getloadavg()[0],
        "warmup": args.warmup, "steps": seconds,
        "seconds": bench_pytorch.spread(seconds),
        "images_per_s": bench_pytorch.spread([args.batch / s for s in seconds]),
        "gflop": gflop,
        "gflop_per_s": bench_pytorch.spread([gflop / s for s in seconds]),
        "usage": {
            "user_s": (after.ru_utime - before.ru_utime) / args.steps,
            "system_s": (after.ru_stime - before.ru_stime) / args.steps,
            "faults": (after.ru_minflt - before.ru_minflt) / args.steps,
        },
        "peak_rss_bytes": after.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        "products": {},
    }
    with open(args.json_file, "w") if args.json_file else sys.stdout as f:
        json.dump(result, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
