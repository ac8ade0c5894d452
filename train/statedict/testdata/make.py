"""Write the checkpoints of this folder: python make.py, python make.py orbax and python make.py keras. Element i of every tensor is i/4 + a number of its own, as forms_test.go has it."""
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


def orbax():
    """The same tensors by Orbax, of arrays on four devices; and by TensorStore, with chunks that leave a remainder, in a tree of several levels."""
    os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=4")
    import jax, orbax.checkpoint as ocp, tensorstore as ts
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    jax.config.update("jax_enable_x64", True)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    parts = {"a.weight": P("x", None), "a.bias": P(), "b.weight": P(None, None, ("x", "y")), "c.scale": P(), "d.table": P("x", "y"), "steps": P()}
    tree = {}
    for name, v in state().items():
        v = jax.numpy.asarray(v.double().numpy()).astype(str(v.dtype)[6:])
        *path, last = name.split(".")
        at = tree
        for k in path:
            at = at.setdefault(k, {})
        at[last] = jax.device_put(v, NamedSharding(mesh, parts[name]))
    tree["opt_state"] = [{"mu": np.zeros(3, np.float32)}]
    for name, options in ("plain.orbax", {}), ("folders.orbax", {"use_ocdbt": False}), ("zarr3.orbax", {"use_zarr3": True}):
        folder = os.path.join(HERE, name)
        shutil.rmtree(folder, ignore_errors=True)
        c = ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options))
        c.save(folder, args=ocp.args.PyTreeSave(tree, save_args=jax.tree.map(lambda _: ocp.SaveArgs(chunk_byte_size=48), tree)))
        for name in "_CHECKPOINT_METADATA", "_METADATA", "_sharding", "commit_success.txt", "array_metadatas":
            path = os.path.join(folder, name)
            if name != "_METADATA" or options != {"use_ocdbt": False}:
                (shutil.rmtree if os.path.isdir(path) else os.remove)(path)
    folder = os.path.join(HERE, "edges.orbax")
    shutil.rmtree(folder, ignore_errors=True)
    bytes_ = {"name": "bytes", "configuration": {"endian": "little"}}
    sharded = {"name": "sharding_indexed", "configuration": {"chunk_shape": [1, 3, 2], "codecs": [bytes_, {"name": "gzip", "configuration": {"level": 1}}],
               "index_codecs": [bytes_, {"name": "crc32c"}], "index_location": "start"}}
    how = {
        "a.weight": ("zarr", {"chunks": [4, 3], "compressor": None, "order": "F", "dimension_separator": "/"}),
        "a.bias": ("zarr3", {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3]}}, "codecs": [bytes_], "chunk_key_encoding": {"name": "v2"}}),
        "b.weight": ("zarr3", {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [3, 3, 4]}}, "codecs": [sharded]}),
        "c.scale": ("zarr", {"chunks": [], "compressor": {"id": "zlib", "level": 1}}),
        "d.table": ("zarr", {"chunks": [4, 3], "compressor": {"id": "zstd", "level": 1}}),
        "steps": ("zarr3", {"codecs": [bytes_]}),
    }
    for name, v in state().items():
        driver, metadata = how[name]
        base = {"driver": "ocdbt", "base": "file://" + folder, "path": name,
                "config": {"max_inline_value_bytes": 30, "max_decoded_node_bytes": 300, "compression": None}}
        x = ts.open({"driver": driver, "kvstore": base, "metadata": metadata, "create": True, "store_data_equal_to_fill_value": True},
                    dtype=str(v.dtype)[6:], shape=list(v.shape)).result()
        x.write(np.asarray(jax.numpy.asarray(v.double().numpy()).astype(str(v.dtype)[6:]))).result()


def keras():
    """The same tensors by h5py, and a net of Keras with the state of its optimiser."""
    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    import h5py, keras

    keras.utils.set_random_seed(1)
    for name, libver in ("plain.h5", "earliest"), ("latest.h5", "latest"):
        with h5py.File(os.path.join(HERE, name), "w", libver=libver) as f:
            for k, v in state().items():
                if v.dtype == torch.bfloat16:
                    f.create_dataset(k, data=v.view(torch.int16).numpy().view("V2")).attrs["dtype"] = "bfloat16"
                else:
                    f.create_dataset(k, data=v.numpy())
    net = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(3), keras.layers.BatchNormalization(scale=False), keras.layers.BatchNormalization(),
                            keras.layers.Dropout(0.5), keras.layers.Dense(1, dtype="bfloat16")])
    net.compile("sgd", "mse")
    net.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    folder = os.path.join(HERE, "keras")
    shutil.rmtree(folder, ignore_errors=True); os.makedirs(folder)
    net.save(os.path.join(folder, "net.keras"))
    net.save_weights(os.path.join(folder, "net.weights.h5"))
    net.save_weights(os.path.join(folder, "net.weights.json"), max_shard_size=4e-8)
    words = {}
    with h5py.File(os.path.join(folder, "net.weights.h5")) as f:
        f.visititems(lambda k, v: words.update({k: v[()]}) if hasattr(v, "shape") and not k.startswith("optimizer/") else None)
    words = {k: torch.from_numpy(v.view(np.int16)).view(torch.bfloat16).float().numpy() if v.dtype == "V2" else v for k, v in words.items()}
    np.savez(os.path.join(folder, "net.npz"), **words)


def main():
    if sys.argv[1:] == ["keras"]:
        return keras()
    if sys.argv[1:] == ["orbax"]:
        return orbax()
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
