// Package imaging decodes image files to PIL's pixels and resamples them like torchvision, in pure Go.
//
// Decode and Decoder equal PIL's Image.open(f).convert("RGB") or convert("L") with libjpeg-turbo, sample for sample:
//
//   - The content determines the format, not the name.
//   - JPEG: libjpeg's accurate integer inverse DCT, its "fancy" chroma upsampling (triangle filters for 4:2:2, 4:4:0
//     and 4:2:0, repetition for other ratios and for planes of one or two columns) and its fixed-point YCbCr
//     conversion. Grayscale, YCbCr, RGB, CMYK and YCCK; the last two are taken as inverted, as Adobe writes them and
//     PIL assumes. Sequential and progressive. EXIF orientation is ignored, as by torchvision's default loader.
//   - PNG: every colour type and depth, interlaced or not. Alpha and transparent colours are dropped. 16-bit RGB keeps
//     its high bytes, 16-bit gray is clipped at 255.
//   - WebP, BMP, TIFF and the first frame of a GIF, by other packages, whole at any box. Lossy WebP is converted as
//     libwebp does.
//
// This package refuses some files that libjpeg decodes: arithmetic coding, fractional sampling ratios, and damaged
// data, for which libjpeg only warns. A file that is cut short is an error, and so is an image of more than MaxPixels.
//
// Resizer is PIL's bilinear resize with a support that grows with the reduction, which torchvision calls antialias: the
// same coefficients in the same fixed point, across first and down second, rounded to 8 bits between. PIL did so in all
// versions up to 12; PIL 13 goes down first where the height shrinks by more than twice as many pixels as the width,
// which moves some samples by one level. CenterCropBox and ShorterSize round as torchvision.
//
// All results are exact integers: they depend neither on the machine nor on earlier uses of a Decoder or a Resizer.
package imaging
