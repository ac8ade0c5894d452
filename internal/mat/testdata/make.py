"""Files that mat_test.go reads. Needs scipy (1.17.1 wrote these); run in this folder."""
import numpy as np
import scipy.io
import scipy.sparse

synsets = np.zeros((3, 1), dtype=[("ILSVRC2012_ID", object), ("WNID", object), ("num_children", object), ("children", object)])
for i, (number, wnid, children) in enumerate([(2, "n01440764", []), (1, "n02119789", []), (3, "n00001740", [1, 2])]):
    synsets[i, 0] = (np.array([[number]], np.uint16), wnid, np.array([[len(children)]], np.uint8), np.array([children], np.uint16))
content = {
    "synsets": synsets,
    "x": np.arange(6).reshape(2, 3) / 4,
    "y": np.array([[-1], [1]], np.int8),
    "z": np.array([[1 + 2j, -3j]]),
    "s": scipy.sparse.csc_matrix(np.array([[0, 1.5, 0], [2, 0, 0], [0, -1, 0]])),
    "c": np.array(["one", np.array([[7, 8]], np.int32)], object),
    "text": "Grüße",
    "yes": np.array([[True, False]]),
    "f": np.float32([[0.5]]),
    "big": np.array([[2**40, -(2**33)]], np.int64),
}
scipy.io.savemat("plain.mat", content)
scipy.io.savemat("compressed.mat", content, do_compression=True)
