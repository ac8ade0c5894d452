#!/usr/bin/env python3
"""Measure training steps of PyTorch in the same way as `rna bench train`.

A step is the work for one batch: pixels are normalised, forward and backward pass, a step of SGD with momentum, and the
loss and its accuracy are read; with --eval only the forward pass. The batch is synthetic and the same in each step. The
printed JSON has the fields of `rna bench train --json`; kinds are ATen operators, timed by the profiler in separate
steps.

On a GPU it works like fast training scripts: pixels are pinned and copied on a separate stream during the previous step,
results are read a step later, cuDNN's algorithms are chosen by timing and the step of SGD is fused. bfloat16 and
float16 use autocast, the latter with its scaler.
"""

import argparse
import ctypes
import json
import os
import platform
import resource
import sys
import time

MODELS = {"lenet": (28, 1, 10), "resnet20": (32, 3, 10), "resnet32": (32, 3, 10), "resnet44": (32, 3, 10),
    "resnet56": (32, 3, 10)}


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="resnet50", help=f"{', '.join(MODELS)}, or a model of torchvision or timm")
    p.add_argument("--batch", type=int, default=16, help="images per step")
    p.add_argument("--image-size", type=int, default=0, help="height and width of an image (default: the model's)")
    p.add_argument("--eval", action="store_true", help="measure evaluation")
    p.add_argument("--device", default="cpu", help="cpu, or cuda, cuda:1 and so on")
    p.add_argument("--precision", choices=["float32", "tf32", "bfloat16", "float16"],
        help="default: bfloat16 on a GPU, float32 on the CPU")
    p.add_argument("--compile", nargs="?", const="default", default="none",
                   choices=["none", "default", "reduce-overhead", "max-autotune"],
                       help="torch.compile in this mode; the warm-up compiles")
    p.add_argument("--layout", default="channels_last", choices=["channels_last", "contiguous"])
    p.add_argument("--malloc", default="plain", choices=["plain", "tuned"],
                   help="tuned: the C library keeps freed memory, so that a steady step touches no fresh pages")
    p.add_argument("--steps", type=int, default=10, help="measured steps")
    p.add_argument("--warmup", type=int, default=3, help="unmeasured steps at the start")
    p.add_argument("--profile", type=int, default=1, help="profiled steps at the end; 0 for none")
    p.add_argument("--threads", type=int, default=0, help="computing threads (default: one per core)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--json-file", metavar="FILE", help="write the result to FILE instead of standard output")
    args = p.parse_args()
    if args.batch < 1 or args.steps < 1 or args.warmup < 1 or args.profile < 0:
        p.error("--batch, --steps and --warmup must be at least 1, --profile at least 0")
    args.gpu = args.device.split(":")[0] == "cuda"
    if not args.gpu and args.device != "cpu":
        p.error(f"--device {args.device}: use cpu, cuda or cuda:N")
    args.precision = args.precision or ("bfloat16" if args.gpu else "float32")
    if not args.gpu and args.precision in ("tf32", "float16"):
        p.error(f"--precision {args.precision} is for GPUs")
    return args


def tune_malloc():
    """Make glibc's malloc neither map large blocks one by one nor return freed memory."""
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
                x = F.pad(x[:, :, ::self.stride, ::self.stride],
                    (0, 0, 0, 0, self.more // 2, self.more - self.more // 2))
            return F.relu(y + x, inplace=True)

    layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)]
    inputs = 16
    for stage, channels in enumerate((16, 32, 64)):
        for i in range((depth - 2) // 6):
            layers.append(Block(inputs, channels, 2 if stage and not i else 1))
            inputs = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def build(torch, name):
    """The model with its image size, channels and classes."""
    if name == "lenet":
        return lenet(torch), *MODELS[name]
    if name in MODELS:
        return cifar_resnet(torch, int(name.removeprefix("resnet"))), *MODELS[name]
    from torchvision import models
    if name in models.list_models():
        size = models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
        kwargs = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
        if name.startswith("vit_"):
            kwargs = {"image_size": size}
        return models.get_model(name, weights=None, **kwargs), size, 3, 1000
    import timm
    model = timm.create_model(name.removeprefix("timm_"), num_classes=1000)
    return model, model.default_cfg["input_size"][1], 3, 1000


def count(torch, model, pixels, training):
    """Operations of the products in a step: two for each use of a weight, and as many for both gradients each."""
    total, first = 0, None

    def hook(module, _, out):
        nonlocal total, first
        n = 2 * out.numel() * module.weight[0].numel()
        first = n if first is None else first  # the pixels need no gradient
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


PRODUCTS = {"aten::mkldnn_convolution", "aten::_slow_conv2d_forward", "aten::cudnn_convolution",
    "aten::convolution_backward",
            "aten::addmm", "aten::mm"}


def kinds(torch, step, steps, gpu):
    """The operators' own times in a step: on the GPU those of their kernels."""
    if not steps:
        return []
    activities = [torch.profiler.ProfilerActivity.CPU]
    if gpu:
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities, acc_events=True) as p:
        for _ in range(steps):
            step()
        if gpu:
            torch.cuda.synchronize()

    def own(event):
        if gpu:
            # Kernels are listed too, with times that their operators include already, unless a graph launched them.
            return getattr(event, "self_device_time_total", None) or getattr(event, "self_cuda_time_total", 0)
        return event.self_cpu_time_total

    events = p.key_averages()
    if gpu:
        operators = [e for e in events if e.device_type == torch.autograd.DeviceType.CPU]
        kernels = [e for e in events if e.device_type != torch.autograd.DeviceType.CPU]
        events = operators if sum(map(own, operators)) > 0.5 * sum(map(own, kernels)) else kernels
    events = [e for e in events if own(e) > 0]
    total = sum(map(own, events))
    events.sort(key=lambda e: -own(e))
    return [{"name": e.key, "calls": round(e.count / steps), "seconds": own(e) / steps / 1e6,
        "share": own(e) / total} for e in events]


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


