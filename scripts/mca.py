#!/usr/bin/env python3
"""Estimate the speed of the inner loops of arm64's or x86-64's kernels on some cores by llvm-mca, which models a core
that runs a loop from its first-level cache. No real processor runs here.

Kernels are taken from the compiled test of their package, so that the judged code is the code that runs. The loop of a
kernel is the innermost one with the most multiply-adds, or all of those with as many. A core's peak rate of
multiply-adds is the model's result for a loop of nothing else of the same kind. The table shows the loops' share of
that rate; its last rows show the bytes read and written in a cycle instead.

First, every instruction that the generators write as numbers is disassembled and compared with its name beside it.

LLVM 22 has no timings of AMX's instructions, so of those loops the table shows the counts: products, loads of tiles and
other instructions. An Intel processor takes 16 cycles for a product and 8 for a load from the first-level cache.

Needs llvm-mca, llvm-mc and llvm-objdump of LLVM 19 or later: Debian's llvm-22, from /usr/lib/llvm-22/bin, or --llvm."""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KERN, VEC, ROWS, CONVEX = "nn/device/cpu/internal/kern", "nn/device/cpu/internal/vec", "rna/kernel", "rna/convex/internal/kern"

@dataclasses.dataclass
class Arch:
    """An architecture's kernels. Each level has a kernel of nothing but multiply-adds, and no loops on a core without it."""
    name: str
    triple: str
    cores: list
    peaks: dict  # the kernel of each level
    lacks: dict  # cores without a level
    # loops that multiply and add: package, kernel, title, level, without those of Go's package math and of loads
    products: list
    streams: list
    tiles: list  # loops of products of tiles
    adds: str  # an instruction that multiplies and adds
    jump: str  # one that goes back, with its target
    wide: tuple  # turns instructions on float32 into ones on float64: a pattern and its replacement


ARM64 = Arch("arm64", "aarch64", ["neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2", "apple-m1"],
    {"": "neonPeak"}, {}, [
    (KERN, "neonProducts6x2", "product, 6×16", ""), (KERN, "neonProducts6x1", "product, 6×8", ""),
        (KERN, "neonProducts4x2", "product, 4×16", ""),
    (KERN, "neonPairs6", "product, 6×8, pairs", ""), (KERN, "neonSums6x2", "weight gradient, 6×16", ""),
        (KERN, "neonSums6x1", "weight gradient, 6×8", ""),
    (KERN, "neonGroups8Products7", "groups, 7 pixels × 8", ""),
        (KERN, "neonGroups4Products7", "groups, 14 pixels × 4", ""),
    (KERN, "neonGroups8Sums3", "groups, weight gradient, 3 taps × 8", ""),
        (KERN, "neonGroups4Sums3", "groups, weight gradient, 3 taps × 4", ""),
    (ROWS, "squareNEON", "RNA, Gram matrix", ""), (ROWS, "triangleNEON", "RNA, Gram matrix, on the diagonal", ""),
], [
    (KERN, "neonSource", "Winograd, source"), (KERN, "neonResult", "Winograd, results"),
    (VEC, "reluNEON", "ReLU"), (VEC, "normalizeAddReLUNEON", "BatchNorm, addition, ReLU"),
        (VEC, "momentsNEON", "BatchNorm, sums"),
    (VEC, "reluGradSumsNEON", "BatchNorm, sums of gradients"), (VEC, "momentumNEON", "SGD with momentum"),
        (VEC, "expNEON", "exp"),
    (VEC, "maxWindowsNEON", "maxpool"), (ROWS, "dotFourFloat32NEON", "RNA, a row of the Gram matrix"),
        (ROWS, "addFourFloat32NEON", "RNA, combination"),
    (CONVEX, "dots4NEON", "convex, products with rows"), (CONVEX, "addRows1NEON", "convex, sums of rows"),
        (CONVEX, "sparseDots4NEON", "convex, sparse products"),
], [], r"fml[as]\s", r"(?:b\.\w+|cbn?z|tbn?z|b)\s.*?(0x[0-9a-f]+)(?:\s|$)", (r"\.4s", ".2d"))

