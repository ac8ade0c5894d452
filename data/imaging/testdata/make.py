"""Small images and PIL's results: NAME.jpg or NAME.png is the input, NAME.rgb.png its convert("RGB"), NAME.l.png
its convert("L"), NAME.resized.png its resize of the box that the test names. Needs Pillow (13.0.0 wrote these) and
numpy; run in this folder. Inputs that PIL cannot write are put together here. Not from here are cifar-cat_0006.jpg,
of CIFAR-10, and its .eval.png, torchvision's Resize(256) and CenterCrop(224)."""
import io, struct, zlib
import numpy as np
from PIL import Image

rng = np.random.default_rng(1)
BOTH = "RGB", "L"


def scene(w, h):
    """Smooth colours, an edge and some noise, so that interpolation and rounding show."""
    y, x = np.mgrid[0:h, 0:w].astype(float)
    a = np.stack([127 + 120 * np.sin(x / 5), 127 + 120 * np.cos(y / 4 + x / 9), 255 * (x + y) / max(w + h - 2, 1)], -1)
    a[(x > w * 0.6) & (y < h * 0.4)] = (250, 20, 40)
    a += rng.normal(0, 12, a.shape)
    return Image.fromarray(np.clip(a, 0, 255).astype(np.uint8))


def write(name, data, modes=("RGB",)):
    with open(name, "wb") as f:
        f.write(data)
    for mode in modes:
        im = Image.open(io.BytesIO(data)).convert(mode)
        im.info.clear()
        im.save(f"{name.rsplit('.', 1)[0]}.{mode.lower()}.png", optimize=True)


def jpeg(im, **options):
    b = io.BytesIO()
    im.save(b, "JPEG", **{"quality": 85, **options})
    return b.getvalue()


def resample(data, factors, w, h):
    """Claims another sampling and size. That is another image, but a valid one where the blocks are as many."""
    i = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    b = bytearray(data)
    b[i + 5:i + 9] = struct.pack(">HH", h, w)
    for k, f in enumerate(factors):
        b[i + 11 + 3 * k] = f
    return bytes(b)


# Sampling, at sizes that are not whole blocks and down to single samples.
for progressive in (False, True):
    end = "-progressive.jpg" if progressive else ".jpg"
    for name, sub in (("444", 0), ("422", 1), ("420", 2)):
        write(f"sampling-{name}{end}", jpeg(scene(37, 27), subsampling=sub, progressive=progressive))
    write(f"sampling-440{end}", resample(jpeg(scene(37, 27), subsampling=1, progressive=progressive), (0x12, 0x11, 0x11), 27, 37))
    write(f"sampling-411{end}", resample(jpeg(scene(29, 30), subsampling=2, progressive=progressive), (0x41, 0x11, 0x11), 29, 30))
    write(f"sampling-114{end}", resample(jpeg(scene(29, 30), subsampling=2, progressive=progressive), (0x14, 0x11, 0x11), 29, 30))
for w, h in ((1, 1), (3, 2), (4, 5), (5, 4)):
    write(f"tiny-{w}x{h}-420.jpg", jpeg(scene(w, h), subsampling=2))
    write(f"tiny-{w}x{h}-422.jpg", jpeg(scene(w, h), subsampling=1))

# The other coding options.
write("gray.jpg", jpeg(scene(37, 27).convert("L")), BOTH)
write("gray-progressive.jpg", jpeg(scene(27, 37).convert("L"), progressive=True))
write("low-quality.jpg", jpeg(scene(40, 30), quality=3))
write("high-quality.jpg", jpeg(scene(40, 30), quality=100, optimize=True))
write("restart.jpg", jpeg(scene(61, 45), restart_marker_blocks=2))
Image.open("restart.jpg").crop((7, 3, 58, 41)).resize((23, 29), Image.BILINEAR).save("restart.resized.png")
write("restart-progressive.jpg", jpeg(scene(61, 45), restart_marker_rows=1, progressive=True))
write("rgb.jpg", jpeg(scene(37, 27), keep_rgb=True), BOTH)
exif = Image.Exif()
exif[0x0112] = 6
write("exif-rotated.jpg", jpeg(scene(37, 27), exif=exif))
write("extraneous.jpg", (lambda b: b[:20] + b"\x00\x01\x02\xff" + b[20:] + b"trailer")(jpeg(scene(37, 27))))

