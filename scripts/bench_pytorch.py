#!/usr/bin/env python3
"""Measure training steps of PyTorch as `rna bench train` measures those of this program.

A step is what one batch costs: pixels are normalised, forward and backward pass, a step of SGD with momentum, and the
loss and its accuracy come back; with --eval the forward pass alone. The batch is synthetic and the same in
each step. The JSON that is printed has the fields of `rna bench train --json`; kinds are ATen operators, timed by
the profiler in steps of their own.
"""

import argparse
import ctypes
import json
import os
import platform
import resource
import sys
import time

MODELS = {"lenet": (28, 1, 10), "resnet20": (32, 3, 10), "resnet32": (32, 3, 10), "resnet44": (32, 3, 10), "resnet56": (32, 3, 10)}
IMAGENET = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="resnet50", choices=[*MODELS, *IMAGENET])
    p.add_argument("--batch", type=int, default=16, help="images a step")
    p.add_argument("--image-size", type=int, default=0, help="height and width of an image (default: the model's)")
    p.add_argument("--eval", action="store_true", help="measure evaluation")
    p.add_argument("--layout", default="channels_last", choices=["channels_last", "contiguous"])
    p.add_argument("--malloc", default="plain", choices=["plain", "tuned"],
                   help="tuned: the C library keeps memory that is freed, so that a steady step touches no fresh pages")
    p.add_argument("--steps", type=int, default=10, help="steps that are measured")
    p.add_argument("--warmup", type=int, default=3, help="steps before them")
    p.add_argument("--profile", type=int, default=1, help="steps of the profiler after them; 0 for none")
    p.add_argument("--threads", type=int, default=0, help="threads that compute (default: one a core)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json", metavar="FILE", help="write there instead of to standard output")
    args = p.parse_args()
    if args.batch < 1 or args.steps < 1 or args.warmup < 1 or args.profile < 0:
        p.error("--batch, --steps and --warmup must be at least 1, --profile at least 0")
    return args


def tune_malloc():
    """Have glibc's malloc neither map large blocks one by one nor give freed memory back."""
    top_pad, trim_threshold, mmap_max = -2, -1, -4
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):
        sys.exit("bench_pytorch: --malloc tuned needs glibc")
    for option, value in ((mmap_max, 0), (trim_threshold, -1), (top_pad, 64 << 20)):
        if libc.mallopt(option, value) != 1:
            sys.exit(f"bench_pytorch: mallopt({option}, {value}) failed")


def lenet(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(inplace=True), nn.Linear(120, 84), nn.ReLU(inplace=True), nn.Linear(84, 10))


