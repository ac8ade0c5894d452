#!/usr/bin/env python3
"""Merge large synthetic models within 1 GB of memory, and compare the speed with plain reads and writes of the same disk.

  merge_scale.py RNA FOLDER memory 8 40     sparse models of 8 and 40 GB: the largest resident memory by form and method
  merge_scale.py RNA FOLDER speed 1.5 [CASE…]  dense models of 1.5 GB: time beside that of reading the inputs as often as
                                               the method does and writing the output once, in turn, with cold caches

Where memory cgroups can be made, everything runs in one of 1 GB, page cache included. The form .distcp needs torch."""
import json, os, shutil, struct, subprocess, sys, tempfile, time
from pathlib import Path

LIMIT = 1 << 30
MODELS, LAYERS, COLUMNS = 3, 40, 4096
# form, arguments, passes over the inputs
CASES = {
    "mean": ("file", [], 1),
    "ema": ("file", ["--by", "ema", "--decay", "0.9"], 1),
    "rna": ("file", ["--by", "rna"], 2),
    "ties": ("file", ["--by", "ties"], 3),
    "mean of shards": ("shards", [], 1),
    "rna of shards": ("shards", ["--by", "rna"], 2),
    "mean of .distcp": ("dcp", [], 1),
    "mean to one file": ("file", ["-o", "out.safetensors"], 1),
}


def cgroup():
    for root, limit in ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max"):
        path = Path(root, f"rna-merge-scale-{os.getpid()}")
        try:
            path.mkdir()
            Path(path, limit).write_text(str(LIMIT))
            return path
        except OSError:
            try:
                path.rmdir()
            except OSError:
                pass
    return None


def limited(group, *cmd, **kw):
    """Runs a command in the cgroup: seconds, largest resident bytes, output."""
    into = f"echo $$ > {group}/cgroup.procs; " if group else ""
    began = time.monotonic()
    p = subprocess.Popen(["sh", "-c", into + 'exec "$@"', "sh", *map(str, cmd)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kw)
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, cmd))}: status {status}: {out}")
    return time.monotonic() - began, usage.ru_maxrss * 1024, out


def header(rows, names):
    head, at = {}, 0
    for name in names:
        head[name] = {"dtype": "BF16", "shape": [rows, COLUMNS], "data_offsets": [at, at + rows * COLUMNS * 2]}
        at += rows * COLUMNS * 2
    head = json.dumps(head).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head, at


def fill(f, n, dense):
    """Writes n bytes of finite BF16 numbers, or some of them, here and there."""
    start, part = f.tell(), os.urandom(1 << 22)
    part = part.translate(bytes(b & 0xBF for b in range(256)))
    if dense:
        for at in range(0, n, len(part)):
            turn = (at // len(part) * 4096 + start) % len(part)
            f.write((part[turn:] + part[:turn])[:n - at])
        return
    f.truncate(start + n)
    for at in range(0, n, n // 16):
        f.seek(start + at)
        f.write(part[:4096])


def build(dir, form, size, dense):
    """Makes the models, and returns their paths and files."""
    rows = int(size * 1e9 / 2 / LAYERS / COLUMNS)
    names = [f"model.layers.{i}.weight" for i in range(LAYERS)]
    paths, files = [], []
    for k in range(MODELS):
        if form == "file":
            paths.append(dir / f"{k}.safetensors")
            parts = [(paths[-1], names)]
        else:
            paths.append(dir / f"{form}-{k}")
            paths[-1].mkdir()
            parts = []
        if form == "shards":
            n = 4 + 2 * k  # each model is cut in its own way
            cut = [names[i * LAYERS // n:(i + 1) * LAYERS // n] for i in range(n)]
            parts = [(paths[-1] / f"model-{i + 1:05}-of-{n:05}.safetensors", c) for i, c in enumerate(cut)]
            index = {name: path.name for path, c in parts for name in c}
            (paths[-1] / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
        for path, own in parts:
            with open(path, "wb") as f:
                head, n = header(rows, own)
                f.write(head)
                fill(f, n, dense)
            files.append(path)
        if form == "dcp":
            subprocess.run([sys.executable, "-c", DCP, paths[-1], str(rows), str(COLUMNS), *names], check=True)
            for path in paths[-1].glob("*.distcp"):
                if not dense:
                    subprocess.run(["fallocate", "--dig-holes", path], check=True)
                files.append(path)
    return paths, files


DCP = """
import sys, torch, torch.distributed.checkpoint as dcp
rows, columns = int(sys.argv[2]), int(sys.argv[3])
x = torch.zeros(rows, columns, dtype=torch.bfloat16)
x[::max(rows // 16, 1)] = torch.randn(columns, dtype=torch.float32).bfloat16()
dcp.save(dict.fromkeys(sys.argv[4:], x), checkpoint_id=sys.argv[1])
"""

READ = """
import os, sys
b = bytearray(4 << 20)
for path in sys.argv[1:]:
    fd = os.open(path, os.O_RDONLY)
    while os.readv(fd, [b]): pass
"""

WRITE = """
import os, sys
b, n = os.urandom(4 << 20), int(sys.argv[2])
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
while n > 0: n -= os.write(fd, b[:n])
os.fsync(fd)
"""


def cold(files):
    os.sync()
    for path in files:
        fd = os.open(path, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def arguments(case, dir, paths):
    form, extra, passes = CASES[case]
    args = [str(dir / a) if a.startswith("out") else a for a in extra]
    if "-o" not in args:
        args += ["-o", str(dir / "out")]
    paths = list(map(str, paths))
    if case == "ties":
        args += ["--base", paths.pop(0)]
    return paths + args, Path(args[args.index("-o") + 1]), passes


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def main():
    rna, folder, what = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3]
    numbers = [float(a) for a in sys.argv[4:] if a[0].isdigit()]
    cases = [a for a in sys.argv[4:] if not a[0].isdigit()] or list(CASES)
    dir, group = Path(tempfile.mkdtemp(prefix="merge-scale-", dir=folder)), cgroup()
    print("in a memory cgroup of 1 GB" if group else "no cgroup can be made here: the resident memory is measured", flush=True)
    try:
        for size in numbers:
            for form in dict.fromkeys(CASES[c][0] for c in cases):
                paths, files = build(dir, form, size, what == "speed")
                for case in (c for c in cases if CASES[c][0] == form):
                    args, out, passes = arguments(case, dir, paths)
                    for turn in range(2 if what == "speed" else 1):
                        line = f"{case}, {MODELS} models of {size:g} GB: "
                        if what == "speed":
                            cold(files)
                            reads = sum(limited(group, sys.executable, "-c", READ, *files)[0] for _ in range(passes))
                            cold(files)
                            write = limited(group, sys.executable, "-c", WRITE, dir / "plain", int(size * 1e9))[0]
                            (dir / "plain").unlink()
                            cold(files)
                        seconds, memory, _ = limited(group, rna, "merge", *args, "--sync", "--quiet")
                        remove(out)
                        if what == "speed":
                            line += f"{passes} × read {reads:.1f} s, write {write:.1f} s, rna merge {seconds:.1f} s: {100 * (reads + write) / seconds:.0f} % of the speed; "
                        print(line + f"{memory / 1e6:.0f} MB", flush=True)
                        if memory > LIMIT:
                            sys.exit("more than 1 GB")
                for path in paths:
                    remove(path)
    finally:
        shutil.rmtree(dir)
        if group:
            group.rmdir()


if __name__ == "__main__":
    main()
