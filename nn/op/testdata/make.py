#!/usr/bin/env python3
"""Cuts PyTorch's results for single ops down to cases small enough to keep here: convolutions and linear layers of at
most 32 KiB, and all cases of the other ops.
usage: make.py folder    where folder has ops_index.json and the safetensors files that gen_ops.py wrote"""
import json, math, os, shutil, struct, sys

HERE, LIMIT = os.path.dirname(os.path.abspath(__file__)), 32 << 10


def read(path):
    with open(path, "rb") as f:
        size, = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        elements = f.read()
    header.pop("__metadata__", None)
    return {name: (t["dtype"], t["shape"], elements[slice(*t["data_offsets"])]) for name, t in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[at, at + len(data)])
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        f.writelines(data for _, _, data in tensors.values())


with open(os.path.join(sys.argv[1], "ops_index.json")) as f:
    index = json.load(f)
about = index.pop("_about")
for op, cases in index.items():
    if op not in ("conv2d", "linear"):
        shutil.copyfile(os.path.join(sys.argv[1], op + ".safetensors"), os.path.join(HERE, op + ".safetensors"))
        continue
    cases[:] = [c for c in cases if 4 * sum(math.prod(s) for s in c["shapes"].values()) <= LIMIT]
    kept = {c["case"] for c in cases}
    tensors = read(os.path.join(sys.argv[1], op + ".safetensors"))
    write(os.path.join(HERE, op + ".safetensors"), {name: t for name, t in tensors.items() if name.split(".")[0] in kept})
with open(os.path.join(HERE, "ops_index.json"), "w") as f:
    f.write("{\n")
    for op, cases in index.items():
        f.write(json.dumps(op) + ": [\n  " + ",\n  ".join(map(json.dumps, cases)) + "\n],\n")
    f.write('"_about": ' + json.dumps(about) + "\n}\n")
