# Writes golden.safetensors. Needs the Python packages safetensors and numpy.
import numpy as np
from safetensors.numpy import save_file

x = np.array([[0.0, -0.0, 1.0], [-2.5, 65504.0, 6.103515625e-05]])
save_file(
    {
        "f64": x,
        "f32": x.astype(np.float32),
        "f16": x.astype(np.float16),
        "i64": np.array([-1, 0, 2**62], np.int64),
        "i32": np.array([-1, 2**31 - 1], np.int32),
        "u8": np.array([1, 2, 3], np.uint8),
        "bool": np.array([True]),
        "scalar": np.array(7.5, np.float32),
        "empty": np.zeros((0, 4), np.float32),
        "näme \"quoted\"\n": np.array([1.5], np.float32),
    },
    "golden.safetensors",
    metadata={"format": "np", "text": 'a "quoted" <line>\n'},
)
