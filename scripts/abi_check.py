"""Compare cuda/include with NVIDIA's headers: numbers, sizes and fields of structs, prototypes.

python3 scripts/abi_check.py downloads the wheels for CUDA 12 and 13 with pip (1 GB) into a folder that is removed at the end, or into
--folder, where they are found again. It needs gcc. It fails when something differs.
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
           "nvidia-cuda-nvcc-cu12==12.9.*", "nvidia-cuda-cccl-cu12==12.9.*"],
    "13": ["nvidia-cuda-runtime==13.*", "nvidia-cublas==13.*", "nvidia-cuda-nvrtc==13.*", "nvidia-cuda-crt==13.*",
           "nvidia-cuda-cccl==13.*"],
}
HEADERS = ["cuda.h", "cublas_v2.h", "nvrtc.h"]
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cuda", "include")


def headers(major, folder):
    """Fetch NVIDIA's headers and return the folders to include."""
    out = os.path.join(folder, major)
    if not os.path.isdir(out):
        for wheel in WHEELS[major]:
            with tempfile.TemporaryDirectory(dir=folder) as d:
                subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", d, wheel], check=True)
                for path in glob.glob(d + "/*.whl"):
                    with zipfile.ZipFile(path) as z:
                        z.extractall(out, [n for n in z.namelist() if "/include/" in n])
    roots = set()
    for name in HEADERS + ["crt/host_defines.h", "nv/target"]:
        found = glob.glob(out + "/**/" + name, recursive=True)
        if not found:
            sys.exit(f"CUDA {major}: no {name} in the wheels")
        roots.add(found[0].removesuffix("/" + name))
    return sorted(roots)


def own():
    """Read cuda/include: enumerators, structs with their fields, prototypes by function."""
    text = ""
    for path in sorted(glob.glob(OWN + "/*.h")):
        if os.path.basename(path) != "cudnn.h":
            text += re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    numbers = re.findall(r"^\t(\w+) = -?\w+,?$", text, re.M)
    structs = {}
    for name, body in re.findall(r"^struct (\w+)\n\{\n(.*?)\n\};", text, re.M | re.S):
        structs["struct " + name] = re.findall(r"(\w+)(?:\[\w+\])?;", body)
    prototypes = {m[1]: m[0] for m in re.findall(r"^(\w+ (cu\w+|nvrtc\w+)\(.*\);)$", text, re.M)}
    return numbers, structs, prototypes


def gcc(source, includes, *args):
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "check.c")
        with open(path, "w") as f:
            f.write(source)
        command = ["gcc", "-std=gnu11", "-w", *("-I" + i for i in includes), path, *args]
        if "-o" in args:
            command[command.index("-o") + 1] = os.path.join(d, "check")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)}\n{done.stderr[:4000]}")
        if "-o" in args:
            return subprocess.run([os.path.join(d, "check")], capture_output=True, text=True, check=True).stdout
        return done.stdout


INCLUDE = "".join(f"#include <{h}>\n" for h in HEADERS)


def layout(numbers, structs, includes):
    """Print the numbers, sizes and offsets as the headers in includes have them."""
    body = "".join(f'printf("{n} %lld\\n", (long long){n});\n' for n in numbers)
    for s, fields in structs.items():
        body += f'printf("sizeof {s} %zu\\n", sizeof({s}));\n'
        for f in fields:
            body += f'printf("{s}.{f} %zu:%zu\\n", offsetof({s}, {f}), sizeof((({s} *)0)->{f}));\n'
    source = INCLUDE + "#include <stddef.h>\n#include <stdio.h>\nint main(void) {\n" + body + "}\n"
    return gcc(source, includes, "-o", "").splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", help="keep NVIDIA's headers here")
    parser.add_argument("majors", nargs="*", default=[], help="12 or 13, default both")
    args = parser.parse_args()
    numbers, structs, prototypes = own()
    ours = layout(numbers, structs, [OWN])
    bad = False
    with tempfile.TemporaryDirectory() as temporary:
        for major in args.majors or WHEELS:
            folder = args.folder or temporary
            os.makedirs(folder, exist_ok=True)
            includes = headers(major, folder)
            theirs = layout(numbers, structs, includes)
            for a, b in zip(ours, theirs, strict=True):
                if a != b:
                    bad = True
                    print(f"CUDA {major}: {a.rsplit(' ', 1)[0]} is {b.rsplit(' ', 1)[1]}, cuda/include has {a.rsplit(' ', 1)[1]}")
            # The define keeps the older versions of functions declared, which are what gorgonia.org/cu calls.
            keep = "#define __CUDA_API_VERSION_INTERNAL\n" + INCLUDE
            declared = set(re.findall(r"\b((?:cu|nvrtc)\w+)\s*\(", gcc(keep, includes, "-E")))
            known = [p for name, p in prototypes.items() if name in declared]
            gcc(keep + "\n".join(known), includes, "-fsyntax-only")
            unknown = sorted(set(prototypes) - declared)
            print(f"CUDA {major}: {len(numbers)} numbers, {len(structs)} structs and {len(known)} prototypes compared"
                  + (f"; not declared there: {', '.join(unknown)}" if unknown else ""))
    sys.exit(bad)


main()
