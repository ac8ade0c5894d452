package train

import (
	"fmt"

	"onlinerna/data"
	"onlinerna/train/hook"
)

// Training is starved if it waits for images in starvedShare of the time since an epoch began, starvedSeconds or more.
const starvedShare, starvedSeconds = .2, 10

// warnStarved logs once that the loader is slower than the device, and how to make it faster.
func (r *Run) warnStarved(images int64, s hook.Seconds) {
	if r.starved || !r.Ranks.First() || starving(images, s, false) == "" {
		return
	}
	r.starved = true
	var scratch data.Scratch
	_, encoded, err := data.Encoded(r.in.set, 0, &scratch)
	r.log("%s", starving(images, s, encoded && err == nil))
}

// starving is the line about the time since an epoch began, with so many images, or empty.
func starving(images int64, s hook.Seconds, encoded bool) string {
	t := s.Data + s.Compute
	if t < starvedSeconds || s.Data < starvedShare*t {
		return ""
	}
	help := "more --workers or fewer augmentations make it faster"
	if encoded {
		help = "rna data pack with --size 256 or --raw 256 makes images that take less time to decode"
	}
	return fmt.Sprintf("Training waits for images in %.0f %% of the time: the loader feeds %.0f images/s, the device "+
		"takes about %.0f; %s; rna bench data and rna bench train measure them alone", 100*s.Data/t, float64(images)/t,
		float64(images)/max(s.Compute, 1e-3), help)
}
