"""Compare cuda/include with NVIDIA's headers: numbers, sizes and fields of structs, prototypes, cuDNN's error codes.

python3 scripts/abi_check.py downloads the wheels for CUDA 12 with cuDNN 9.0 and NCCL 2.18, and for CUDA 13 with the
newest, with pip (3 GB) into a temporary folder, or into --folder, where it finds their headers again. It needs gcc. It
fails on any difference.
"""

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile

WHEELS = {
    "12": ["nvidia-cuda-runtime-cu12==12.9.*", "nvidia-cublas-cu12==12.9.*", "nvidia-cuda-nvrtc-cu12==12.9.*",
           "nvidia-cuda-nvcc-cu12==12.9.*", "nvidia-cuda-cccl-cu12==12.9.*", "nvidia-cudnn-cu12==9.0.*",
           "nvidia-nccl-cu12==2.18.*", "nvidia-nvtx-cu12==12.9.*"],
    "13": ["nvidia-cuda-runtime==13.*", "nvidia-cublas==13.*", "nvidia-cuda-nvrtc==13.*", "nvidia-cuda-crt==13.*",
           "nvidia-cuda-cccl==13.*", "nvidia-cudnn-cu13==9.*", "nvidia-nccl-cu13==2.*", "nvidia-nvtx==13.*"],
}
CUDNN = {"12": "9.0", "13": "of CUDA 13"}
NCCL = {"12": "2.18", "13": "of CUDA 13"}
HEADERS = ["cuda.h", "cublas_v2.h", "nvrtc.h"]
NVTX = "nvtx3/nvToolsExt.h"
CUDA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cuda")
OWN = os.path.join(CUDA, "include")


def headers(major, folder):
    """Fetch NVIDIA's headers and return the folders to include."""
    out = os.path.join(folder, major)
    if not os.path.isdir(out):
        for wheel in WHEELS[major]:
            with tempfile.TemporaryDirectory(dir=folder) as d:
                subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", d, wheel],
                    check=True)
                for path in glob.glob(d + "/*.whl"):
                    with zipfile.ZipFile(path) as z:
                        z.extractall(out, [n for n in z.namelist() if "/include/" in n])
    roots = set()
    for name in HEADERS + ["cudnn.h", "nccl.h", NVTX, "crt/host_defines.h", "nv/target"]:
        found = glob.glob(out + "/**/" + name, recursive=True)
        if not found:
            sys.exit(f"CUDA {major}: no {name} in the wheels")
        roots.add(found[0].removesuffix("/" + name))
    return sorted(roots)


def own(names):
    """Read headers of cuda/include: enumerators, structs with their fields, prototypes by function."""
    text = ""
    for name in names:
        text += re.sub(r"/\*.*?\*/", "", open(os.path.join(OWN, name)).read(), flags=re.S)
    numbers = re.findall(r"^\t(\w+) = -?\w+,?$", text, re.M)
    structs = {}
    for name, body in re.findall(r"^struct (\w+)\n\{\n(.*?)\n\};", text, re.M | re.S):
        fields = re.findall(r"(\w+)(?:\[\w+\])?;", body)
        # NCCL's struct has a name for each version, and more fields in later ones.
        structs["ncclConfig_t" if name.startswith("ncclConfig") else "struct " + name] = fields
    prototypes = {m[1]: m[0] for m in re.findall(r"^((?:const )?\w+ \*?((?:cu|nvrtc|nccl)\w+)\(.*\);)$", text, re.M)}
    return numbers, structs, prototypes


def gcc(source, includes, *args):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "check.c")
        with open(path, "w") as f:
            f.write(source)
        # With this define NCCL 2.18 declares bfloat16 in C, too.
        command = ["gcc", "-std=gnu11", "-w", "-D__CUDA_BF16_TYPES_EXIST__", *("-I" + i for i in includes), path, *args]
        if "-o" in args:
            command[command.index("-o") + 1] = os.path.join(d, "check")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr[:4000]}")
        if "-o" in args:
            return subprocess.run([os.path.join(d, "check")], capture_output=True, text=True, check=True).stdout
        return done.stdout


