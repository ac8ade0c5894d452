"""Writes the files of this folder: four checkpoints of PyTorch in both formats, and numpy's RNA of them in float64."""
import json, pathlib
import numpy as np
import torch
from safetensors.torch import save_file

here = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)
kinds = {
    "conv.weight": ((8, 4, 3, 3), torch.float32), "fc.weight": ((50, 31), torch.float32), "fc.bias": ((50,), torch.float32),
    "half": ((1500,), torch.float16), "brain": ((40, 3), torch.bfloat16), "double": ((5,), torch.float64),
    "bn.running_mean": ((8,), torch.float32), "bn.running_var": ((8,), torch.float32),
}
x = {k: rng.standard_normal(s) for k, (s, _) in kinds.items()}
star = {k: rng.standard_normal(s) for k, (s, _) in kinds.items()}
rate = {k: rng.uniform(0.1, 0.9, s) for k, (s, _) in kinds.items()}
files = []
for epoch in range(8, 12):
    state = {k: torch.tensor(v).to(kinds[k][1]) for k, v in x.items()}
    state["bn.running_var"] = state["bn.running_var"].abs()
    state["bn.num_batches_tracked"] = torch.tensor(100 * epoch)
    save_file(state, here / f"ckpt-{epoch}.safetensors", {"format": "pt", "epoch": str(epoch), "kind": "sgd"})
    files.append({k: v.double().numpy() for k, v in state.items()})
    state["conv.weight"] = state["conv.weight"].to(memory_format=torch.channels_last)
    torch.save({"state_dict": {"module." + k: v for k, v in state.items()}}, here / f"ckpt-{epoch}.pt")
    x = {k: star[k] + rate[k] * (v - star[k]) for k, v in x.items()}

weights = sorted(k for k in kinds if not k.startswith("bn."))
flat = np.stack([np.concatenate([f[k].ravel() for k in weights]) for f in files], 1)
residuals = flat[:, 1:] - flat[:, :-1]
gram = residuals.T @ residuals
top = np.linalg.eigvalsh(gram)[-1]


def solve(lam):
    z = np.linalg.solve(gram + lam * top * np.eye(3), np.ones(3))
    return z / z.sum()


c = solve(1e-6)
out = {}
for k in kinds:
    v = sum(ci * f[k] for ci, f in zip(c, files[1:]))
    if k == "bn.running_var":
        v = np.maximum(v, 0)
    # torch rounds float64 to 16 bits by way of float32, numpy does not; bfloat16 is left wide.
    if kinds[k][1] == torch.float16:
        out[k] = torch.from_numpy(v.astype(np.float16))
    elif kinds[k][1] == torch.float32:
        out[k] = torch.from_numpy(v.astype(np.float32))
    else:
        out[k] = torch.from_numpy(v)
save_file(out, here / "golden.safetensors")
json.dump({"lambda": 1e-6, "c": c.tolist(), "norms": np.linalg.norm(residuals, axis=0).tolist()}, open(here / "golden.json", "w"))
