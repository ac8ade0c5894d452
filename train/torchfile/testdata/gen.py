"""Writes the files of this folder; run by PyTorch 2."""
import argparse, collections, functools, os, pathlib
import numpy as np
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
torch.save(state, here / "legacy.pt", _use_new_zipfile_serialization=False)

# Checkpoints of torchvision's references/classification, timm's train.py and Lightning's Trainer, with a small net.
net = torch.nn.Sequential(collections.OrderedDict(fc=torch.nn.Linear(2, 2)))
ema = torch.optim.swa_utils.AveragedModel(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(torch.ones(1, 2)).sum().backward()
optimizer.step()
ema.update_parameters(net)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 30)
torch.save({
    "model": net.state_dict(), "optimizer": optimizer.state_dict(), "lr_scheduler": schedule.state_dict(), "epoch": 3,
    "args": argparse.Namespace(model="resnet50", lr=0.1, device=torch.device("cpu"), path=pathlib.Path("a")),
    "model_ema": ema.state_dict(), "scaler": {"scale": 65536.0},
}, here / "torchvision.pth")
torch.save({
    "epoch": 4, "arch": "resnet51d", "state_dict": {"_orig_mod." + k: v for k, v in net.state_dict().items()},
    "optimizer": optimizer.state_dict(), "version": 2, "args": argparse.Namespace(model="resnet51d.ra2_in1k"),
    "amp_scaler": {"scale": 1.0}, "state_dict_ema": net.state_dict(), "metric": np.float64(76.5), "rng": np.random.RandomState(1),
}, here / "timm.pth.tar")


class Callback:
    def __init__(self, best):
        self.best, self.path = best, pathlib.PurePosixPath("x")


class Enum(collections.namedtuple("Enum", "a b")):
    pass


torch.save({
    "epoch": 5, "global_step": 10, "pytorch-lightning_version": "2.5", "state_dict": {"model." + k: v for k, v in net.state_dict().items()},
    "loops": {"fit_loop": {"state_dict": {}, "progress": Enum(1, {2, 3})}}, "callbacks": {"Checkpoint{'monitor': None}": Callback(np.float32(1.5)),
    "set": frozenset([1]), "big": 2**90, "bytes": b"abc", "array": np.arange(3), ("a", 1): 2.5},
    "optimizer_states": [optimizer.state_dict()], "hyper_parameters": collections.defaultdict(list, lr=0.1),
    "partial": functools.partial(print, 1), "dtype": torch.float32, "layout": torch.strided, "generator": torch.get_rng_state(),
    "sparse": torch.eye(2).to_sparse(), "complex": torch.zeros(1, dtype=torch.complex128),
}, here / "lightning.ckpt", pickle_protocol=4)
torch.save({"a": net.state_dict(), "b": net.state_dict()}, here / "two.pt")


class Attack:
    def __reduce__(self):
        return os.system, ("true",)


torch.save({"w": torch.zeros(1), "x": Attack()}, here / "attack.pt")
