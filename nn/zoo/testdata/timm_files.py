"""Writes folders as timm has them on Hugging Face's hub, with weights by a formula, for TestTimm of package network.

    python timm_files.py FOLDER [NET...]

A folder has model.safetensors, config.json, image.png, and probabilities.json: the net's for the image. The files of OTHERS
have the names of others, which timm converts; timm's head is beside them.
"""

import json
import os
import re
import sys

import numpy as np
import timm
import torch
from PIL import Image
from safetensors.torch import save_file
from timm.models import swin_transformer_v2, vision_transformer

from make import fill, u01

NETS = ["resnet18", "densenet121", "efficientnet_b0", "convnext_tiny", "swin_tiny_patch4_window7_224", "vit_tiny_patch16_224",
        "deit_tiny_distilled_patch16_224", "mobilenetv3_large_100", "mobilenetv3_small_100", "mobilenetv4_conv_small", "tf_efficientnet_b0",
        "tf_efficientnetv2_s", "tf_efficientnetv2_b0", "tf_mobilenetv3_large_100", "tf_mobilenetv3_small_100", "efficientnet_b5",
        "regnety_004", "mobilenetv2_100", "mnasnet_100", "vgg11_bn", "regnety_008", "mobilenetv2_110d", "mobilenetv3_small_050",
        "resnet50d", "seresnet50", "convnext_nano", "convnextv2_nano", "convnextv2_tiny",
        "vit_small_patch14_reg4_dinov2", "vit_base_patch32_clip_quickgelu_224", "inception_v3", "vit_small_patch16_dinov3",
        "eva02_tiny_patch14_336", "poolformer_s12", "caformer_s18", "resmlp_12_224", "cait_xxs24_224", "xcit_nano_12_p16_224",
        "tiny_vit_5m_224",
        "vit_base_patch32_siglip_256", "beitv2_base_patch16_224", "swinv2_tiny_window16_256"]


def openai(state):
    """OpenAI's names, and tensors of the text's tower."""
    out = {"visual.proj": torch.ones(768, 512), "positional_embedding": torch.ones(77, 512), "text_projection": torch.ones(512, 512),
           "logit_scale": torch.ones(()), "token_embedding.weight": torch.ones(9, 512), "ln_final.weight": torch.ones(512),
           "transformer.resblocks.0.ln_1.weight": torch.ones(512), "transformer.resblocks.0.attn.in_proj_weight": torch.ones(1536, 512)}
    for name, x in state.items():
        for pattern, to in (("cls_token", "class_embedding"), ("pos_embed", "positional_embedding"), (r"patch_embed\.proj", "conv1"),
                            ("norm_pre", "ln_pre"), (r"^norm\.", "ln_post."), (r"\.norm([12])", r".ln_\1"), (r"qkv\.", "in_proj_"),
                            (r"attn\.proj", "attn.out_proj"), (r"fc1", "c_fc"), ("fc2", "c_proj"), (r"^blocks", "transformer.resblocks")):
            name = re.sub(pattern, to, name)
        out[f"visual.{name}"] = x.squeeze() if name.endswith("_embedding") else x
    return out


def facebook(state):
    """Facebook's names, whose class token has a place."""
    place = torch.linspace(-1, 1, 384)[None, None]
    return {"mask_token": torch.ones(1, 384), "register_tokens": state.pop("reg_token"), "cls_token": state.pop("cls_token"),
            "pos_embed": torch.cat([place, state.pop("pos_embed")], 1)} | state


def microsoft(state):
    """Microsoft's names, and buffers."""
    out = {f"layers.0.blocks.1.{n}": torch.zeros(2) for n in ("attn_mask", "attn.relative_coords_table", "attn.relative_position_index")}
    for name, x in state.items():
        out[re.sub(r"layers\.(\d)\.downsample", lambda m: f"layers.{int(m[1]) - 1}.downsample", name).replace("head.fc", "head")] = x
    return out


# Folder: timm's net, and its tensors with the names of another program.
OTHERS = {"openai_clip": ("vit_base_patch32_clip_quickgelu_224", openai), "facebook_dinov2_reg4": ("vit_small_patch14_reg4_dinov2", facebook),
          "microsoft_swinv2": ("swinv2_tiny_window8_256", microsoft)}

torch.set_num_threads(1)
for folder in sys.argv[2:] or NETS + list(OTHERS):
    name, rename = OTHERS.get(folder, (folder, None))
    folder = os.path.join(sys.argv[1], folder)
    os.makedirs(folder, exist_ok=True)
    model = timm.create_model(name, num_classes=10).eval()
    fill(model)
    state = model.state_dict()
    if rename:
        head = {n: state.pop(n) for n in ("head.weight", "head.bias") if n in state}
        state = {n: x.contiguous().clone() for n, x in rename(state).items()}
        convert = (swin_transformer_v2 if "swin" in name else vision_transformer).checkpoint_filter_fn
        model.load_state_dict(convert(dict(state), model) | head)
        state |= head
    save_file(state, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
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
