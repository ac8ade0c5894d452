"""Writes folders as Hugging Face's transformers save them, for TestTimm, and beside this file the lists of their tensors for
TestNames.

    python transformers_files.py FOLDER

A folder has model.safetensors, config.json, preprocessor_config.json, image.png, and probabilities.json: the net's for the
image. The weights are seeded. DINO, which is published without a head, has one: DINOv2 for its class token, DINOv3 for the
mean of its patches.
"""
import json
import os
import sys

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import (ConvNextConfig, ConvNextForImageClassification, ConvNextV2Config, ConvNextV2ForImageClassification,
                          DeiTConfig, DeiTForImageClassificationWithTeacher, Dinov2Config, Dinov2Model, DINOv3ConvNextConfig,
                          DINOv3ConvNextModel, DINOv3ViTConfig, DINOv3ViTModel, SwinConfig, SwinForImageClassification, ViTConfig,
                          ViTForImageClassification)

CLASSES = 10
SMALL = {"hidden_size": 384, "num_attention_heads": 6}
DINOV3 = {"num_register_tokens": 4, "image_size": 256}
# nn's name, but for an ending: net, size of the images, their mean, their standard deviation.
NETS = {
    "vit_base_patch16_224": (lambda: ViTForImageClassification(ViTConfig(num_labels=CLASSES)), 224, [0.5] * 3, [0.5] * 3),
    "deit_small_distilled_patch16_224": (lambda: DeiTForImageClassificationWithTeacher(DeiTConfig(
        num_labels=CLASSES, intermediate_size=1536, **SMALL)), 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "convnext_tiny": (lambda: ConvNextForImageClassification(ConvNextConfig(num_labels=CLASSES)), 224, [0.485, 0.456, 0.406],
                      [0.229, 0.224, 0.225]),
    "convnextv2_atto": (lambda: ConvNextV2ForImageClassification(ConvNextV2Config(
        num_labels=CLASSES, hidden_sizes=[40, 80, 160, 320], depths=[2, 2, 6, 2])), 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "swin_t": (lambda: SwinForImageClassification(SwinConfig(num_labels=CLASSES)), 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "vit_small_patch14_dinov2": (lambda: Dinov2Model(Dinov2Config(image_size=518, **SMALL)), 518, [0.485, 0.456, 0.406],
                                 [0.229, 0.224, 0.225]),
    "vit_small_patch16_dinov3_qkvb": (lambda: DINOv3ViTModel(DINOv3ViTConfig(**DINOV3)), 256, [0.485, 0.456, 0.406],
                                      [0.229, 0.224, 0.225]),
    "vit_small_plus_patch16_dinov3_qkvb": (lambda: DINOv3ViTModel(DINOv3ViTConfig(use_gated_mlp=True, hidden_act="silu", **DINOV3)), 320,
                                           [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "convnext_tiny_dinov3": (lambda: DINOv3ConvNextModel(DINOv3ConvNextConfig()), 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}


def logits(name, model, head, x):
    y = model(pixel_values=x)
    if "dinov2" in name:
        return head(y.last_hidden_state[:, 0])
    if name == "convnext_tiny_dinov3":
        return head(y.pooler_output)
    return head(y.last_hidden_state[:, 5:].mean(1)) if "dinov3" in name else y.logits


for name, (build, size, mean, std) in NETS.items():
    torch.manual_seed(1)
    model = build().eval()
    head = torch.nn.Linear(768 if name.startswith("convnext_") else 384, CLASSES)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) / p[0].numel() ** 0.5 if p.ndim > 1 else 0.5 + torch.rand(p.shape))
    folder = os.path.join(sys.argv[1], name)
    model.save_pretrained(folder)
    file = os.path.join(folder, "model.safetensors")
    with safe_open(file, "pt") as f, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"huggingface_{name}.txt"), "w") as to:
        for n in f.keys():
            print(n, *(1000 if d == CLASSES else d for d in f.get_slice(n).get_shape()), file=to)
    if "dinov" in name:
        layer = "classifier.2" if name.startswith("convnext_") else "head"
        save_file(load_file(file) | {f"{layer}.{n}": x.clone() for n, x in head.state_dict().items()}, file, {"format": "pt"})
    with open(os.path.join(folder, "preprocessor_config.json"), "w") as f:
        json.dump({"size": {"shortest_edge": size}, "crop_size": {"height": size, "width": size}, "image_mean": mean,
                   "image_std": std, "resample": 3}, f)
    pixels = np.random.default_rng(1).integers(0, 256, (20, 20, 3), dtype=np.uint8)
    image = Image.fromarray(pixels).resize((size, size), Image.BICUBIC)
    image.save(os.path.join(folder, "image.png"))
    x = (torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
    with torch.no_grad():
        y = logits(name, model, head, x[None])
    with open(os.path.join(folder, "probabilities.json"), "w") as f:
        json.dump(y.double().softmax(1)[0].tolist(), f)
