"""Write the checkpoints of this folder: python make.py. Element i of every tensor is i/4 + a number of its own, as forms_test.go has it."""
import json, os, shutil, sys
import numpy as np, torch
import torch.distributed as dist, torch.multiprocessing as mp
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

HERE = os.path.dirname(os.path.abspath(__file__))
SHAPES = {"a.weight": (6, 5), "a.bias": (7,), "b.weight": (5, 3, 4), "c.scale": (), "d.table": (10, 4)}
TYPES = {"a.weight": torch.float32, "a.bias": torch.bfloat16, "b.weight": torch.float64, "c.scale": torch.float32, "d.table": torch.float16}


def state():
    s = {}
    for k, (name, shape) in enumerate(SHAPES.items()):
        n = int(np.prod(shape))
        s[name] = (torch.arange(n, dtype=torch.float64) / 4 + k).reshape(shape).to(TYPES[name])
    s["steps"] = torch.tensor(12, dtype=torch.int64)
    return s


def rank(r, world, folder, nested):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29617", RANK=str(r), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=r, world_size=world)
    flat = init_device_mesh("cpu", (world,))
    square = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("x", "y"))
    s = state()
    d = dict(s)
    d["a.weight"] = distribute_tensor(s["a.weight"], flat, [Shard(0)])  # 6 rows of 4 ranks
    d["b.weight"] = distribute_tensor(s["b.weight"], square, [Shard(0), Shard(2)])
    d["d.table"] = distribute_tensor(s["d.table"], flat, [Shard(1) if nested else Shard(0)])
    d["a.bias"] = distribute_tensor(s["a.bias"], flat, [Replicate()])
    if nested:
        state_of = {"exp_avg": torch.zeros(3), "step": torch.tensor(3.0)}
        d = {"model": d, "optim": {"state": {"a.weight": state_of}, "param_groups": [{"lr": 0.1}]}, "epoch": 3}
    dcp.save(d, checkpoint_id=folder)
    dist.destroy_process_group()


def main():
    for name, nested, world in ("flat.dcp", False, 4), ("nested.dcp", True, 2):
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        mp.spawn(rank, args=(world, folder, nested), nprocs=world)
    s = state()
    np.savez(os.path.join(HERE, "plain.npz"), **{k: (np.asfortranarray(v.numpy()) if k == "b.weight" else v.numpy()) for k, v in s.items() if v.dtype != torch.bfloat16})
    np.savez_compressed(os.path.join(HERE, "packed.npz"), **np.load(os.path.join(HERE, "plain.npz")))
    import gguf
    w = gguf.GGUFWriter(os.path.join(HERE, "plain.gguf"), "llama")
    w.add_array("some.words", ["a", "bc"])
    for k, v in s.items():
        if v.dtype == torch.bfloat16:
            w.add_tensor(k, v.view(torch.uint16).numpy(), raw_dtype=gguf.GGMLQuantizationType.BF16)
        elif v.dim() > 0:
            w.add_tensor(k, v.numpy())
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    w = gguf.GGUFWriter(os.path.join(HERE, "quantised.gguf"), "llama")
    w.add_tensor("q", gguf.quants.quantize(np.ones((2, 32), np.float32), gguf.GGMLQuantizationType.Q8_0), raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    from safetensors.torch import save_file
    hub = os.path.join(HERE, "hub")
    shutil.rmtree(hub, ignore_errors=True); os.makedirs(hub)
    parts = [["a.weight", "d.table"], ["a.bias", "b.weight", "c.scale", "steps"]]
    index = {"metadata": {"total_size": sum(v.numel() * v.element_size() for v in s.values())}, "weight_map": {}}
    for i, p in enumerate(parts):
        file = f"model-{i+1:05d}-of-{len(parts):05d}.safetensors"
        save_file({k: s[k].contiguous() for k in p}, os.path.join(hub, file), metadata={"format": "pt"})
        index["weight_map"].update({k: file for k in p})
    json.dump(index, open(os.path.join(hub, "model.safetensors.index.json"), "w"), indent=2)
    json.dump({"model_type": "none"}, open(os.path.join(hub, "config.json"), "w"))
    torch.save({"a": torch.tensor([0.5, -448.0, 0.001953125, 3.25]).to(torch.float8_e4m3fn),
                "b": torch.tensor([0.5, -57344.0, 2**-16, 3.5]).to(torch.float8_e5m2)}, os.path.join(HERE, "float8.pt"))


if __name__ == "__main__":
    main()
