"""Reads a run's files for TensorBoard by TensorBoard's own reader, and compares them with metrics.jsonl.

    make check-tensorboard        or: python scripts/tensorboard_check.py bin/rna

It needs the package tensorboard.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2
from tensorboard.util import tensor_util


def main(rna):
    out = pathlib.Path(tempfile.mkdtemp()) / "run"
    subprocess.run([rna, "train", "-q", "--epochs", "5", "--rna-window", "3", "--averages", "3", "--limit-batches", "10",
                    "--limit-val", "4", "--tensorboard", "--histograms", "2", "-o", out], check=True,
                   stdout=subprocess.DEVNULL)
    epochs = [r for r in map(json.loads, open(out / "metrics.jsonl")) if r["kind"] == "epoch"]
    run = event_accumulator.EventAccumulator(str(out), size_guidance={"histograms": 0, "scalars": 0})
    run.Reload()

    def scalar(tag):
        return {e.step: e.value for e in run.Scalars(tag)}

    for tag, of in {"validation loss/SGD": lambda r: r["sgd"]["loss"], "training loss/SGD": lambda r: r["train"]["loss"],
                    "RNA/norm of c": lambda r: r.get("rna", {}).get("c_norm"),
                    "RNA coefficient/00 before the newest": lambda r: r.get("rna", {}).get("c", [None])[-1]}.items():
        want = {r["step"]: of(r) for r in epochs if of(r) is not None}
        got = scalar(tag)
        assert want and got.keys() == want.keys(), (tag, got, want)
        assert all(math.isclose(got[k], want[k], rel_tol=1e-6) for k in want), (tag, got, want)
    assert len(run.Scalars("step/loss")) == epochs[-1]["step"]

    info = {}
    for tag, content in run.summary_metadata.items():
        if content.plugin_data.plugin_name == "hparams":
            info[tag] = plugin_data_pb2.HParamsPluginData.FromString(content.plugin_data.content)
    values = info["_hparams_/session_start_info"].session_start_info.hparams
    config = json.load(open(out / "config.json"))
    assert values["lr"].number_value == config["lr"] and values["model"].string_value == "lenet", values
    assert values["shuffle"].bool_value is True and values["averages"].string_value or values["averages"].number_value == 3
    assert info["_hparams_/session_end_info"].session_end_info.status == 1

    [text] = run.Tensors("options/text_summary")
    text = tensor_util.make_ndarray(text.tensor_proto).item().decode()
    assert "| lr | 0.05 |" in text, text
    [image] = run.Images("augmented images")
    assert image.width > 500 and image.encoded_image_string[:4] == b"\x89PNG"

    (out / "augmented.png").write_bytes(image.encoded_image_string)
    last = run.Histograms("weights/fc3.weight" if "weights/fc3.weight" in run.Tags()["histograms"]
                          else sorted(run.Tags()["histograms"])[0])
    assert [h.step for h in last] == [epochs[k]["step"] for k in (1, 3, 4)], last
    for h in last:
        v = h.histogram_value
        assert sum(v.bucket) == v.num > 0 and v.bucket_limit[-1] == v.max and v.min < v.max
        middle = sum(b * (l - (v.max - v.min) / 80) for b, l in zip(v.bucket[1:], v.bucket_limit[1:])) + v.bucket[0] * v.min
        assert abs(middle - v.sum) <= v.num * (v.max - v.min) / 40, (middle, v.sum)
    print(f"TensorBoard reads {len(run.Tags()['scalars'])} scalars, {len(run.Tags()['histograms'])} histograms, "
          f"the options and the sheet of {out}")


if __name__ == "__main__":
    main(sys.argv[1])
