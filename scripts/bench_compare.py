#!/usr/bin/env python3
"""Compare this program with PyTorch, or in evaluation with onnxruntime: `rna bench train` and bench_pytorch.py or
bench_onnxruntime.py in turn, several rounds in one run.

A round measures every program once, so that other load affects all of them alike. Rates are medians over all steps of
all rounds. A ratio is the median over rounds of this program's rate to the other's in the same round, with the lowest
and the highest. Rates per processor second count only the process's own time. On a busy machine (see the load) neither
is fair to PyTorch, whose threads spin while they wait for one another.
With --device cuda both run on the GPU, a workload for each --precision; PyTorch plain and compiled.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
AVX2 = {"RNA_CPU": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}

# Workloads by default: a model, then the ways of SUFFIXES.
WORKLOADS = ("resnet50", "resnet50-eval", "resnet20", "lenet", "resnet50-avx2")
ONNX_NETS = ("resnet50", "mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "vit_small_patch16_224")
ONNX_WORKLOADS = tuple(f"{net}-eval{how}" for net in ONNX_NETS for how in ("", "-t1", "-b1", "-b1-t1"))
# Options of both programs and environment. bf16 is measured on request: without AVX512_BF16 PyTorch takes minutes.
SUFFIXES = {"eval": (["--eval"], {}), "avx2": ([], AVX2), "bf16": (["--precision", "bfloat16"], {}),
    "b1": (["--batch", "1"], {}), "t1": (["--threads", "1"], {})}
BATCHES = {"resnet20": 128, "lenet": 128}
VARIANTS = [(layout, malloc) for layout in ("channels_last", "contiguous") for malloc in ("plain", "tuned")]


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("workloads", nargs="*", metavar="workload",
        help=f"a model and any of {', '.join(SUFFIXES)} behind it, as in resnet50-eval-bf16; b1 is a batch of one image, "
            f"t1 one thread; default: {' '.join(WORKLOADS)}")
    p.add_argument("--rival", default="pytorch", choices=["pytorch", "onnxruntime"],
        help="onnxruntime takes workloads with -eval; default: five nets at batch 16 and 1, with all threads and one")
    p.add_argument("--device", default="cpu", help="cpu, or cuda, cuda:1 and so on")
    p.add_argument("--precision", default="bfloat16",
        help="on the GPU: comma-separated float32, tf32, bfloat16, float16")
    p.add_argument("--model", default="resnet50", help="on the GPU")
    p.add_argument("--batch", type=int, default=256, help="on the GPU")
    p.add_argument("--warmup", type=int, default=10, help="unmeasured steps at the start, on the GPU")
    p.add_argument("--compile", default="none,default,max-autotune",
        help="on the GPU: PyTorch's modes, comma-separated, see bench_pytorch.py")
    p.add_argument("--rna", default="bin/rna", help="this program")
    p.add_argument("--python", default=sys.executable, help="a Python with torch and torchvision")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=0,
        help="of each program in a round, default 5, and 50 on the GPU; ten times as many for small nets on the CPU")
    p.add_argument("--threads", type=int, default=0, help="default: one per core")
    p.add_argument("--out", type=pathlib.Path, help="folder for the JSON of each measurement")
    args = p.parse_args()
    args.gpu = args.device != "cpu"
    args.steps = args.steps or (50 if args.gpu else 5)
    if args.gpu:
        if args.workloads:
            p.error(f"workloads are for the CPU: on {args.device} use --model, --batch and --precision")
        args.workloads = [f"{args.model} in {precision}" for precision in args.precision.split(",")]
        return args
    for w in args.workloads:
        _, *suffixes = w.split("-")
        for suffix in suffixes:
            if suffix not in SUFFIXES:
                p.error(f"workload {w!r}: unknown suffix {suffix!r}: choose from {', '.join(SUFFIXES)}")
        if args.rival == "onnxruntime" and ("eval" not in suffixes or {"avx2", "bf16"} & set(suffixes)):
            p.error(f"workload {w!r}: onnxruntime evaluates in float32 at the processor's level: use -eval, -b1 and -t1")
    args.workloads = args.workloads or (ONNX_WORKLOADS if args.rival == "onnxruntime" else WORKLOADS)
    if args.rounds < 1 or args.steps < 1:
        p.error("--rounds and --steps must be at least 1")
    return args


def measure(command, env, file):
    subprocess.run([*command, "--json-file", str(file)], check=True, env={**os.environ, **env},
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return json.loads(file.read_text())


def cpu(result):
    return result["usage"]["user_s"] + result["usage"]["system_s"]


def gpu_programs(args, name):
    """The commands on a GPU. A program with only one precision gets no option for it."""
    precision = name.split()[-1]
    options = ["--model", args.model, "--batch", str(args.batch), "--device", args.device, "--steps", str(args.steps),
        "--warmup", str(args.warmup)]
    asked = subprocess.run([args.rna, "bench", "train", "--help"], check=True, capture_output=True, text=True).stdout
    own = ["--precision", precision] if "--precision" in asked else []
    if not own and precision != "float32":
        sys.exit(f"bench_compare: {args.rna} has no --precision: it runs in float32 only")
    programs = {"rna": [args.rna, "bench", "train", *options, *own]}
    for how in args.compile.split(","):
        title = "PyTorch" if how == "none" else f"PyTorch, compiled: {how}"
        programs[title] = [args.python, str(HERE / "bench_pytorch.py"), *options, "--precision", precision,
            "--compile", how]
    return programs


def workload(name):
    """The options of both programs and the environment of a workload."""
    model, *suffixes = name.split("-")
    options, env = ["--model", model, "--batch", str(BATCHES.get(model, 16))], {}
    for s in suffixes:
        options, env = options + SUFFIXES[s][0], env | SUFFIXES[s][1]
    return options, env


def cpu_programs(args, name, folder):
    options, _ = workload(name)
    net, *suffixes = name.split("-")
    steps = 10 * args.steps if net in BATCHES or "b1" in suffixes else args.steps
    options = ["--threads", str(args.threads), *options, "--steps", str(steps), "--warmup", str(max(2, steps // 5))]
    pytorch = [args.python, str(HERE / "bench_pytorch.py"), *options]
    programs = {"rna": [args.rna, "bench", "train", "--device", "cpu", *options]}
    if args.rival == "onnxruntime":
        programs["onnxruntime"] = [args.python, str(HERE / "bench_onnxruntime.py"), *options, "--rna", args.rna,
            "--onnx", str(folder / f"{net}.onnx")]
        return programs
    if "avx2" not in name and "--precision" not in options:
        programs["rna --winograd=false"] = [*programs["rna"], "--winograd=false"]
    if "--precision" in options:
        programs["rna --precision float32"] = [*programs["rna"], "--precision", "float32"]
    for layout, malloc in VARIANTS:
        programs[f"PyTorch {layout}, malloc {malloc}"] = [*pytorch, "--layout", layout, "--malloc", malloc]
    return programs


def run(args, name, folder):
    programs, env = (gpu_programs(args, name), {}) if args.gpu else (cpu_programs(args, name, folder), workload(name)[1])
    results = {p: [] for p in programs}
    for r in range(args.rounds):
        for i, (p, command) in enumerate(programs.items()):
            results[p].append(measure(command, env, folder / f"{name.replace(' ', '-')}-{r}-{i}.json"))
    return results


def report(name, results):
    ours = results["rna"]
    first, load = ours[0], [r["load"] for r in ours if "load" in r]
    for program, list in results.items():
        if (size := list[0]["image_size"]) != first["image_size"]:
            sys.exit(f"bench_compare: {name}: rna has images of {first['image_size']} pixels, {program} of {size}")
    print(f"\n{name}: {first['mode']}, batch {first['batch']} of {first['image_size']}×{first['image_size']}, "
          + (f"{first['card']}" if "card" in first else f"{first['threads']} threads of level {first['level']}"))
    other = next(list for p, list in results.items() if p != "rna" and not p.startswith("rna "))
    print(f"{first['processor']}; {first['software']}; {other[0]['software']}"
          + (f"; load {min(load):.1f} to {max(load):.1f}" if load else ""))
    head = ("", "images/s", "GFLOP/s", "products", "images/CPU-s", "faults/step", "peak MB", "ratio of rna", "a CPU-s")
    rows = [head]
    for program, list in results.items():
        batch = list[0]["batch"]
        seconds = statistics.median(s for r in list for s in r["steps"])
        row = [program, f"{batch / seconds:.4g}", f"{list[0]['gflop'] / seconds:.4g}",
               f"{statistics.median(r['products'].get('gflop_per_s', 0) for r in list):.4g}",
               f"{batch / max(1e-9, statistics.median(map(cpu, list))):.4g}",
               f"{statistics.median(r['usage']['faults'] for r in list):.0f}",
               f"{max(r.get('device_peak_bytes') or r['peak_rss_bytes'] for r in list) / 1e6:.0f}"]
        if program != "rna":
            for rate in (lambda r: r["seconds"]["median"], cpu):
                q = sorted(rate(r) / max(1e-9, rate(o)) for r, o in zip(list, ours))
                row.append(f"{statistics.median(q):.2f} ({q[0]:.2f}–{q[-1]:.2f})")
        rows.append(row + [""] * (len(head) - len(row)))
    widths = [max(len(r[i]) for r in rows) for i in range(len(head))]
    for row in rows:
        print("  ".join(c.rjust(w) if i else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip(),
            flush=True)


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.out or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in args.workloads:
            try:
                report(name, run(args, name, folder))
            except subprocess.CalledProcessError as e:
                sys.exit(f"bench_compare: {' '.join(e.cmd)}: exit status {e.returncode}\n{e.stderr}")
            except FileNotFoundError as e:
                sys.exit(f"bench_compare: {e}: build it first, or name it by --rna or --python")


if __name__ == "__main__":
    main()
