package train

import (
	"fmt"
	"slices"
	"strings"

	"onlinerna/train/network"
)

// loadInit reads the weights to start from. A last layer of another size stays as it is.
func (r *Run) loadInit() error {
	c := &r.Config
	l, err := r.Net.Load(c.Init, network.LoadOptions{Key: c.InitKey, FreshHead: true})
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	if l.Found != "" {
		r.note("initial weights: %s", l.Found)
	}
	others := len(l.Classes) > 0 && !slices.Equal(l.Classes, c.Classes)
	if l.Fresh == nil && !others && r.ownHead && c.HeadRate > 0 { // the head is trained, too
		c.HeadRate = 0
		r.setRates()
	}
	switch {
	case l.Fresh != nil:
		r.note("initial weights: %s, all but the last layer, which starts fresh with %d outputs: %s", c.Init, c.NumClasses, strings.Join(l.Fresh, ", "))
	case others:
		r.note("initial weights: %s, with the last layer, though its classes are others than those of %s", c.Init, c.Data)
	default:
		r.note("initial weights: %s", c.Init)
	}
	return nil
}
