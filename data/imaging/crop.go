package imaging

import (
	"fmt"
	"image"
	"math"
)

// Crop writes the pixels of src inside box to dst. Parts of box outside src are black, so a box that is
// larger than src pads it. dst must not be src.
func Crop(dst, src *Image, box image.Rectangle) error {
	if err := src.check(); err != nil {
		return err
	}
	if box.Empty() {
		return fmt.Errorf("crop to the empty box %v", box)
	}
	dst.Reset(box.Dx(), box.Dy(), src.Channels)
	in := box.Intersect(src.Bounds())
	if in != box {
		clear(dst.Pix)
	}
	n := in.Dx() * src.Channels
	for y := in.Min.Y; y < in.Max.Y; y++ {
		from := (y*src.Width + in.Min.X) * src.Channels
		to := ((y-box.Min.Y)*dst.Width + in.Min.X - box.Min.X) * src.Channels
		copy(dst.Pix[to:to+n], src.Pix[from:from+n])
	}
	return nil
}

// CenterCropBox returns the box that torchvision's CenterCrop((cropHeight, cropWidth)) takes from an image of
// width×height. If the image is smaller, the box reaches outside it and Crop pads it with black.
//
// On a side that is longer than the crop by d the offset is d/2, an odd d rounding to the even neighbour, as Python's
// round does; on one that is shorter by d, d/2 black pixels (rounded down) come before it.
func CenterCropBox(width, height, cropWidth, cropHeight int) image.Rectangle {
	x, y := centerOffset(width, cropWidth), centerOffset(height, cropHeight)
	return image.Rect(x, y, x+cropWidth, y+cropHeight)
}

func centerOffset(n, crop int) int {
	if crop > n {
		return -((crop - n) / 2)
	}
	return int(math.RoundToEven(float64(n-crop) / 2))
}
