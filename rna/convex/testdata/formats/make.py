#!/usr/bin/env python3
"""Files of one small data set in each format, by scipy: python3 make.py, here.

The data: 6 rows of 4 features with zeros, and labels 1 and -1.
"""
import gzip

import numpy as np
import scipy.io
import scipy.sparse

X = np.array([[1, 0, 0, 2.5], [0, 3, 0, 0], [0, 0, 0, -1], [4, 0, 5, 0], [0, 0, 6, 0.5], [7, 0, 0, 0]], float)
y = np.array([1, -1, -1, 1, 1, -1])
scipy.io.savemat("dense.mat", {"X": X, "y": y.reshape(-1, 1)})
scipy.io.savemat("compressed.mat", {"X": X, "y": y.astype(np.int8).reshape(1, -1), "note": "text"}, do_compression=True)
scipy.io.savemat("sparse.mat", {"X": scipy.sparse.csc_matrix(X), "Labels": y.astype(float).reshape(-1, 1)}, do_compression=True)
scipy.io.savemat("columns.mat", {"data": X.T, "y": y.reshape(-1, 1)})
scipy.io.savemat("sparsecolumns.mat", {"data": scipy.sparse.csc_matrix(X.T), "y": y.reshape(-1, 1)})
scipy.io.savemat("alone.mat", {"X": scipy.sparse.csc_matrix(X)}, do_compression=True)
open("alone.targets", "w").write("\n".join(map(str, y)) + "\n")
rows = "\n".join(" ".join(f"{v:g}" for v in r) for r in X) + "\n"
open("rows.data", "w").write(rows)
with gzip.GzipFile("zipped.data.gz", "w", mtime=0) as f:
    f.write(rows.encode())
for name in "rows", "pairs":
    open(name + ".labels", "w").write("\n".join(map(str, y)) + "\n")
with gzip.GzipFile("zipped.labels.gz", "w", mtime=0) as f:
    f.write(("\n".join(map(str, y)) + "\n").encode())
open("pairs.data", "w").write("\n".join(" ".join(f"{j + 1}:{v:g}" for j, v in enumerate(r) if v) for r in X) + "\n")