def include(names):
    return "".join(f"#include <{n}>\n" for n in names)


def layout(names, numbers, structs, includes):
    """Print the numbers, sizes and offsets according to the headers in includes."""
    body = "".join(f'printf("{n} %lld\\n", (long long){n});\n' for n in numbers)
    for s, fields in structs.items():
        if s != "ncclConfig_t":
            body += f'printf("sizeof {s} %zu\\n", sizeof({s}));\n'
        for f in fields:
            body += f'printf("{s}.{f} %zu:%zu\\n", offsetof({s}, {f}), sizeof((({s} *)0)->{f}));\n'
    source = include(names) + "#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n" + body + "}\n"
    return gcc(source, includes, "-o", "").splitlines()


def compare(title, names, includes, before=""):
    """Compare our headers with NVIDIA's of the same names and print differences. before is put before NVIDIA's."""
    numbers, structs, prototypes = own(["cuda_types.h", *names] if "cuda.h" in names else names)
    good = True
    for a, b in zip(layout(names, numbers, structs, [OWN]), layout(names, numbers, structs, includes), strict=True):
        if a != b:
            good = False
            print(f"{title}: {a.rsplit(' ', 1)[0]} is {b.rsplit(' ', 1)[1]}, cuda/include has {a.rsplit(' ', 1)[1]}")
    text = before + include(names if "cuda.h" in names else ["cuda.h", *names])
    declared = set(re.findall(r"\b((?:cu|nvrtc|nccl)\w+)\s*\(", gcc(text, includes, "-E")))
    known = [p for name, p in prototypes.items() if name in declared]
    gcc(text + "\n".join(known), includes, "-fsyntax-only")
    unknown = sorted(set(prototypes) - declared)
    print(f"{title}: {len(numbers)} numbers, {len(structs)} structs and {len(known)} prototypes compared"
          + (f"; not declared there: {', '.join(unknown)}" if unknown else ""))
    return good


def codes(version, includes):
    """Compare the names of cuDNN's errors in cuda/dnn."""
    text = re.search(r"var names = .*?\n\}", open(os.path.join(CUDA, "dnn", "dnn.go")).read(), re.S)[0]
    named = {int(n): name for n, name in re.findall(r'(\d+): "(\w+)"', text)}
    source = include(["cudnn.h", "stdio.h"]) + "int main(void) {\n"
    source += "".join(f'printf("%d\\n", CUDNN_STATUS_{name});\n' for name in named.values()) + "}\n"
    good = True
    for (code, name), theirs in zip(named.items(), gcc(source, includes, "-o", "").split(), strict=True):
        if code != int(theirs):
            good = False
            print(f"cuDNN {version}: CUDNN_STATUS_{name} is {theirs}, cuda/dnn has {code}")
    print(f"cuDNN {version}: {len(named)} error codes compared")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="keep NVIDIA's headers here")
    parser.add_argument("majors", nargs="*", default=[], help="12 or 13, default both")
    args = parser.parse_args()
    for major in args.majors:
        if major not in WHEELS:
            parser.error(f"CUDA {major}: there is {' and '.join(WHEELS)}")
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        for major in args.majors or WHEELS:
            folder = args.folder or temporary
            os.makedirs(folder, exist_ok=True)
            includes = headers(major, folder)
            # The define keeps older versions of functions declared, which gorgonia.org/cu calls.
            good &= compare(f"CUDA {major}", HEADERS, includes, "#define __CUDA_API_VERSION_INTERNAL\n")
            good &= compare(f"cuDNN {CUDNN[major]}", ["cudnn.h", "cudnn_backend.h"], includes)
            good &= compare(f"NCCL {NCCL[major]}", ["nccl.h"], includes)
            good &= compare(f"NVTX of CUDA {major}", [NVTX], includes)
            good &= codes(CUDNN[major], includes)
    sys.exit(not good)


main()
