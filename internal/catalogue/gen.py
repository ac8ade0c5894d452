"""Writes torchvision.txt: the official ImageNet weights of torchvision's nets, by net and version, the default one last.

    python gen.py > torchvision.txt
"""
import torchvision.models as models

for net in models.list_models(module=models):
    weights = models.get_model_weights(net)
    versions = [w for w in weights if w.name.startswith("IMAGENET1K_V")]
    for w in sorted(versions, key=lambda w: w == weights.DEFAULT):
        version = w.name.removeprefix("IMAGENET1K_").lower()
        print(net, version, w.url, round(w.meta["_file_size"] * 2**20))