# LLVM 22's models of Zen 5 and of Sapphire Rapids do one 512-bit multiply-add a cycle, as that of Zen 4, but the
# processors do two. In the models of Zen a broadcasting load takes a pipe from multiply-adds. For AVX2 they are closer.
AMD64 = Arch("amd64", "x86_64", ["znver3", "znver4", "znver5", "skylake-avx512", "sapphirerapids"],
    {"AVX2": "avx2Peak", "AVX-512": "avx512Peak", "AVX512_BF16": "bf16Peak"},
    {"AVX-512": ["znver3"], "AVX512_BF16": ["znver3", "skylake-avx512"]}, [
    (KERN, "avx2Products6x2", "product, 6×16", "AVX2"), (KERN, "avx2Products6x1", "product, 6×8", "AVX2"),
        (KERN, "avx2Pairs6", "product, 6×8, pairs", "AVX2"),
    (KERN, "avx2Sums6x2", "weight gradient, 6×16", "AVX2"), (ROWS, "squareAVX2", "RNA, Gram matrix", "AVX2"),
    (KERN, "avx512Products14x2", "product, 14×32", "AVX-512"),
        (KERN, "avx512Products14x1", "product, 14×16", "AVX-512"),
    (KERN, "avx512Pairs14", "product, 14×16, pairs", "AVX-512"),
        (KERN, "avx512Sums14x2", "weight gradient, 14×32", "AVX-512"),
    (ROWS, "squareAVX512", "RNA, Gram matrix", "AVX-512"),
    (KERN, "bf16Products14x2", "product, 14×32", "AVX512_BF16"),
        (KERN, "bf16Sums14x2", "weight gradient, 14×32", "AVX512_BF16"),
], [], [
    (KERN, "amxProducts2", "product, 2×2 tiles"), (KERN, "amxProducts1", "product, 2×1 tiles"),
], r"vfn?m(add|sub)\d+p[sd]\s|vdpbf16ps\s", r"j[a-z]+\s+(0x[0-9a-f]+)$", (r"(vfn?m(?:add|sub)\d+)ps", r"\1pd"))


def llvm(args, tool):
    path = pathlib.Path(args.llvm) / tool
    if not path.exists():
        sys.exit(f"{path} is missing: install Debian's llvm-22, or name LLVM's programs with --llvm")
    return str(path)


def words(arch, text):
    """The instructions of a file that are written as numbers: pairs of their bytes and their names."""
    if arch is ARM64:
        for m in re.finditer(r"WORD \$(0x[0-9a-f]+) // (.*)", text):
            yield int(m[1], 16).to_bytes(4, "little"), m[2]
        return
    sizes = {"LONG": 4, "WORD": 2, "BYTE": 1}
    for m in re.finditer(r"(?:// (.*)\n)?((?:\s+(?:LONG|WORD|BYTE)\s+\$0x[0-9a-f]+\n)+)", text):
        numbers = re.findall(r"(LONG|WORD|BYTE)\s+\$(0x[0-9a-f]+)", m[2])
        yield b"".join(int(n, 16).to_bytes(sizes[size], "little") for size, n in numbers), m[1] or "nothing"


def check_words(args, arch):
    """Compare the numbers in the assembly with a disassembler's output."""
    pairs = set()
    for package in (KERN, VEC, ROWS, CONVEX):
        pairs |= set(words(arch, (ROOT / package / f"kernels_{arch.name}.s").read_text()))
    pairs = sorted(pairs)
    source = "\n".join(" ".join(f"0x{b:02x}" for b in word) for word, _ in pairs)
    out = subprocess.run([llvm(args, "llvm-mc"), "--disassemble", f"--triple={arch.triple}", "--output-asm-variant=0"],
        input=source,
                         capture_output=True, text=True, check=True)
    lines = [" ".join(line.split()) for line in out.stdout.splitlines() if line.strip() and not line.strip().startswith(".")]
    if out.stderr or len(lines) != len(pairs):
        sys.exit(f"{len(lines)} of {len(pairs)} words are instructions\n{out.stderr}")
    for (word, manual), said in zip(pairs, lines):
        if same(said) != same(manual if arch is ARM64 else go_syntax(manual)):
            sys.exit(f"{word.hex()} is {said}, not {manual}")
    print(f"{len(pairs)} different numbers disassemble to their stated instructions\n")


