#!/usr/bin/env python3
"""Check the files of ONNX in a folder: NAME.onnx by onnx.checker, and by onnxruntime on the images in NAME.images (uint8, NHWC) against the
logits in NAME.logits (float32). TestONNXRuntime of package network writes them: see make check-onnx."""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

worst = 0.0
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
    onnx.checker.check_model(str(path), full_check=True)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (x,), (y,) = session.get_inputs(), session.get_outputs()
    channels, height, width = x.shape[1:]
    images = np.fromfile(path.with_suffix(".images"), np.uint8).reshape(-1, height, width, channels)
    want = np.fromfile(path.with_suffix(".logits"), np.float32).reshape(len(images), -1)
    pixels = np.ascontiguousarray(images.transpose(0, 3, 1, 2)).astype(np.float32) / 255
    groups = [pixels] if x.shape[0] == len(images) else [pixels, pixels[:1], pixels[1:]]  # an open batch takes any number
    error = 0.0
    for group, expected in zip(groups, [want, want[:1], want[1:]]):
        (got,) = session.run([y.name], {x.name: group})
        assert (x.name, y.name, got.shape) == ("input", "logits", expected.shape), (path, got.shape)
        error = max(error, float(np.abs(got - expected).max() / np.abs(expected).max()))
    worst = max(worst, error)
    assert error < 1e-5, f"{path.name}: logits differ by {error:.2g} of the largest"
    print(f"{path.stem}: batch {x.shape[0]}, {want.shape[1]} logits, largest {np.abs(want).max():.3g}, differ by {error:.2g}")
print(f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}: the largest difference is {worst:.2g}")
