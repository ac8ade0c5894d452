package network

import (
	"fmt"

	"onlinerna/data"
)

// Split identifies the images that weights were trained on. It is stored with them, so that an evaluation can exclude
// these images.
type Split struct {
	Data     string  `json:"data"` // path of the images, as given to the run
	ValData  string  `json:"val_data,omitempty"`
	ValSplit float64 `json:"val_split,omitempty"` // validation share: see data.SplitByClass
	Holdout  float64 `json:"holdout,omitempty"`   // share of the remaining images held out, chosen by Seed
	Seed     uint64  `json:"seed,omitempty"`

	// Images and Names are the number and the data.Fingerprint of all training images, including those split off and held
	// out; empty if unknown.
	Images int    `json:"images,omitempty"`
	Names  string `json:"names,omitempty"`
}

// Count records the images of sets, which together are all images before any split.
func (s *Split) Count(sets ...data.Dataset) {
	var sum uint64
	s.Images = 0
	for _, set := range sets {
		s.Images += set.Len()
		sum += data.Fingerprint(set)
	}
	s.Names = fmt.Sprintf("%016x", sum)
}

// Is reports whether set has the images that the split was made of, by their names and classes.
func (s *Split) Is(set data.Dataset) bool {
	return s.Names != "" && s.Images == set.Len() && s.Names == fmt.Sprintf("%016x", data.Fingerprint(set))
}
