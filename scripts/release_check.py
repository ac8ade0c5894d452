"""Judges a release: its checksums, SBOMs by CycloneDX's schema, its image by skopeo and umoci where these are there."""

import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def run(*args):
    return subprocess.run(args, check=True, capture_output=True, text=True).stdout


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "SHA256SUMS")) as f:
        sums = dict(reversed(line.split()) for line in f)
    names = set(os.listdir(folder)) - {"SHA256SUMS"}
    assert names == set(sums), names ^ set(sums)
    for name, want in sums.items():
        with open(os.path.join(folder, name), "rb") as f:
            assert hashlib.sha256(f.read()).hexdigest() == want, name
    print(len(sums), "checksums")
    for path in sorted(glob.glob(os.path.join(folder, "*.cdx.json"))):
        with open(path) as f:
            text = f.read()
        errors = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
        assert errors is None, f"{path}: {errors}"
        print(f"{os.path.basename(path)}: {len(json.loads(text)['components'])} components, valid")
    for path in glob.glob(os.path.join(folder, "*-oci.tar")):
        if not shutil.which("skopeo") or not shutil.which("umoci"):
            print("skopeo and umoci are missing: the image is not judged")
            continue
        index = json.loads(run("skopeo", "inspect", "--raw", f"oci-archive:{path}"))
        for m in index["manifests"]:
            processor = m["platform"]["architecture"]
            with tempfile.TemporaryDirectory() as d:
                run("skopeo", "copy", "--insecure-policy", "--override-os", "linux", "--override-arch", processor,
                    f"oci-archive:{path}", f"oci:{d}/layout:rna")
                run("umoci", "unpack", "--rootless", "--image", f"{d}/layout:rna", f"{d}/bundle")
                files = run("find", f"{d}/bundle/rootfs", "-type", "f").split()
                config = json.load(open(f"{d}/bundle/config.json"))["process"]
                print(f"image {processor}: {len(files)} files, {config['args']} as {config['user']['uid']}")
                program = f"{d}/bundle/rootfs/usr/local/bin/rna"
                machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine)
                if processor == machine:
                    print(run(program, "version").strip())


main()
