"""Small parquet files in the layout of Hugging Face and the same samples as a shard. Needs pyarrow (26.0.1 wrote them), numpy and Pillow;
run here."""
import io
import json
import os
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

rng = np.random.default_rng(1)
NAMES = ["tench", "goldfish", "shark"]


def picture(i):
    b = io.BytesIO()
    Image.fromarray((rng.random((4, 5, 3)) * 255).astype(np.uint8)).resize((18 + i, 16), Image.BICUBIC).save(b, "JPEG", quality=60)
    return b.getvalue()


images = [picture(i % 5) for i in range(12)]
images[7] = images[6]
labels = [2, 0, 1, 1, 0, 2, 2, 2, 0, 1, 0, 1]
metadata = {"huggingface": json.dumps({"info": {"features": {
    "image": {"_type": "Image"}, "label": {"names": NAMES, "_type": "ClassLabel"}}}})}


def table(lo, hi, named=True):
    t = pa.table({
        "image": pa.array([{"bytes": b, "path": f"{lo + i}.jpg"} for i, b in enumerate(images[lo:hi])]),
        "label": pa.array(labels[lo:hi], pa.int64()),
    })
    return t.replace_schema_metadata(metadata) if named else t


def write(name, t, **options):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    pq.write_table(t, name, **{"row_group_size": 5, **options})


# As datasets.push_to_hub writes images, as pyarrow does by default, and other ways.
for i, (lo, hi) in enumerate(((0, 7), (7, 12))):
    write(f"parquet/plain/data/train-{i:05}-of-00002.parquet", table(lo, hi), use_dictionary=["label"], compression="none")
write("parquet/plain/data/validation-00000-of-00001.parquet", table(0, 3), use_dictionary=False, compression="none")
write("parquet/snappy/train-00000-of-00001-abc.parquet", table(0, 12))
write("parquet/zstd/train.parquet", table(0, 12), data_page_version="2.0", compression="zstd", use_dictionary=False, data_page_size=2000)
write("parquet/gzip/train.parquet", table(0, 12), compression="gzip", use_dictionary=False)
write("parquet/v2/train.parquet", table(0, 12), data_page_version="2.0", compression="none", use_dictionary=False)
write("parquet/unnamed/train.parquet", table(0, 12, named=False))
write("parquet/names/train.parquet", pa.table({"image": pa.array(images), "label": pa.array([NAMES[i] for i in labels])}))
write("parquet/required/train.parquet", pa.table([pa.array(images), pa.array(labels, pa.int32())], schema=pa.schema([
    pa.field("img", pa.binary(), nullable=False), pa.field("label", pa.int32(), nullable=False)])), compression="none", use_dictionary=False)
write("parquet/nulls/train.parquet", pa.table({"image": pa.array([{"bytes": b if i != 3 else None} for i, b in enumerate(images)]),
                                               "label": pa.array(labels)}), compression="none", use_dictionary=False)
for name, compression in ("crc", "none"), ("crc-snappy", "snappy"):
    write(f"parquet/{name}/train.parquet", table(0, 12), compression=compression, use_dictionary=["label"], write_page_checksum=True)
# In the order of the names of classes, as folders and archives have images.
order = sorted(range(12), key=lambda i: (NAMES[labels[i]], i))
write("parquet/sorted/train.parquet", pa.table({"image": pa.array([{"bytes": images[i]} for i in order]),
                                                "label": pa.array([NAMES[labels[i]] for i in order])}), use_dictionary=["label"], compression="none")
# Errors.
write("parquet/brotli/train.parquet", table(0, 2), compression="brotli")
write("parquet/other/train.parquet", pa.table({"text": pa.array(["a"]), "y": pa.array([0.5])}))
write("parquet/unlabelled/train.parquet", pa.table({"image": pa.array(images[:2]), "label": pa.array([-1, -1])}))
write("parquet/null-label/train.parquet", pa.table({"image": pa.array(images[:2]), "label": pa.array([1, None], pa.int64())}))
write("parquet/delta/train.parquet", table(0, 2), use_dictionary=False, column_encoding={"image.bytes": "DELTA_BYTE_ARRAY"})

with tarfile.open("parquet/same.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
    for i, (b, label) in enumerate(zip(images, labels)):
        for end, content in (("jpg", b), ("cls", NAMES[label].encode())):
            m = tarfile.TarInfo(f"{i:03}.{end}")
            m.size = len(content)
            tar.addfile(m, io.BytesIO(content))
open("parquet/classes.txt", "w").write("".join(f"{n}\n" for n in NAMES))

# Lists of labels: numbers with Hugging Face's names, one of them empty, and names.
several = [sorted({i, labels[(5 * k) % 12]}) if k != 4 else [] for k, i in enumerate(labels)]
lists = pa.table({"image": pa.array([{"bytes": b, "path": "x.jpg"} for b in images]), "labels": pa.array(several, pa.list_(pa.int64()))})
features = {"labels": {"feature": {"names": NAMES, "_type": "ClassLabel"}, "_type": "Sequence"}}
lists = lists.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
write("parquet/lists/train.parquet", lists)
write("parquet/lists-required/train.parquet", lists.cast(pa.schema([lists.schema.field("image"), pa.field("labels", pa.list_(
    pa.field("element", pa.int64(), nullable=False)), nullable=False)])).replace_schema_metadata(lists.schema.metadata))
write("parquet/lists-v2/train.parquet", lists, data_page_version="2.0", compression="zstd", use_dictionary=False)
write("parquet/lists-names/train.parquet", pa.table({"image": pa.array(images), "labels": pa.array([[NAMES[i] for i in l] for l in several])}))
