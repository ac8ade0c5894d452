"""Writes small sets in CIFAR's forms, and the images that torchvision.datasets reads from them.

    python cifar.py

python2: as Python 2's cPickle wrote the official files; python: of Python 3, one batch in column order; binary: the same images.
"""
import hashlib
import json
import os
import pickle
import struct

import numpy as np
import torchvision.datasets.cifar as tv

tv.check_integrity = lambda *_: True


def old(v):
    """Pickles a value as Python 2's cPickle does, in protocol 2."""
    if isinstance(v, (bytes, str)):
        b = v if isinstance(v, bytes) else v.encode()
        return (b"U" + bytes([len(b)]) if len(b) < 256 else b"T" + struct.pack("<i", len(b))) + b
    if isinstance(v, int):
        return b"K" + bytes([v]) if v < 256 else b"M" + struct.pack("<H", v)
    if isinstance(v, list):
        return b"](" + b"".join(map(old, v)) + b"e"
    if isinstance(v, dict):
        return b"}(" + b"".join(old(k) + old(x) for k, x in v.items()) + b"u"
    shape = old(v.shape[0]) + old(v.shape[1]) + b"\x86"
    kind = b"cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    made = b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nq\x02K\x00\x85U\x01b\x87Rq\x03"
    return made + b"(K\x01" + shape + kind + b"\x89" + old(v.tobytes()) + b"tb"


def write(path, b):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(b)


forms = {"python2": lambda v: b"\x80\x02" + old(v) + b".", "python": lambda v: pickle.dumps(v, protocol=4)}
random = np.random.default_rng(7)
ten = [f"class{i}" for i in range(10)]
hundred = [f"fine_{i}" for i in range(100)]


def images(n):
    return random.integers(0, 256, (n, 3072), dtype=np.uint8), [int(x) for x in random.integers(0, 10, n)]


for name, n in [("data_batch_%d" % i, 2 if i == 1 else 1) for i in range(1, 6)] + [("test_batch", 2)]:
    pix, labels = images(n)
    for form, dumps in forms.items():
        data = np.asfortranarray(pix) if form == "python" and n == 2 else pix
        d = {"batch_label": name, "labels": labels, "data": data, "filenames": [f"{i}.png" for i in range(n)]}
        write(f"cifar/{form}/cifar-10-batches-py/{name}", dumps(d))
    records = b"".join(bytes([y]) + x.tobytes() for x, y in zip(pix, labels))
    write(f"cifar/binary/cifar-10-batches-bin/{name}.bin", records)
for form, dumps in forms.items():
    write(f"cifar/{form}/cifar-10-batches-py/batches.meta", dumps({"label_names": ten, "num_vis": 3072}))
write("cifar/binary/cifar-10-batches-bin/batches.meta.txt", ("\n".join(ten) + "\n\n").encode())

for name, n in ("train", 3), ("test", 2):
    pix, coarse = images(n)
    fine = [99 - 7 * y for y in coarse]
    d = {"filenames": ["x.png"] * n, "batch_label": name, "fine_labels": fine, "coarse_labels": coarse, "data": pix}
    write(f"cifar/python2-100/cifar-100-python/{name}", forms["python2"](d))
    records = b"".join(bytes([c, y]) + x.tobytes() for x, c, y in zip(pix, coarse, fine))
    write(f"cifar/binary-100/cifar-100-binary/{name}.bin", records)
write("cifar/python2-100/cifar-100-python/meta", forms["python2"]({"fine_label_names": hundred, "coarse_label_names": ["c"]}))
write("cifar/binary-100/cifar-100-binary/fine_label_names.txt", ("\n".join(hundred) + "\n").encode())

read = {}
for form, of in ("python2", tv.CIFAR10), ("python", tv.CIFAR10), ("python2-100", tv.CIFAR100):
    of._check_integrity = lambda self: True
    for train in True, False:
        ds = of("cifar/" + form, train=train)
        sums = [hashlib.sha256(np.asarray(x).tobytes()).hexdigest() for x, _ in ds]
        read[f"{form} {'train' if train else 'test'}"] = {"classes": ds.classes, "labels": [y for _, y in ds], "sums": sums}
with open("cifar/torchvision.json", "w") as f:
    json.dump(read, f, indent=1)
