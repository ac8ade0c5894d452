package train

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/data"
)

// checkSets checks the sets that the program gives.
func (r *Run) checkSets() error {
	c := &r.Config
	if c.ValData != "" {
		return fmt.Errorf("validation images in %s beside Deps.Train: give them as Deps.Val", c.ValData)
	}
	if c.ValSplit != 0 {
		return fmt.Errorf("a validation split of %g of Deps.Train: give data.SplitByClass's parts as Deps.Train and Deps.Val", c.ValSplit)
	}
	for _, s := range []struct {
		name string
		set  data.Dataset
	}{{"Deps.Train", r.Deps.Train}, {"Deps.Val", r.Val}} {
		if s.set == nil {
			continue
		}
		n := len(s.set.Classes())
		if s.set.Len() == 0 {
			return fmt.Errorf("%s has no images", s.name)
		}
		for i := range s.set.Len() {
			if l := s.set.Label(i); l < 0 || l >= n {
				return fmt.Errorf("%s: image %d, %s, has the label %d: there are %d classes", s.name, i, s.set.Name(i), l, n)
			}
		}
	}
	if r.Val != nil {
		if !slices.Equal(r.Val.Classes(), r.Deps.Train.Classes()) {
			return errors.New("Deps.Val has other classes than Deps.Train")
		}
		if a, b := r.Deps.Train.Channels(), r.Val.Channels(); a != b {
			return fmt.Errorf("Deps.Val has %d channels, Deps.Train %d", b, a)
		}
	}
	return nil
}
