"""Writes folders as Hugging Face's transformers save them, for TestTimm, and beside this file the lists of their tensors for
TestNames.

    python transformers_files.py FOLDER [NET...]

A folder has model.safetensors, config.json, preprocessor_config.json, image.png, and probabilities.json: the net's for the
image. The weights are seeded. Those that are published without a head have one: for the class token of DINOv2, for the mean
of the patches of DINOv3, for what CLIP and SigLIP pool.
"""
import json
import os
import sys

import numpy as np
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import (BeitConfig, BeitForImageClassification, CLIPConfig, CLIPModel, CLIPVisionConfig, CLIPVisionModel,
                          ConvNextConfig, ConvNextForImageClassification, ConvNextV2Config, ConvNextV2ForImageClassification,
                          Data2VecVisionConfig, Data2VecVisionForImageClassification, DeiTConfig,
                          DeiTForImageClassificationWithTeacher, Dinov2Config, Dinov2Model, Dinov2WithRegistersConfig,
                          Dinov2WithRegistersModel, DINOv3ConvNextConfig, DINOv3ConvNextModel, DINOv3ViTConfig, DINOv3ViTModel,
                          SiglipConfig, SiglipModel, SiglipVisionConfig, SiglipVisionModel, SwinConfig,
                          SwinForImageClassification, ViTConfig, ViTForImageClassification)

CLASSES = 10
SMALL = {"hidden_size": 384, "num_attention_heads": 6}
DINOV3 = {"num_register_tokens": 4, "image_size": 256}
CLIP = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]
# nn's name, or the family's: net, size of the images, their mean, their standard deviation.
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
    "vit_small_patch14_reg4_dinov2": (lambda: Dinov2WithRegistersModel(Dinov2WithRegistersConfig(
        image_size=518, patch_size=14, **SMALL)), 518, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "vit_base_patch32_clip_quickgelu_224": (lambda: CLIPModel(CLIPConfig(text_config={"num_hidden_layers": 2}, vision_config={})), 224,
                                            *CLIP),
    "vit_base_patch16_clip_224": (lambda: CLIPVisionModel(CLIPVisionConfig(patch_size=16, hidden_act="gelu")), 224, *CLIP),
    "beit_base_patch16_224": (lambda: BeitForImageClassification(BeitConfig(num_labels=CLASSES, use_relative_position_bias=True)), 224,
                              [0.5] * 3, [0.5] * 3),
    "data2vec_vision_base": (lambda: Data2VecVisionForImageClassification(Data2VecVisionConfig(
        num_labels=CLASSES, use_relative_position_bias=True)), 224, [0.5] * 3, [0.5] * 3),
    # timm's net has no approximation of GELU.
    "vit_base_patch16_siglip_256": (lambda: SiglipModel(SiglipConfig(
        text_config={"num_hidden_layers": 2, "vocab_size": 99}, vision_config={"image_size": 256, "hidden_act": "gelu"})), 256, [0.5] * 3,
        [0.5] * 3),
    "vit_base_patch32_siglip_256": (lambda: SiglipVisionModel(SiglipVisionConfig(image_size=256, patch_size=32)), 256, [0.5] * 3,
                                    [0.5] * 3),
    "vit_small_patch16_dinov3_qkvb": (lambda: DINOv3ViTModel(DINOv3ViTConfig(**DINOV3)), 256, [0.485, 0.456, 0.406],
                                      [0.229, 0.224, 0.225]),
    "vit_small_plus_patch16_dinov3_qkvb": (lambda: DINOv3ViTModel(DINOv3ViTConfig(use_gated_mlp=True, hidden_act="silu", **DINOV3)), 320,
                                           [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    "convnext_tiny_dinov3": (lambda: DINOv3ConvNextModel(DINOv3ConvNextConfig()), 224, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
}
HEADLESS = "dinov", "clip", "siglip"


def pooled(model, x):
    if isinstance(model, DINOv3ViTModel):
        return model(pixel_values=x).last_hidden_state[:, 5:].mean(1)
    if isinstance(model, (CLIPModel, SiglipModel)):
        return model.vision_model(pixel_values=x).pooler_output
    return model(pixel_values=x).pooler_output


for name in sys.argv[2:] or NETS:
    build, size, mean, std = NETS[name]
    torch.manual_seed(1)
    model = build().eval()
    headless = any(part in name for part in HEADLESS)
    if headless:
        head = torch.nn.Linear(768 if name.startswith("convnext_") else getattr(model.config, "vision_config", model.config).hidden_size, CLASSES)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape) / p[0].numel() ** 0.5 if p.ndim > 1 else 0.5 + torch.rand(p.shape))
    folder = os.path.join(sys.argv[1], f"huggingface_{name}")  # timm_files.py has the other
    model.save_pretrained(folder)
    file = os.path.join(folder, "model.safetensors")
    with safe_open(file, "pt") as f, open(os.path.join(os.path.dirname(os.path.abspath(__file__)), f"huggingface_{name}.txt"), "w") as to:
        for n in f.keys():
            print(n, *(1000 if d == CLASSES else d for d in f.get_slice(n).get_shape()), file=to)
    if headless:
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
        y = head(pooled(model, x[None])) if headless else model(pixel_values=x[None]).logits
    with open(os.path.join(folder, "probabilities.json"), "w") as f:
        json.dump(y.double().softmax(1)[0].tolist(), f)