class Pixels:
    """A batch on the host that is copied to the device for every step, on a separate stream during the previous step."""

    def __init__(self, torch, pixels, labels, device, gpu):
        self.torch, self.device, self.gpu = torch, device, gpu
        self.host = (pixels.pin_memory(), labels.pin_memory()) if gpu else (pixels, labels)
        if gpu:
            self.stream = torch.cuda.Stream()
            self.fetch()

    def fetch(self):
        with self.torch.cuda.stream(self.stream):
            self.ahead = [t.to(self.device, non_blocking=True) for t in self.host]

    def next(self):
        if not self.gpu:
            return self.host
        now = self.torch.cuda.current_stream()
        now.wait_stream(self.stream)
        batch = self.ahead
        for t in batch:
            t.record_stream(now)
        self.fetch()
        return batch


class Results:
    """The results of a step: at once on the CPU, a step later on a GPU."""

    def __init__(self, torch, gpu):
        self.torch, self.gpu, self.pending = torch, gpu, None

    def add(self, loss, hits):
        if not self.gpu:
            return loss.item(), hits.item()
        host = self.torch.stack([loss.detach().float(), hits.float()]).to("cpu", non_blocking=True)
        done = self.torch.cuda.Event()
        done.record()
        before, self.pending = self.pending, (done, host)
        if before:
            before[0].synchronize()
            return tuple(before[1].tolist())
        return None


def main():
    args = parse()
    if args.malloc == "tuned":
        tune_malloc()
    import torch
    F = torch.nn.functional
    if args.gpu and not torch.cuda.is_available():
        sys.exit("bench_pytorch: PyTorch finds no GPU: use --device cpu")
    if args.threads:
        torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    if args.gpu:
        if device.index is not None:
            torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = args.precision != "float32"
    torch.manual_seed(args.seed)
    model, size, channels, classes = build(torch, args.model)
    size = args.image_size or size
    layout = torch.channels_last if args.layout == "channels_last" else torch.contiguous_format
    model = model.to(device=device, memory_format=layout).train(not args.eval)
    pixels = torch.randint(0, 256, (args.batch, channels, size, size), dtype=torch.uint8).to(memory_format=layout)
    labels = torch.randint(0, classes, (args.batch,))
    gflop = count(torch, model, pixels.to(device).float(), not args.eval) / 1e9
    parameters = sum(p.numel() for p in model.parameters())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4,
        **({"fused": True} if args.gpu else {}))
    half = {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(args.precision)
    scaler = torch.amp.GradScaler(device.type, enabled=args.precision == "float16")
    source, results = Pixels(torch, pixels, labels, device, args.gpu), Results(torch, args.gpu)

    def forward(pixels, labels):
        with torch.autocast(device.type, dtype=half, enabled=half is not None):
            logits = model(pixels.float().div_(255).sub_(0.5).div_(0.25))
            return logits, F.cross_entropy(logits, labels)

    if args.compile != "none":
        forward = torch.compile(forward, mode=None if args.compile == "default" else args.compile)

    def begin():
        if args.compile != "none":
            torch.compiler.cudagraph_mark_step_begin()
        return source.next()

    def train():
        pixels, labels = begin()
        optimiser.zero_grad(set_to_none=True)
        logits, loss = forward(pixels, labels)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return results.add(loss, (logits.argmax(1) == labels).sum())

    @torch.inference_mode()
    def evaluate():
        pixels, labels = begin()
        logits, loss = forward(pixels, labels)
        return results.add(loss, (logits.argmax(1) == labels).sum())

    def wait():
        if args.gpu:
            torch.cuda.synchronize()

    step = evaluate if args.eval else train
    for _ in range(args.warmup):
        step()
    wait()
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = []
    for i in range(args.steps):
        start = time.perf_counter()
        step()
        if i == args.steps - 1:
            wait()
        seconds.append(time.perf_counter() - start)
    after = resource.getrusage(resource.RUSAGE_SELF)
    rss = after.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    memory = torch.cuda.max_memory_allocated() if args.gpu else 0
    operators = kinds(torch, step, args.profile, args.gpu)
    on = {"level": torch.backends.cpu.get_cpu_capability().lower(), "threads": torch.get_num_threads(),
        "malloc": args.malloc}
    if args.gpu:
        on = {"card": torch.cuda.get_device_name(), "device_peak_bytes": memory, "malloc": args.malloc}
    result = {
        "model": args.model, "mode": "evaluation" if args.eval else "training",
        "batch": args.batch, "image_size": size, "channels": channels,
        "parameters": parameters,
        "software": f"PyTorch {torch.__version__}", "device": args.device, **on,
        "layout": args.layout, "compile": args.compile, "precision": args.precision,
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
    with open(args.json_file, "w") if args.json_file else sys.stdout as f:
        json.dump(result, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
