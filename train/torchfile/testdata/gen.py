"""Writes the files of this folder; run by PyTorch 2."""
import argparse, os, pathlib
import torch

here = pathlib.Path(__file__).parent
base = torch.arange(24, dtype=torch.float32)
state = {
    "conv.weight": base.reshape(2, 3, 2, 2).to(memory_format=torch.channels_last),
    "fc.weight": base.reshape(4, 6).t(),
    "fc.bias": base[5:9],
    "half": torch.tensor([1.5, -2.0], dtype=torch.float16),
    "brain": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "double": torch.nn.Parameter(torch.tensor([[0.1]], dtype=torch.float64)),
    "bn.num_batches_tracked": torch.tensor(7),
    "mask": torch.tensor([True, False]),
    "none": torch.empty(0, 3),
}
torch.save(state, here / "plain.pt")
wrapped = {"epoch": 3, "state_dict": {"module." + k: v for k, v in state.items()}, "optimizer": torch.optim.SGD(
    [torch.nn.Parameter(torch.zeros(2))], lr=0.1).state_dict(), "note": "text"}
torch.save(wrapped, here / "wrapped.pth", pickle_protocol=4)
module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
torch.save({"model": module.state_dict()}, here / "module.pt")
torch.save({"args": argparse.Namespace(lr=1), "model": module.state_dict()}, here / "namespace.pt")
torch.save(module, here / "whole.pt")
torch.save({"w": torch.zeros(1).expand(1000)}, here / "expanded.pt")
torch.save({"w": torch.zeros(1)}, here / "legacy.pt", _use_new_zipfile_serialization=False)


class Attack:
    def __reduce__(self):
        return os.system, ("true",)


torch.save({"w": torch.zeros(1), "x": Attack()}, here / "attack.pt")
