"""Writes the lists of TestNames: names and shapes of the tensors of timm's nets, of torchvision's file of DenseNet-121 and its
nets with auxiliary heads, and of Hugging Face's ResNets, whose names are made here as transformers' modeling_resnet.py makes them.

    python names.py
"""
import os
import re

import timm
import torch
from torchvision import models


def write(file, state):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), file), "w") as f:
        for name, x in state.items():
            print(name, *x.shape, file=f)


write("timm_efficientnet_b0.txt", timm.create_model("efficientnet_b0").state_dict())
write("timm_mobilenetv3_large.txt", timm.create_model("mobilenetv3_large_100").state_dict())
dense = models.densenet121().state_dict()
write("densenet121_files.txt", {re.sub(r"(denselayer\d+\.(?:norm|conv))([12])\.", r"\1.\2.", n): x for n, x in dense.items()
                                if not n.endswith("num_batches_tracked")})
for net in "googlenet", "inception_v3":
    write(f"torchvision_{net}.txt", models.get_model(net, aux_logits=True, init_weights=False).state_dict())


def huggingface(name):
    stem = "resnet.embedder.embedder."
    for pattern, to in (
        (r"^conv1\.", stem + "convolution."), (r"^bn1\.", stem + "normalization."), (r"^fc\.", "classifier.1."),
        (r"\.downsample\.0\.", ".shortcut.convolution."), (r"\.downsample\.1\.", ".shortcut.normalization."),
        (r"\.conv(\d)\.", lambda m: f".layer.{int(m[1]) - 1}.convolution."),
        (r"\.bn(\d)\.", lambda m: f".layer.{int(m[1]) - 1}.normalization."),
        (r"^layer(\d)\.", lambda m: f"resnet.encoder.stages.{int(m[1]) - 1}.layers."),
    ):
        name = re.sub(pattern, to, name)
    return name


for depth in 18, 50:
    state = models.get_model(f"resnet{depth}").state_dict()
    write(f"huggingface_resnet{depth}.txt", {huggingface(n): x for n, x in state.items()})


def renamed(net, state):
    """state with nn's names, as names.txt gives them."""
    rules, nets = [], None
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "names.txt")) as f:
        for line in map(str.split, f):
            if line[:1] == ["nets"]:
                nets = line[1]
            elif line and line[0] != "#" and re.fullmatch(nets, net):
                rules.append(line)
    out = {}
    for name, x in state.items():
        for pattern, to in rules:
            if m := re.fullmatch(pattern, name):
                name = re.sub(r"\{(\d)([+-]\d+)?\}", lambda g: str(int(m[int(g[1])]) + int(g[2])) if g[2] else m[int(g[1])], to)
                break
        if name != "-":
            out[name] = x
    return out


# The names carry timm's seeded weights to torchvision's nets: both compute the same.
for theirs, ours in (("convnext_tiny", "convnext_tiny"), ("swin_tiny_patch4_window7_224", "swin_t"), ("regnety_004", "regnet_y_400mf"),
                     ("mobilenetv2_100", "mobilenet_v2"), ("mnasnet_100", "mnasnet1_0"), ("vgg11_bn", "vgg11_bn")):
    torch.manual_seed(1)
    net, other = timm.create_model(theirs).eval(), models.get_model(ours).eval()
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape) / p[0].numel() ** 0.5 if p.ndim > 1 else 0.5 + torch.rand(p.shape))
        write(f"timm_{ours}.txt", net.state_dict())
        want = other.state_dict()
        state = renamed(ours, net.state_dict())
        missing = [n for n in want if n not in state and not n.endswith("relative_position_index")]
        for n, x in state.items():
            want[n].copy_(x.reshape(want[n].shape))
        x = torch.randn(2, 3, 224, 224)
        y, z = net(x), other(x)
    error = float((y - z).abs().max() / y.abs().max())
    print(f"{theirs}: {len(missing)} tensors are missing, logits differ by {error:.1e}")
    assert not missing and error < 1e-5
