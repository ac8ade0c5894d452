"""Compare `rna merge` with other programs: python merge_check.py RNA. Needs torch, numpy, safetensors, gguf, mergekit, ema-pytorch, transformers, peft, jax, orbax-checkpoint,
keras and h5py.

Methods are judged in float64 on the same numbers; a difference is in units in the last place of float32, the type of the files."""
import itertools, json, os, shutil, subprocess, sys, tempfile
from types import SimpleNamespace as NS

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file

RNA = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else "bin/rna"
rows = []


def rna(*args, ok=True):
    p = subprocess.run([RNA, "merge", *map(str, args), "--json", "--quiet"], capture_output=True, text=True)
    if ok and p.returncode:
        sys.exit(f"rna merge {args}: {p.stderr}")
    return json.loads(p.stdout) if ok else p.stderr


def ulps(got, want):
    """The largest difference of float32 numbers from float64 ones, in units in the last place."""
    worst = 0.0
    for name, w in want.items():
        g, w = got[name].double().numpy(), w.double().numpy()
        ulp = np.spacing(np.maximum(np.abs(w.astype(np.float32)), 1e-30)).astype(np.float64)
        worst = max(worst, float(np.max(np.abs(g - w) / ulp, initial=0)))
    return worst


def judge(what, by, got, want, limit=0.5001):
    d = ulps(got, want)
    rows.append((what, by, f"{d:.4g} ulp"))
    print(f"{what:34} {by:34} {d:.4g} ulp", flush=True)
    if not d <= limit:
        sys.exit(f"{what} differs from {by} by {d} ulp, more than {limit}")


def same(what, by, got, want):
    assert list(sorted(got)) == list(sorted(want)), (what, sorted(got), sorted(want))
    for k, w in want.items():
        assert got[k].dtype == w.dtype and torch.equal(got[k], w), (what, k)
    rows.append((what, by, "equal"))
    print(f"{what:34} {by:34} equal", flush=True)


SHAPES = {"embed.weight": (301, 64), "layer.0.weight": (257, 130), "layer.0.bias": (257,), "layer.1.weight": (64, 64), "norm.weight": (64,)}


def model(seed, around=None, dtype=torch.float32):
    """Numbers of which differences are exact in float32."""
    g = torch.Generator().manual_seed(seed)
    s = {}
    for k, shape in SHAPES.items():
        x = torch.randn(shape, generator=g, dtype=torch.float64)
        x = x / 2 if around is None else around[k].double() + x / 8
        s[k] = (torch.round(x * 2**20) / 2**20).clamp(-3, 3).to(dtype)
    return s


def wide(s):
    return {k: v.double() for k, v in s.items()}


