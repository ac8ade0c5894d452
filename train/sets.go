package train

import (
	"errors"
	"fmt"
	"slices"

	"onlinerna/data"
)

// checkSets checks the sets that a config brings.
func checkSets(c *Config) error {
	if c.ValData != "" {
		return fmt.Errorf("validation images in %s beside Config.Train: give them as Config.Val", c.ValData)
	}
	if c.ValSplit != 0 {
		return fmt.Errorf("a validation split of %g of Config.Train: give data.SplitByClass's parts as Config.Train and Config.Val", c.ValSplit)
	}
	for _, s := range []struct {
		name string
		set  data.Dataset
	}{{"Config.Train", c.Train}, {"Config.Val", c.Val}} {
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
	if c.Val != nil {
		if !slices.Equal(c.Val.Classes(), c.Train.Classes()) {
			return errors.New("Config.Val has other classes than Config.Train")
		}
		if a, b := c.Train.Channels(), c.Val.Channels(); a != b {
			return fmt.Errorf("Config.Val has %d channels, Config.Train %d", b, a)
		}
	}
	return nil
}
