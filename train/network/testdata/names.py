"""Writes the lists of TestNames: names and shapes of the tensors of timm's nets, of torchvision's file of DenseNet-121, and
of Hugging Face's ResNets, whose names are made here as transformers' modeling_resnet.py makes them.

    python names.py
"""
import os
import re

import timm
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
