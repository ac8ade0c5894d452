package train

import (
	"cmp"
	"errors"
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
	meta, a, said, err := netOf(f, c.Init)
	if err != nil && meta.Model == "" && meta.Unoffered() == "" {
		hint := "name the model, or the nearest one to see how it differs"
		if len(network.Identify(f)) > 1 {
			hint = "give --model, one of these"
		}
		err = fmt.Errorf("%w; %s", err, hint)
	}
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	c.Model, c.BlurPool = a.Name, c.BlurPool || meta.BlurPool
	if c.ImageSize == 0 {
		c.ImageSize = cmp.Or(meta.ImageSize, a.Size)
	}
	c.note("the net is %s at %d×%d pixels, as %s", c.Model, c.ImageSize, c.ImageSize, said)
	return nil
}

// loadInit reads the initial weights. A last layer of another size or task keeps its random initialisation.
func (r *Run) loadInit() error {
	c := &r.Resolved
	l, err := r.Net.Load(c.Init, network.LoadOptions{Key: c.InitKey, FreshHead: true})
	if err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	if err := r.Net.CheckFinite(c.Init, c.InitKey); err != nil {
		return fmt.Errorf("initial weights: %w", err)
	}
	if l.Found != "" {
		c.note("initial weights: %s", l.Found)
	}
	for _, more := range []string{l.Resized, l.Doubt, l.Uncropped()} {
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

// netOf returns the description of weights and their net: that which the file names, else that with its tensors. said
// tells which.
func netOf(f *statedict.File, path string) (meta network.Meta, a nn.Architecture, said string, err error) {
	if kind, what := f.Contents(); kind != statedict.Weights {
		return meta, a, "", fmt.Errorf("%s %s", path, what)
	}
	if meta, err = network.MetaOf(f); err != nil {
		return meta, a, "", err
	}
	said = path + " says"
	if meta.Model == "" {
		names := network.Identify(f)
		switch un := meta.Unoffered(names...); {
		case un != "":
			return meta, a, "", fmt.Errorf("%s: %s", path, un)
		case len(names) == 0:
			return meta, a, "", fmt.Errorf("%s has the tensors of none of the models: rna inspect lists them", path)
		case len(names) == 1:
			meta.Model, said = names[0], "the tensors of "+path+" show"
		default:
			return meta, a, "", fmt.Errorf("%s has the tensors of %s alike", path, strings.Join(names, " and "))
		}
	}
	if a, err = nn.Lookup(meta.Model); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return meta, a, said, err
}

// openTeacher puts the teacher beside the network.
func (r *Run) openTeacher() error {
	c := &r.Resolved
	if c.Teacher == "" {
		return nil
	}
	t, meta, err := r.readTeacher()
	if err != nil {
		return fmt.Errorf("the teacher: %w", err)
	}
	if err = t.CheckInputs(r.in.set); err == nil {
		err = r.Net.Teach(t)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("the teacher %s: %w", c.Teacher, err), t.Close())
	}
	if r.teacher, err = t.Fingerprint(); err != nil {
		return err
	}
	c.note("the teacher is %s of %s", meta.Model, c.Teacher)
	if meta.ImageSize > 0 && meta.ImageSize != c.ImageSize {
		c.note("the teacher saw images of %d×%d pixels, and sees %d×%[3]d", meta.ImageSize, meta.ImageSize, c.ImageSize)
	}
	if len(meta.Classes) > 0 && !slices.Equal(meta.Classes, c.Classes) {
		c.note("the teacher names its classes otherwise than %s", c.Data)
	}
	return nil
}

// readTeacher opens the teacher's network for images of the run.
func (r *Run) readTeacher() (t *network.Network, meta network.Meta, err error) {
	c, channels := &r.Resolved, r.in.set.Channels()
	f, err := statedict.Open(c.Teacher, "")
	if err != nil {
		return nil, meta, fmt.Errorf("%w: name the place of its weights by --teacher", err)
	}
	defer f.Close()
	meta, a, _, err := netOf(f, c.Teacher)
	if err != nil {
		return nil, meta, err
	}
	if n := len(meta.Mean); n > 0 && n != channels {
		return nil, meta, fmt.Errorf("%s takes images of %d channels, and those of %s have %d", c.Teacher, n, c.Data, channels)
	}
	if reordered(meta.Classes, c.Classes) {
		return nil, meta, fmt.Errorf("%s has the classes of %s in another order: name them in the teacher's by --classes",
			c.Teacher, c.Data)
	}
	model, err := a.Model(nn.Config{Batch: 1, Mode: nn.Eval, Channels: channels, BlurPool: meta.BlurPool})
	if err != nil {
		return nil, meta, err
	}
	config := meta.Config(network.Outputs(f, model), channels)
	config.Size = c.ImageSize
	if len(config.Mean) == 0 || len(config.Std) == 0 {
		config.Mean, config.Std = c.Mean, c.Std
		if len(a.Mean) == channels {
			config.Mean, config.Std = a.Mean, a.Std
		}
	}
	if t, err = network.Blank(r.Device, a.Name, config); err != nil {
		return nil, meta, err
	}
	l, err := t.Load(c.Teacher, network.LoadOptions{})
	if t.Meaning = l.Meaning; err == nil {
		err = t.CheckFinite(c.Teacher, "")
	}
	if err != nil {
		return nil, meta, errors.Join(err, t.Close())
	}
	return t, meta, nil
}

// reordered reports whether two lists have the same names in another order.
func reordered(a, b []string) bool {
	return !slices.Equal(a, b) && slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