def same(text):
    """Normalise instructions that can be written in several ways."""
    text = text.replace("#0x0", "#0").replace("#0000000000000000", "#0").replace("#0xffffffffffffffff",
        "#-1").replace(", #0]", "]")
    text = re.sub(r"(tile\w+.*?)(\d*)\(%\w+,%\w+\)", lambda m: f"{m[1]}{m[2] or 0}(base)(stride)", text)
    text = re.sub(r"^mov (v\d+\.16b), (v\d+)\.16b$", r"orr \1, \2.16b, \2.16b", text)
    return text.replace(" ", "")


def go_syntax(text):
    """An instruction in the syntax of Go's assembler, in that of LLVM."""
    text = re.sub(r"\b([ZY]|TMM)(\d+)\b", lambda m: "%" + {"Z": "zmm", "Y": "ymm", "TMM": "tmm"}[m[1]] + m[2], text)
    return text.replace("(DI)", "(%rdi)").lower()


def loops(arch, code):
    """The innermost loops of a function: (address, text) lists."""
    jumps = []
    for i, (at, text) in enumerate(code):
        m = re.match(arch.jump, text)
        if m and int(m[1], 16) <= at:
            jumps.append((int(m[1], 16), at))
    inner = [j for j in jumps if not any(k != j and j[0] <= k[0] and k[1] <= j[1] for k in jumps)]
    return [[text for at, text in code if first <= at <= last] for first, last in inner]


def functions(args, package, names, binary):
    """The instructions of some functions."""
    symbols = [f"onlinerna/{package}.{n}.abi0" for n in names]
    out = subprocess.run([llvm(args, "llvm-objdump"), "-d", "--no-show-raw-insn",
        "--disassemble-symbols=" + ",".join(symbols), binary],
                         capture_output=True, text=True, check=True).stdout
    found, code = {}, None
    for line in out.splitlines():
        if m := re.match(r"[0-9a-f]+ <.*\.(\w+)\.abi0>:", line):
            code = found.setdefault(m[1], [])
        elif (m := re.match(r"\s*([0-9a-f]+):\s+(.*)", line)) and code is not None:
            code.append((int(m[1], 16), re.sub(r"\s*<.*>$", "", m[2])))
    for n in names:
        if n not in found:
            sys.exit(f"{package} has no kernel {n}")
    return found


def cycles(args, arch, core, body):
    """The instructions of one turn of a loop."""
    turns = 200
    text = "\n".join(re.sub(r"0x[0-9a-f]+$", "loop", t) if re.match(arch.jump, t) else t for t in body)
    out = subprocess.run([llvm(args, "llvm-mca"), f"-mtriple={arch.triple}", f"-mcpu={core}", f"-iterations={turns}"],
        input="loop:\n" + text,
                         capture_output=True, text=True)
    m = re.search(r"Total Cycles:\s+(\d+)", out.stdout)
    if not m:
        sys.exit(f"{core}: {out.stderr}")
    return int(m[1]) / turns


def adds(arch, body):
    return sum(bool(re.match(arch.adds, t)) for t in body)


def moved(body):
    """The bytes that a turn loads and stores."""
    total = 0
    for t in body:
        if m := re.match(r"(ld|st)(p|r|ur)\s+([qds])", t):
            total += {"q": 16, "d": 8, "s": 4}[m[3]] * (2 if m[2] == "p" else 1)
    return total


