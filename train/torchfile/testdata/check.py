"""Compares PyTorch's tensors of written.pt, or of the given file, with those that write_test.go wrote."""
import pathlib, sys
import torch

path = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "written.pt"
want = {
    "conv.weight": torch.arange(24, dtype=torch.float32).reshape(2, 3, 2, 2),
    "double": torch.tensor([[0.1]], dtype=torch.float64),
    "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "brain": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "bn.num_batches_tracked": torch.tensor(1 << 40),
    "mask": torch.tensor([True, False]),
    "none": torch.empty(0, 3),
    "größe": torch.tensor([1, 2, 255], dtype=torch.uint8),
}
for mmap in False, True:
    got = torch.load(path, weights_only=True, mmap=mmap)
    assert list(got) == list(want), list(got)
    for name, w in want.items():
        g = got[name]
        assert g.dtype == w.dtype and g.shape == w.shape and g.is_contiguous() and torch.equal(g, w), (name, g, w)
print("ok")
