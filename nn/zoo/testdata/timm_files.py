"""Writes folders as timm has them on Hugging Face's hub, with weights by a formula, for TestTimm of package network.

    python timm_files.py FOLDER [NET...]

A folder has model.safetensors, config.json, image.png, and probabilities.json: the net's for the image.
"""

import json
import os
import sys

import numpy as np
import timm
import torch
from PIL import Image
from safetensors.torch import save_file

from make import fill, u01

NETS = ["resnet18", "densenet121", "efficientnet_b0", "convnext_tiny", "swin_tiny_patch4_window7_224", "vit_tiny_patch16_224",
        "deit_tiny_distilled_patch16_224", "mobilenetv3_large_100", "mobilenetv3_small_100", "mobilenetv4_conv_small", "tf_efficientnet_b0",
        "tf_efficientnetv2_s", "tf_efficientnetv2_b0", "tf_mobilenetv3_large_100", "tf_mobilenetv3_small_100", "efficientnet_b5",
        "regnety_004", "mobilenetv2_100", "mnasnet_100", "vgg11_bn", "regnety_008", "mobilenetv2_110d", "mobilenetv3_small_050",
        "resnet50d", "seresnet50", "convnext_nano", "convnextv2_nano", "convnextv2_tiny",
        "vit_small_patch14_reg4_dinov2", "vit_base_patch32_clip_quickgelu_224", "inception_v3", "vit_small_patch16_dinov3",
        "eva02_tiny_patch14_336", "poolformer_s12", "caformer_s18", "resmlp_12_224", "cait_xxs24_224", "xcit_nano_12_p16_224",
        "tiny_vit_5m_224"]

torch.set_num_threads(1)
for name in sys.argv[2:] or NETS:
    folder = os.path.join(sys.argv[1], name)
    os.makedirs(folder, exist_ok=True)
    model = timm.create_model(name, num_classes=10).eval()
    fill(model)
    save_file(model.state_dict(), os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    cfg = model.pretrained_cfg
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"architecture": name, "num_classes": 10, "pretrained_cfg": {k: cfg[k] for k in (
            "tag", "input_size", "crop_pct", "interpolation", "mean", "std")}}, f)
    shape = (300, 400, 3)
    image = Image.fromarray((256 * u01(7, 300 * 400 * 3)).astype(np.uint8).reshape(shape))
    image = image.resize((40, 30), Image.BILINEAR).resize((400, 300), Image.BICUBIC)
    image.save(os.path.join(folder, "image.png"))
    # rna crops images where timm squashes some to a square.
    transform = timm.data.create_transform(**timm.data.resolve_data_config(cfg) | {"crop_mode": "center"})
    with torch.no_grad():
        p = model(transform(image)[None]).double().softmax(1)[0]
    with open(os.path.join(folder, "probabilities.json"), "w") as f:
        json.dump(p.tolist(), f)
    print(name, transform.transforms[0], flush=True)
