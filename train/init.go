package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"onlinerna/nn"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// initNet takes the net and image size from the initial weights if the config names none.
func (r *Run) initNet() error {
	c := &r.Resolved
	if c.Init == "" || c.Model != "" {
		return nil
	}
	f, err := statedict.Open(c.Init, c.InitKey)
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	defer f.Close()
	if kind, what := f.Contents(); kind != statedict.Weights {
		return fmt.Errorf("initial weights: %s %s", c.Init, what)
	}
	meta, err := network.MetaOf(f)
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	said := c.Init + " says"
	if meta.Model == "" {
		names := network.Identify(f)
		switch len(names) {
		case 0:
			return fmt.Errorf("initial weights: %s has the tensors of none of the models: rna inspect lists them; name the "+
				"nearest model to see how it differs", c.Init)
		case 1:
			meta.Model, said = names[0], "the tensors of "+c.Init+" show"
		default:
			return fmt.Errorf("initial weights: %s has the tensors of %s alike: name one as the model", c.Init,
				strings.Join(names, " and "))
		}
	}
	a, err := nn.Lookup(meta.Model)
	if err != nil {
		return fmt.Errorf("initial weights: %s: %w", c.Init, err)
	}
	c.Model, c.BlurPool = a.Name, c.BlurPool || meta.BlurPool
	if c.ImageSize == 0 {
		c.ImageSize = cmp.Or(meta.ImageSize, a.Size)
	}
	c.note("the net is %s at %d×%d pixels, as %s", c.Model, c.ImageSize, c.ImageSize, said)
	return nil
}

// loadInit reads the initial weights. A last layer of another size keeps its random initialisation.
func (r *Run) loadInit() error {
	c := &r.Resolved
	l, err := r.Net.Load(c.Init, network.LoadOptions{Key: c.InitKey, FreshHead: true})
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	if name, err := r.Net.NonFinite(); err != nil {
		return fmt.Errorf("initial weights: %w", err)
	} else if name != "" {
		return fmt.Errorf("initial weights: %s: tensor %q has numbers that are not finite: choose other weights", c.Init, name)
	}
	if l.Found != "" {
		c.note("initial weights: %s", l.Found)
	}
	for _, more := range []string{l.Resized, l.Doubt} {
		if more != "" {
			c.note("initial weights: %s", more)
		}
	}
	others := len(l.Classes) > 0 && !slices.Equal(l.Classes, c.Classes)
	if l.Fresh == nil && !others && c.headByDefault && c.HeadRate > 0 { // the head is trained, too
		c.HeadRate = 0
		r.engine.setRates()
	}
	switch {
	case l.Fresh != nil:
		c.note("initial weights: %s, all but the last layer, which starts fresh with %d outputs: %s", c.Init, c.NumClasses,
			strings.Join(l.Fresh, ", "))
	case others:
		c.note("initial weights: %s, with the last layer, though its classes are others than those of %s", c.Init, c.Data)
	default:
		c.note("initial weights: %s", c.Init)
	}
	return nil
}