def methods(dir):
    base = model(1)
    models = [model(2 + i, base) for i in range(4)]
    names = []
    for i, m in enumerate([base] + models):
        names.append(os.path.join(dir, f"m-{i}.safetensors"))
        save_file(m, names[-1])
    out = os.path.join(dir, "out.safetensors")

    def run(*args):
        report = rna(*args, "-o", out)
        return load_file(out), report

    # averages of a row
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    class Net(torch.nn.Module):
        def __init__(self, s):
            super().__init__()
            for k, v in s.items():
                self.register_parameter(k.replace(".", "_"), torch.nn.Parameter(v.double().clone()))

    def averaged(**kw):
        net = Net(base)
        avg = AveragedModel(net, **kw)
        for m in [base] + models:
            with torch.no_grad():
                for k, v in m.items():
                    getattr(net, k.replace(".", "_")).copy_(v)
            avg.update_parameters(net)
        return {k: getattr(avg.module, k.replace(".", "_")).detach() for k in base}

    judge("mean", "torch swa_utils", run(*names)[0], averaged())
    judge("ema 0.9", "torch swa_utils", run(*names, "--by", "ema", "--decay", 0.9)[0], averaged(multi_avg_fn=get_ema_multi_avg_fn(0.9)))
    w = [0.1, 0.3, -0.2, 0.5, 0.3]
    judge("weights", "numpy", run(*names, "--by", "weights", "--weights", ",".join(map(str, w)))[0],
          {k: sum(c * m[k].double() for c, m in zip(w, [base] + models)) for k in base})
    # decay of the learning rate: steps g_i count f(i/n)
    decays = {"linear": lambda x: 1 - x, "cosine": lambda x: (1 + np.cos(np.pi * x)) / 2, "1-sqrt": lambda x: 1 - np.sqrt(x)}
    for name, f in decays.items():
        want, n, row = wide(base), len(names), [base] + models
        for i in range(1, n):
            for k in want:
                want[k] = want[k] + f(i / n) * (row[i][k].double() - row[i - 1][k].double())
        judge("wsm " + name, "steps by that decay, numpy", run(*names, "--by", "wsm", "--schedule", name)[0], want, 0.51)

    # RNA
    def solved(keys, lam=1e-8):
        row = [base] + models
        R = np.stack([np.concatenate([(row[i][k].double() - row[i - 1][k].double()).numpy().ravel() for k in keys]) for i in range(1, len(row))], 1)
        G = R.T @ R
        z = np.linalg.solve(G + lam * np.linalg.norm(G, 2) * np.eye(len(G)), np.ones(len(G)))
        c = z / z.sum()
        return {k: sum(float(c[i - 1]) * row[i][k].double() for i in range(1, len(row))) for k in keys}

    judge("rna", "numpy", run(*names, "--by", "rna", "--lambda", 1e-8)[0], solved(list(base)), 4)
    judge("rna --per tensor", "numpy", run(*names, "--by", "rna", "--per", "tensor", "--lambda", 1e-8)[0],
          {k: v for name in base for k, v in solved([name]).items()}, 4)

    # mergekit
    from mergekit.merge_methods.registry import registered_methods
    methods = {m.spec.name: m for m in registered_methods()}

    def group(name, weights, density=1.0, scale=1.0, **kw):
        out = {}
        for k in base:
            g = NS(base=NS(tensor=base[k].double()), non_base=[NS(id=i, tensor=m[k].double()) for i, m in enumerate(models)])
            p = {"int8_mask": False, "lambda": scale, "weight": dict(enumerate(weights)), "density": {i: density for i in range(4)},
                 "normalize": kw.get("normalize", False), "rescale": kw.get("rescale", False)}
            if "gamma" in kw:
                p["gamma"] = {i: kw["gamma"] for i in range(4)}
            current[0] = k
            current[1] = itertools.count()
            out[k] = methods[name].merge_group(g, **p)
        return out

    # mergekit leaves the order of equal magnitudes open: here it is by their place
    sort = torch.sort
    torch.sort = lambda x, descending=False: sort(x, stable=True, descending=descending)
    torch.argsort = lambda x, descending=False: sort(x, stable=True).indices.flip(0) if descending else sort(x, stable=True).indices
    current = ["", None]
    w = [0.4, 0.3, 0.5, -0.2]
    ws = ",".join(map(str, w))
    m = names[1:]
    judge("task", "mergekit task_arithmetic", run(*m, "--base", names[0], "--by", "task", "--weights", ws, "--scale", 0.7)[0],
          group("task_arithmetic", w, scale=0.7), 0.51)
    judge("task --normalize", "mergekit task_arithmetic", run(*m, "--base", names[0], "--by", "task", "--weights", ws, "--normalize")[0],
          group("task_arithmetic", w, normalize=True), 0.51)
    for d in 0.2, 0.53:
        judge(f"ties {d}", "mergekit ties", run(*m, "--base", names[0], "--by", "ties", "--density", d)[0], group("ties", [1] * 4, d, normalize=True), 0.51)
    judge("ties, weights", "mergekit ties", run(*m, "--base", names[0], "--by", "ties", "--density", 0.4, "--weights", ws, "--normalize=false", "--scale", 0.8)[0],
          group("ties", w, 0.4, 0.8), 0.51)
    judge("ties --rescale l1", "mergekit ties", run(*m, "--base", names[0], "--by", "ties", "--density", 0.4, "--rescale", "l1")[0],
          group("ties", [1] * 4, 0.4, normalize=True, rescale=True), 0.51)
    for name, extra in ("breadcrumbs", []), ("breadcrumbs_ties", ["--sign", "sum"]):
        judge(name, "mergekit " + name, run(*m, "--base", names[0], "--by", "breadcrumbs", "--density", 0.6, "--gamma", 0.05, "--weights", ws, *extra)[0],
              group(name, w, 0.6, gamma=0.05), 0.51)

    # DARE: mergekit with the random choice of rna merge, which is that of SplitMix64
    def mix(z):
        z = z + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def fnv(name):
        h = 0xCBF29CE484222325
        for b in name.encode():
            h = ((h ^ b) * 0x100000001B3) % 2**64
        return h

    kept = []

    def bernoulli(p):
        with np.errstate(over="ignore"):
            seed = mix(mix(np.uint64(7) ^ np.uint64(fnv(current[0]))) + np.uint64(next(current[1])))
            u = (mix(seed + np.arange(p.numel(), dtype=np.uint64)) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        mask = torch.from_numpy((u < p.reshape(-1)[0].item()).astype(np.float64)).reshape(p.shape)
        kept.append((mask.sum().item(), p.numel()))
        return mask

    import mergekit.sparsify as sparsify

    class Wide:  # torch for sparsify, which works in float32 there
        float32 = torch.float64

        def __getattr__(self, name):
            return getattr(torch, name)

    Wide.bernoulli = staticmethod(bernoulli)
    sparsify.torch = Wide()
    try:
        for d in 0.25, 0.5:
            args = [*m, "--base", names[0], "--by", "dare", "--density", d, "--seed", 7, "--weights", ws]
            judge(f"dare {d} --rescale l1", "mergekit dare_linear", run(*args, "--rescale", "l1")[0], group("dare_linear", w, d, rescale=True), 0.51)
            judge(f"dare {d} --sign sum, l1", "mergekit dare_ties", run(*args, "--rescale", "l1", "--sign", "sum")[0], group("dare_ties", w, d, rescale=True), 0.51)
            judge(f"dare {d} --rescale none", "mergekit dare_linear", run(*args, "--rescale", "none")[0], group("dare_linear", w, d), 0.51)
            paper = {k: base[k].double() + sum(c * (x - base[k].double()) for c, x in zip([1], [v])) for k, v in group("dare_linear", [c / d for c in w], d).items()}
            judge(f"dare {d}", "arXiv 2311.03099, 1/p", run(*args)[0], paper, 0.51)
    finally:
        sparsify.torch = torch
    n, total = sum(k for k, _ in kept), sum(t for _, t in kept)
    print(f"dare keeps {n / total:.5f} of {total} elements, 0.375 expected")
    assert abs(n / total - 0.375) < 4 * (0.25 / total) ** 0.5

    from mergekit.merge_methods.slerp import slerp
    for t in 0.0, 0.3, 1.0, 1.4:
        judge(f"slerp {t}", "mergekit slerp", run(names[0], names[1], "--by", "slerp", "--t", t)[0],
              {k: slerp(torch.tensor([t], dtype=torch.float64), base[k].double()[None], models[0][k].double()[None])[0] for k in base}, 0.51)


def posthoc(dir):
    """Two power EMAs of a walk, by ema-pytorch, and its synthesis of a third."""
    from ema_pytorch import PostHocEMA

    torch.manual_seed(0)
    net = torch.nn.Linear(40, 30).double()
    folder = os.path.join(dir, "ema")
    emas = PostHocEMA(net, sigma_rels=(0.05, 0.2), update_every=1, checkpoint_every_num_steps=20, checkpoint_folder=folder, checkpoint_dtype=torch.float64)
    for _ in range(100):
        with torch.no_grad():
            for p in net.parameters():
                p.add_(torch.randn_like(p) / 10)
        emas.update()
    torch.set_default_dtype(torch.float64)  # else the exponents are rounded to float32
    want = emas.synthesize_ema_model(sigma_rel=0.1).ema_model.state_dict()
    torch.set_default_dtype(torch.float32)
    steps, stored, files = [], [], []
    for step in range(20, 101, 20):
        for i, s in enumerate((0.05, 0.2)):
            files.append(os.path.join(folder, f"{i}.{step}.pt"))
            steps.append(step)
            stored.append(s)
    out = os.path.join(dir, "post.safetensors")
    r = rna(*files, "--by", "power-ema", "--order", "given", "--sigma-rel", 0.1, "--stored", ",".join(map(str, stored)), "--steps", ",".join(map(str, steps)), "-o", out)
    got = load_file(out)
    got = {k.replace("ema_model.", ""): v for k, v in got.items() if k.startswith("ema_model.")}
    d = max(float((got[k] - w).abs().max() / w.abs().max()) for k, w in want.items())
    rows.append(("power-ema, 2 EMAs × 5", "ema-pytorch PostHocEMA", f"{d:.2g} relative"))
    print(f"power-ema differs from ema-pytorch by {d:.2g}, residual {r['residual']:.3g}")
    assert d < 1e-9, d


def distributed(rank, world, dir, states, layouts):
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29631", RANK=str(rank), WORLD_SIZE=str(world))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    flat = init_device_mesh("cpu", (world,))
    square = init_device_mesh("cpu", (2, world // 2), mesh_dim_names=("a", "b"))
    for i, (s, layout) in enumerate(zip(states, layouts)):
        d = {}
        for k, v in s.items():
            if layout == "rows":
                d[k] = distribute_tensor(v, flat, [Shard(0)])
            elif layout == "columns":
                d[k] = distribute_tensor(v, flat, [Shard(v.dim() - 1)])
            elif layout == "square":
                d[k] = distribute_tensor(v, square, [Shard(0), Shard(v.dim() - 1)] if v.dim() > 1 else [Replicate(), Shard(0)])
            else:
                d[k] = v
        if layout == "fsdp":
            from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
            from torch.distributed.fsdp import fully_shard

            net = torch.nn.Module()
            for k, v in s.items():
                at = net
                *path, last = k.split(".")
                for p in path:
                    if not hasattr(at, p):
                        at.add_module(p, torch.nn.Module())
                    at = getattr(at, p)
                at.register_parameter(last, torch.nn.Parameter(v.clone()))
            fully_shard(net)
            opt = torch.optim.AdamW(net.parameters())
            sum((p**2).sum() for p in net.parameters()).backward()
            lr = [g.update(lr=0.0, weight_decay=0.0) for g in opt.param_groups]
            opt.step()
            d = {"model": get_model_state_dict(net), "optim": get_optimizer_state_dict(net, opt)}
        dcp.save(d, checkpoint_id=os.path.join(dir, f"dcp-{i}"))
    dist.destroy_process_group()


def formats(dir):
    import gguf

    states = [model(30 + i) for i in range(5)]
    layouts = ["rows", "columns", "square", "fsdp", "whole"]
    mp.spawn(distributed, args=(4, dir, states, layouts), nprocs=4)
    mean = {k: sum(s[k].double() for s in states) / 5 for k in SHAPES}
    got = os.path.join(dir, "dcp.safetensors")
    r = rna(*[os.path.join(dir, f"dcp-{i}") for i in range(5)], "-o", got)
    assert [f["shards"] for f in r["files"]][:4] == [4, 4, 4, 4], r["files"]
    judge("5 .distcp: " + ", ".join(layouts), "torch, gloo of 4 ranks", load_file(got), mean)
    # each alone, bit by bit, as torch loads it
    from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
    for i in range(5):
        one = os.path.join(dir, f"one-{i}.pt")
        dcp_to_torch_save(os.path.join(dir, f"dcp-{i}"), one)
        want = torch.load(one, weights_only=False)
        want = want.get("model", want)
        rna(os.path.join(dir, f"dcp-{i}"), "-o", got)
        same(f".distcp, {layouts[i]}", "dcp_to_torch_save", load_file(got), {k: v.contiguous() for k, v in want.items()})
    s = states[0]
    torch.save(s, os.path.join(dir, "zip.pt"))
    torch.save(s, os.path.join(dir, "old.pt"), _use_new_zipfile_serialization=False)
    np.savez(os.path.join(dir, "a.npz"), **{k: v.numpy() for k, v in s.items()})
    np.savez_compressed(os.path.join(dir, "b.npz"), **{k: v.numpy() for k, v in s.items()})
    w = gguf.GGUFWriter(os.path.join(dir, "a.gguf"), "llama")
    for k, v in s.items():
        w.add_tensor(k, v.numpy())
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()
    read = gguf.GGUFReader(os.path.join(dir, "a.gguf"))
    assert all(np.array_equal(t.data.reshape(s[t.name].shape), s[t.name].numpy()) for t in read.tensors)
    for name, by in ("zip.pt", "torch.save"), ("old.pt", "torch.save, before zip"), ("a.npz", "numpy.savez"), ("b.npz", "numpy.savez_compressed"), ("a.gguf", "gguf.GGUFReader"):
        for ext in ".safetensors", ".pt":
            to = os.path.join(dir, "o" + ext)
            rna(os.path.join(dir, name), "-o", to)
            same(f"{name} to {ext}", by, load_file(to) if ext == ".safetensors" else dict(torch.load(to, weights_only=True)), s)
    for dtype in torch.float8_e4m3fn, torch.float8_e5m2, torch.bfloat16, torch.float16, torch.float64:
        parts = [{k: (v * 8).to(dtype) for k, v in x.items()} for x in states[:4]]
        for i, p in enumerate(parts):
            save_file(p, os.path.join(dir, f"t-{i}.safetensors"))
        rna(*[os.path.join(dir, f"t-{i}.safetensors") for i in range(4)], "-o", got)
        mean = {k: (sum(p[k].double() for p in parts) / 4).to(dtype) for k in s}
        same(f"mean of 4, {str(dtype)[6:]}", "torch, rounded from float64", load_file(got), mean)


def scales(dir):
    """Eight-bit numbers with scales: values are combined, and get scales by which the largest of a block is the type's largest."""
    forms = {  # scale's name, shape of the blocks, type of the scale
        "DeepSeek": ("weight_scale_inv", (128, 128), torch.float32, torch.float8_e4m3fn),
        "compressed-tensors, channels": ("weight_scale", (1, 320), torch.bfloat16, torch.float8_e4m3fn),
        "compressed-tensors, groups": ("weight_scale", (1, 64), torch.bfloat16, torch.float8_e4m3fn),
        "ModelOpt, tensors": ("weight_scale", (None, None), torch.float32, torch.float8_e4m3fn),
        "E5M2, tensors": ("weight_scale", (None, None), torch.float32, torch.float8_e5m2),
    }
    rows, cols = 300, 320
    for name, (suffix, (r, c), stype, dtype) in forms.items():
        r, c = r or rows, c or cols
        grid = (-(-rows // r), -(-cols // c))
        most = torch.finfo(dtype).max

        def wide(s):
            return s.double().repeat_interleave(r, 0)[:rows].repeat_interleave(c, 1)[:, :cols]

        def quantise(x):
            s = torch.zeros(grid, dtype=torch.float64)
            for i in range(grid[0]):
                for j in range(grid[1]):
                    s[i, j] = x[i * r:(i + 1) * r, j * c:(j + 1) * c].abs().max().float().double() / most
            s = s.to(stype)
            return (x / wide(s)).to(dtype), s

        values, files = [], []
        for i in range(3):
            torch.manual_seed(i)
            q, s = quantise(torch.randn(rows, cols, dtype=torch.float64) / (1 + i))
            values.append(q.double() * wide(s))
            s = s if grid != (1, 1) else s.reshape(())
            files.append(os.path.join(dir, f"eight-{i}.safetensors"))
            save_file({"l.weight": q, "l." + suffix: s, "n.weight": torch.ones(3)}, files[-1])
        w = [0.2, 0.3, 0.5]
        out = os.path.join(dir, "eight.safetensors")
        rna(*files, "--by", "weights", "--weights", ",".join(map(str, w)), "-o", out)
        got = load_file(out)
        sums = sum(a * v for a, v in zip(w, values))
        q, s = quantise(sums)
        x, y = got["l.weight"].double() * wide(s), q.double() * wide(s)
        # PyTorch rounds to float32 first: where the two differ, ours must be as near
        assert ((x - sums).abs() <= (y - sums).abs() * (1 + 1e-7)).all() and (x != y).double().mean() < 1e-4, name
        got["l.weight"][x != y] = q[x != y]
        same("scales, " + name, "torch", {k: v for k, v in got.items() if k != "n.weight"},
             {"l.weight": q, "l." + suffix: s if grid != (1, 1) else s.reshape(())})


def hub(dir):
    from transformers import AutoModelForCausalLM, LlamaConfig

    nets = []
    for i in range(3):
        torch.manual_seed(i)
        c = LlamaConfig(vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2)
        net = AutoModelForCausalLM.from_config(c)
        net.save_pretrained(os.path.join(dir, f"llama-{i}"), max_shard_size=["100KB", "300KB", "10GB"][i])
        nets.append(net)
    out = os.path.join(dir, "merged")
    r = rna(*[os.path.join(dir, f"llama-{i}") for i in range(3)], "-o", out, "--shard-size", "200kB")
    assert r["shards"] > 2 and "config.json" in r["with_files"], r
    got = AutoModelForCausalLM.from_pretrained(out).state_dict()
    want = {k: sum(n.state_dict()[k].double() for n in nets) / 3 for k in nets[0].state_dict()}
    judge(f"Hugging Face, 1 to {r['shards']} shards", "transformers from_pretrained", got, want)


def lora(dir):
    """Adapters of several ranks: peft loads the merged ones."""
    from peft import LoraConfig, PeftModel, get_peft_model

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.q, self.v = torch.nn.Linear(40, 30), torch.nn.Linear(30, 20)

        def forward(self, x):
            return self.v(self.q(x))

    def deltas(m):
        return {k: getattr(m.base_model.model, k).get_delta_weight("default").detach() for k in ("q", "v")}

    changes, weights = [], [0.5, 0.7, -0.2]
    for i, (r, alpha, root) in enumerate(((4, 16, False), (8, 8, True), (2, 3, False))):
        torch.manual_seed(i)
        m = get_peft_model(Net(), LoraConfig(r=r, lora_alpha=alpha, use_rslora=root, target_modules=["q", "v"], init_lora_weights=False)).double()
        m.save_pretrained(os.path.join(dir, f"lora-{i}"))
        changes.append(deltas(m))
    out = os.path.join(dir, "lora")
    rna(*[os.path.join(dir, f"lora-{i}") for i in range(3)], "--by", "weights", "--weights", ",".join(map(str, weights)), "--adapter", "delta", "-o", out)
    got = deltas(PeftModel.from_pretrained(Net().double(), out, autocast_adapter_dtype=False))
    judge("LoRA, ranks 4, 8, 2", "peft get_delta_weight", got, {k: sum(w * c[k] for w, c in zip(weights, changes)) for k in changes[0]})


def orbax(dir):
    """Orbax's checkpoints of arrays on four devices, sharded differently in each; Orbax writes and reads, JAX averages."""
    os.environ.update(JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=4")
    import jax, orbax.checkpoint as ocp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    from safetensors.flax import load_file as load_flax

    jax.config.update("jax_enable_x64", True)
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))
    shapes = {"dense": {"kernel": (64, 96), "bias": (96,)}, "out": {"kernel": (96, 8)}}
    layouts = [P("x"), P(None, "y"), P("x", "y"), P()]
    for dtype in "float32", "bfloat16", "float8_e4m3fn":
        trees, files = [], []
        for i, layout in enumerate(layouts):
            r = np.random.default_rng(i)

            def put(shape):
                x = jax.numpy.asarray(r.normal(size=shape)).astype(dtype)
                return jax.device_put(x, NamedSharding(mesh, layout if len(shape) > 1 else P("x")))

            tree = {"params": jax.tree.map(put, shapes, is_leaf=lambda x: isinstance(x, tuple)), "step": i}
            trees.append(tree["params"])
            files.append(os.path.join(dir, f"orbax-{dtype}-{i}"))
            options = [{}, {"use_zarr3": True}, {"use_ocdbt": False}, {"use_zarr3": True, "use_ocdbt": False}][i]
            save = jax.tree.map(lambda x: ocp.SaveArgs(chunk_byte_size=[None, 512][i % 2]), tree)
            if i == 3:
                save = jax.tree.map(lambda _: ocp.SaveArgs(), tree)
            tree["opt_state"] = {"mu": tree["params"]["dense"]["bias"]}
            save["opt_state"] = {"mu": ocp.SaveArgs()}
            ocp.Checkpointer(ocp.PyTreeCheckpointHandler(**options)).save(files[-1], args=ocp.args.PyTreeSave(tree, save_args=save))
        out = os.path.join(dir, "orbax.safetensors")
        r = rna(*files, "-o", out)
        assert r["copied"] == ["step"] and r["combined"] == 3, r
        flat = {k: v for k, v in load_flax(out).items() if k != "step"} if dtype != "float8_e4m3fn" else None
        torches = {k: v for k, v in load_file(out).items() if k != "step"}
        want = jax.tree.map(lambda *x: (sum(np.asarray(v, np.float64) for v in x) / 4).astype(x[0].dtype), *trees)
        paths = {"params." + ".".join(str(p.key) for p in k): v for k, v in jax.tree_util.tree_leaves_with_path(want)}
        same(f"4 of Orbax, {dtype}", "jax, rounded from float64", torches,
             {k: torch.from_numpy(np.asarray(v, np.float32)).to(torches[k].dtype) for k, v in paths.items()})
        if flat is not None:
            from flax.traverse_util import unflatten_dict
            tree = unflatten_dict(flat, sep=".")["params"]
            assert all(jax.tree.leaves(jax.tree.map(lambda a, b: bool((np.asarray(a) == b).all()), tree, want)))
        if dtype == "float32":
            with ocp.CheckpointManager(os.path.join(dir, "steps")) as m:
                for step in 1, 20, 100:
                    m.save(step, args=ocp.args.StandardSave(trees[step % 3]))
                m.wait_until_finished()
            r = rna(*[os.path.join(dir, "steps", s) for s in ("100", "20", "1")], "--by", "weights", "--weights", "0,0,1", "--order", "natural", "-o", out)
            assert [os.path.basename(f["path"]) for f in r["files"]] == ["1", "20", "100"], r
            same("a step of CheckpointManager", "orbax", load_file(out), {k[7:]: torch.from_numpy(np.array(v)) for k, v in
                 (("params." + ".".join(str(p.key) for p in k), v) for k, v in jax.tree_util.tree_leaves_with_path(trees[100 % 3]))})


def keras(dir):
    """Keras's three forms; Keras loads the mean."""
    os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
    import h5py, keras
    from safetensors.numpy import load_file as load_numpy

    def net(seed):
        keras.utils.set_random_seed(seed)
        n = keras.Sequential([keras.layers.Input((8, 8, 3)), keras.layers.Conv2D(6, 3), keras.layers.BatchNormalization(), keras.layers.Dropout(0.1),
                              keras.layers.LayerNormalization(), keras.layers.Flatten(), keras.layers.Dense(5)])
        n.compile("adam", "mse")
        n.fit(np.random.normal(size=(8, 8, 8, 3)), np.random.normal(size=(8, 5)), verbose=0)
        return n

    nets = [net(i) for i in range(3)]
    files = [os.path.join(dir, name) for name in ("a.weights.h5", "b.keras", "c.weights.json")]
    nets[0].save_weights(files[0])
    nets[1].save(files[1])
    nets[2].save_weights(files[2], max_shard_size=5e-6)
    out = os.path.join(dir, "keras.safetensors")
    r = rna(*files, "-o", out, "--bn", "combine")
    assert r["files"][2]["shards"] > 2, r
    shutil.copy(files[0], os.path.join(dir, "mean.weights.h5"))
    with h5py.File(os.path.join(dir, "mean.weights.h5"), "r+") as f:
        for k, v in load_numpy(out).items():
            f[k][...] = v
    mean = net(9)
    mean.load_weights(os.path.join(dir, "mean.weights.h5"))
    want = [sum(np.asarray(w, np.float64) for w in ws) / 3 for ws in zip(*(n.get_weights() for n in nets))]
    judge("3 of Keras, into .weights.h5", "keras load_weights", {str(i): torch.from_numpy(np.asarray(w)) for i, w in enumerate(mean.get_weights())},
          {str(i): torch.from_numpy(w) for i, w in enumerate(want)})
    rna(*files, "-o", out)
    got = load_numpy(out)
    last = nets[2].layers[1].get_weights()[2:]  # statistics are the last file's
    assert all(np.array_equal(got[f"layers/batch_normalization/vars/{2 + i}"], w) for i, w in enumerate(last))


def main():
    dir = tempfile.mkdtemp(prefix="merge-check-")
    try:
        for part in (globals()[p] for p in (sys.argv[2:] or ["methods", "posthoc", "formats", "scales", "hub", "lora", "orbax", "keras"])):
            part(dir)
    finally:
        shutil.rmtree(dir)
    for r in rows:
        print("| " + " | ".join(r) + " |")


if __name__ == "__main__":
    main()
