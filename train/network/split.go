package network

import (
	"fmt"

	"onlinerna/data"
)

// Split says on which images weights were trained. It is stored with them, so that an evaluation leaves these out.
type Split struct {
	Data     string  `json:"data"` // place of the images, as the run was given it
	ValData  string  `json:"val_data,omitempty"`
	ValSplit float64 `json:"val_split,omitempty"` // share validated on: see data.SplitByClass
	Holdout  float64 `json:"holdout,omitempty"`   // share of the others that was held out, which Seed chose
	Seed     uint64  `json:"seed,omitempty"`

	// Images and Names are the number and the data.Fingerprint of all training images, with those split off and held out, empty where it is not known.
	Images int    `json:"images,omitempty"`
	Names  string `json:"names,omitempty"`
}

// Count notes the images of sets, which together are those before any split.
func (s *Split) Count(sets ...data.Dataset) {
	var sum uint64
	s.Images = 0
	for _, set := range sets {
		s.Images += set.Len()
		sum += data.Fingerprint(set)
	}
	s.Names = fmt.Sprintf("%016x", sum)
}

// Is says whether a set has the images that the split was made of, by their names and classes.
func (s *Split) Is(set data.Dataset) bool {
	return s.Names != "" && s.Images == set.Len() && s.Names == fmt.Sprintf("%016x", data.Fingerprint(set))
}