def cifar_resnet(torch, depth):
    """ResNet for CIFAR with shortcuts without parameters: He et al. 2016, section 4.2, option A."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inputs, channels, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(channels)
            self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(channels)
            self.stride, self.more = stride, channels - inputs

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)), inplace=True)
            y = self.bn2(self.conv2(y))
            if self.more:
                x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
            return F.relu(y + x, inplace=True)

    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    inputs = 16
    for stage, channels in enumerate((16, 32, 64)):
        for i in range((depth - 2) // 6):
            layers.append(Block(inputs, channels, 2 if stage and not i else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def build(torch, name):
    """The model with the size, the channels and the classes it is for."""
    if name == "lenet":
        return lenet(torch), *MODELS[name]
    if name in MODELS:
        return cifar_resnet(torch, int(name.removeprefix("resnet"))), *MODELS[name]
    import torchvision
    return getattr(torchvision.models, name)(), 224, 3, 1000


def count(torch, model, pixels, training):
    """Operations of the products in a step: two for each weight that meets an input, the same for both gradients."""
    total, first = 0, None

    def hook(module, _, out):
        nonlocal total, first
        n = 2 * out.numel() * module.weight[0].numel()
        first = n if first is None else first  # the gradient of the pixels is not needed
        total += n

    kinds = (torch.nn.Conv2d, torch.nn.Linear)
    hooks = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, kinds)]
    with torch.no_grad():
        model(pixels)
    for h in hooks:
        h.remove()
    return 3 * total - first if training else total


def spread(values):
    s = sorted(values)

    def at(q):
        x = q * (len(s) - 1)
        i = int(x)
        return s[i] + (x - i) * (s[min(i + 1, len(s) - 1)] - s[i])

    return {"min": s[0], "q1": at(0.25), "median": at(0.5), "q3": at(0.75), "max": s[-1]}


PRODUCTS = {"aten::mkldnn_convolution", "aten::_slow_conv2d_forward", "aten::convolution_backward", "aten::addmm", "aten::mm"}


def kinds(torch, step, steps):
    """What operators cost in a step, themselves only."""
    if not steps:
        return []
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, acc_events=True) as p:
        for _ in range(steps):
            step()
    events = [e for e in p.key_averages() if e.self_cpu_time_total > 0]
    total = sum(e.self_cpu_time_total for e in events)
    events.sort(key=lambda e: -e.self_cpu_time_total)
    return [{"name": e.key, "calls": round(e.count / steps), "seconds": e.self_cpu_time_total / steps / 1e6,
             "share": e.self_cpu_time_total / total} for e in events]


def products(list, gflop):
    """All kinds that are convolutions, linear layers or gradients of those."""
    own = [k for k in list if k["name"] in PRODUCTS]
    seconds = sum(k["seconds"] for k in own)
    return {"name": "all products", "calls": sum(k["calls"] for k in own), "seconds": seconds,
            "share": sum(k["share"] for k in own), "gflop": gflop, "gflop_per_s": gflop / seconds if seconds else 0}


def processor():
    system = f"{platform.system().lower()}/{platform.machine()}"
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip() + ", " + system
    except OSError:
        pass
    return system


def main():
    args = parse()
    if args.malloc == "tuned":
        tune_malloc()
    import torch
    F = torch.nn.functional
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    model, size, channels, classes = build(torch, args.model)
    size = args.image_size or size
    layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    model = model.to(memory_format=layout).train(not args.eval)
    pixels = torch.randint(0, 256, (args.batch, channels, size, size), dtype=torch.uint8).to(memory_format=layout)
    labels = torch.randint(0, classes, (args.batch,))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)

    def forward():
        return model(pixels.float().div_(255).sub_(0.5).div_(0.25))

    def train():
        optimiser.zero_grad(set_to_none=True)
        logits = forward()
        loss = F.cross_entropy(logits, labels)
        loss.backward()
        optimiser.step()
        return loss.item(), (logits.argmax(1) == labels).sum().item()

    @torch.inference_mode()
    def evaluate():
        logits = forward()
        return F.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).sum().item()

    step = evaluate if args.eval else train
    gflop = count(torch, model, pixels.float(), not args.eval) / 1e9
    for _ in range(args.warmup):
        step()
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = []
    for _ in range(args.steps):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF)
    rss = after.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    operators = kinds(torch, step, args.profile)
    result = {
        "model": args.model, "mode": "evaluation" if args.eval else "training",
        "batch": args.batch, "image_size": size, "channels": channels,
        "parameters": sum(p.numel() for p in model.parameters()),
        "software": f"PyTorch {torch.__version__}", "device": "cpu",
        "layout": args.layout, "malloc": args.malloc,
        "level": torch.backends.cpu.get_cpu_capability().lower(), "threads": torch.get_num_threads(),
        "processor": processor(), "load": os.getloadavg()[0],
        "warmup": args.warmup, "steps": seconds,
        "seconds": spread(seconds),
        "images_per_s": spread([args.batch / s for s in seconds]),
        "gflop": gflop,
        "gflop_per_s": spread([gflop / s for s in seconds]),
        "usage": {
            "user_s": (after.ru_utime - before.ru_utime) / args.steps,
            "system_s": (after.ru_stime - before.ru_stime) / args.steps,
            "faults": (after.ru_minflt - before.ru_minflt) / args.steps,
        },
        "peak_rss_bytes": rss,
        "products": products(operators, gflop),
        "kinds": operators,
    }
    with open(args.json, "w") if args.json else sys.stdout as f:
        json.dump(result, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