# Four components. PIL writes CMYK with an Adobe segment: its transform byte is changed to 2 for YCCK; without the segment
# the components are CMYK.
ink = Image.fromarray(rng.integers(0, 256, (5, 7, 4), dtype=np.uint8), "CMYK").resize((37, 27), Image.BICUBIC)
cmyk = jpeg(ink)
adobe = cmyk.index(b"\xff\xee\x00\x0eAdobe")
write("cmyk.jpg", cmyk, BOTH)
write("cmyk-progressive.jpg", jpeg(ink, progressive=True))
write("cmyk-plain.jpg", cmyk[:adobe] + cmyk[adobe + 16:])
write("ycck.jpg", cmyk[:adobe + 15] + b"\x02" + cmyk[adobe + 16:])


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(w, h, depth, colour, rows, extra=b"", interlace=0):
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlace))
    return b"\x89PNG\r\n\x1a\n" + head + extra + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b"")


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def noise(w, h, depth, colour):
    """Rows of random bytes: any bits are valid samples, but for palette indices, which 8-bit ones here all are."""
    return [rng.bytes((w * CHANNELS[colour] * depth + 7) // 8) for _ in range(h)]


def adam7(w, h, depth, colour):
    rows = []
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        pw, ph = (w - x0 + dx - 1) // dx, (h - y0 + dy - 1) // dy
        if pw > 0 and ph > 0:
            rows += noise(pw, ph, depth, colour)
    return rows


palette = chunk(b"PLTE", rng.bytes(3 * 256))
for colour, depths in ((0, (1, 2, 4, 8, 16)), (2, (8, 16)), (3, (1, 2, 4, 8)), (4, (8, 16)), (6, (8, 16))):
    for depth in depths:
        extra = chunk(b"PLTE", rng.bytes(3 << depth)) if colour == 3 else b""
        write(f"png-{colour}-{depth}.png", png(19, 13, depth, colour, noise(19, 13, depth, colour), extra), BOTH)
write("png-interlaced-2-8.png", png(19, 13, 8, 2, adam7(19, 13, 8, 2), interlace=1))
write("png-interlaced-0-16.png", png(19, 13, 16, 0, adam7(19, 13, 16, 0), interlace=1))
write("png-interlaced-3-4.png", png(19, 13, 4, 3, adam7(19, 13, 4, 3), chunk(b"PLTE", rng.bytes(48)), 1))

# Transparent values and palette entries keep their colours.
write("png-trns-gray.png", png(19, 13, 4, 0, noise(19, 13, 4, 0), chunk(b"tRNS", struct.pack(">H", 7))))
write("png-trns-gray16.png", png(7, 1, 16, 0, [struct.pack(">7H", 0, 1, 200, 255, 256, 300, 65535)], chunk(b"tRNS", struct.pack(">H", 200))))
write("png-trns-rgb.png", png(19, 13, 8, 2, noise(19, 13, 8, 2), chunk(b"tRNS", struct.pack(">3H", 1, 2, 3))))
write("png-trns-palette.png", png(19, 13, 8, 3, noise(19, 13, 8, 3), palette + chunk(b"tRNS", rng.bytes(200))))
write("png-short-palette.png", png(6, 1, 8, 3, [bytes(range(6))], chunk(b"PLTE", bytes(range(10, 70, 5)))))

# Formats that other packages decode.
for name, options in (("lossy", {"quality": 80}), ("lossless", {"lossless": True})):
    for w, h in ((37, 27), (20, 16)):
        b = io.BytesIO()
        scene(w, h).save(b, "WEBP", **options)
        write(f"webp-{name}-{w}x{h}.webp", b.getvalue(), BOTH)
alpha = scene(37, 27).convert("RGBA")
alpha.putalpha(Image.fromarray((np.mgrid[0:27, 0:37][1] * 6).astype(np.uint8)))
b = io.BytesIO()
alpha.save(b, "WEBP", quality=80, exact=True)
write("webp-alpha.webp", b.getvalue())
for end, format, options, modes in (("bmp", "BMP", {}, ("RGB", "L", "P")), ("gif", "GIF", {}, ("P", "L")),
                                    ("tiff", "TIFF", {}, ("RGB", "L", "P")), ("tiff", "TIFF", {"compression": "tiff_lzw"}, ("RGB",))):
    for mode in modes:
        b = io.BytesIO()
        im = scene(37, 27)
        (im.quantize(32) if mode == "P" else im.convert(mode)).save(b, format, **options)
        write(f"{end}-{mode.lower()}{'-lzw' if options else ''}.{end}", b.getvalue(), BOTH)
