"""meta.mat: that of ImageNet's devkit with three classes and the synset above two of them. Needs scipy (1.17.1 wrote it); run here."""
import numpy as np
import scipy.io

rows = [(1, "n02119789", 0), (2, "n01440764", 0), (3, "n03000001", 0), (4, "n00001740", 2)]
synsets = np.zeros((len(rows), 1), dtype=[(f, object) for f in ("ILSVRC2012_ID", "WNID", "words", "num_children", "children")])
for i, (number, wnid, children) in enumerate(rows):
    synsets[i, 0] = (np.array([[number]], np.uint16), wnid, "word", np.array([[children]], np.uint8), np.arange(children, dtype=np.uint16))
scipy.io.savemat("meta.mat", {"synsets": synsets}, do_compression=True)