def row(arch, title, turn, cells):
    print(f"| {title} | {turn} | " + " | ".join(cells.get(c, "") for c in arch.cores) + " |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--arch", default="arm64", choices=["arm64", "amd64"], help="of the kernels")
    p.add_argument("--llvm", default="/usr/lib/llvm-22/bin", help="folder of LLVM's programs")
    p.add_argument("--least", type=float, default=0,
        help="fail if a loop of multiply-adds reaches less than this share of the rate")
    args = p.parse_args()
    arch = {"arm64": ARM64, "amd64": AMD64}[args.arch]
    check_words(args, arch)
    env = dict(os.environ, GOOS="linux", GOARCH=arch.name, CGO_ENABLED="0")
    code = {}
    with tempfile.TemporaryDirectory() as folder:
        kernels = arch.products + arch.streams + arch.tiles
        for package in {k[0] for k in kernels}:
            binary = f"{folder}/test"
            subprocess.run(["go", "test", "-c", "-o", binary, f"./{package}"], cwd=ROOT, env=env, check=True)
            names = [k[1] for k in kernels if k[0] == package] + (list(arch.peaks.values()) if package == KERN else [])
            code[package] = functions(args, package, names, binary)
    print("| part of the rate of multiply-adds | a turn | " + " | ".join(arch.cores) + " "
        "|\n|-|-|" + "-|" * len(arch.cores))
    poor = []
    for level, name in arch.peaks.items():
        cores = [c for c in arch.cores if c not in arch.lacks.get(level, [])]
        peak = loops(arch, code[KERN][name])[0]
        rate = {}
        for core in cores:
            for wide in (False, True):
                body = [re.sub(*arch.wide, t) if wide else t for t in peak]
                element = [re.sub(r"\.\d([sd])$", r".\1[1]", t) for t in body]
                rate[core, wide] = max(adds(arch, b) / cycles(args, arch, core, b) for b in (body, element))
        both = any(re.search(arch.wide[0], t) for t in peak)
        row(arch, f"rate{level and ' of '}{level}: vectors a cycle" + both * ", float32 and float64", "",
            {c: ", ".join(f"{rate[c, wide]:.1f}" for wide in (False, True)[:1 + both]) for c in cores})
        for package, name, title, _ in [k for k in arch.products if k[3] == level]:
            inner = loops(arch, code[package][name])
            bodies = [b for b in inner if adds(arch, b) == max(adds(arch, b) for b in inner)]
            body, count = bodies[0], sum(adds(arch, b) for b in bodies)
            parts = {c: count / sum(cycles(args, arch, c, b) for b in bodies) / rate[c, package == ROWS] for c in cores}
            poor += [f"{title}{level and ', '}{level} on {c}: {x:.0%}" for c, x in parts.items() if x < args.least]
            row(arch, title, f"{adds(arch, body)} of {len(body)}", {c: f"{x:.0%}" for c, x in parts.items()})
    if arch.streams:
        print("\n| bytes loaded and stored a cycle | a turn | " + " | ".join(arch.cores) + " "
            "|\n|-|-|" + "-|" * len(arch.cores))
    for package, name, title in arch.streams:
        body = max(loops(arch, code[package][name]), key=len)
        row(arch, title, f"{moved(body)} bytes, {len(body)}",
            {c: f"{moved(body) / cycles(args, arch, c, body):.1f}" for c in arch.cores})
    if arch.tiles:
        print("\n| AMX, a turn | products | loads of tiles | other instructions |\n|-|-|-|-|")
    for package, name, title in arch.tiles:
        counts = lambda body: [sum(t.startswith(i) for t in body) for i in ("tdpbf16ps", "tileload")]
        body = max(loops(arch, code[package][name]), key=counts)
        dots, loads = counts(body)
        print(f"| {title} | {dots} | {loads} | {len(body) - dots - loads} |")
    if poor:
        sys.exit("\nless than {:.0%}:\n{}".format(args.least, "\n".join(poor)))


if __name__ == "__main__":
    main()
