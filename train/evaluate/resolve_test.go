package evaluate

import (
	"testing"

	_ "onlinerna/nn/zoo"
	"onlinerna/train/network"
)

// Weights of one net that are asked for as another, for images of another size, are taken for images of that size.
func TestOtherModel(t *testing.T) {
	for _, c := range []struct {
		file, model string
		size        int // of images
	}{
		{"vit_base_patch16_224", "vit_base_patch16_384", 0},
		{"vit_base_patch16_224", "vit_base_patch16_224", 200},
		{"vit_base_patch32_clip_224", "vit_base_patch32_clip_quickgelu_224", 200}, // trained with other images than usual
		{"wide_resnet50_2", "timm/none", 200},
		{"unknown", "vit_base_patch16_384", 200},
	} {
		m := network.Meta{Model: c.file, ImageSize: 200, ValResize: 240}
		o := Options{Model: c.model}
		if err := o.resolve(nil, &m); err != nil || m.ImageSize != c.size || (m.ValResize == 0) != (c.size == 0) {
			t.Errorf("%s as %s: size %d, resized to %d, %v", c.file, c.model, m.ImageSize, m.ValResize, err)
		}
	}
}
