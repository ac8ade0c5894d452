package evaluate

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"onlinerna/data"
	"onlinerna/data/augment"
	"onlinerna/data/gallery"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// A Predictor names the classes of images by weights.
type Predictor struct {
	Meta     network.Meta
	Net      *network.Network
	Channels int                           // of the net's images
	Name     func(class int) gallery.Guess // without a probability

	photos bool // the net is one for photos
	closers
}

// A Prediction is an image with its most probable classes, or its numbers. Classes that a multi-label net finds come
// first, and all of them.
type Prediction struct {
	Path    string          `json:"path"`
	Guesses []gallery.Guess `json:"classes,omitempty"`
	Numbers []Number        `json:"numbers,omitempty"`
}

// Number is a predicted number of a regression.
type Number struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Prediction describes an image by the values that network.Meaning.Values gives for it.
func (p *Predictor) Prediction(path string, values []float64, top int) Prediction {
	x := Prediction{Path: path}
	switch m := &p.Meta.Meaning; m.Task {
	case data.Regression:
		for k, v := range values {
			x.Numbers = append(x.Numbers, Number{p.Name(k).Name, v})
		}
	case data.MultiLabel:
		x.Guesses = gallery.Best(values, len(values), p.Name)
		found := 0
		for i := range x.Guesses {
			g := &x.Guesses[i]
			g.Threshold = m.Threshold(g.Class)
			shown := g.Probability >= g.Threshold
			if g.Shown = &shown; shown {
				found++
			}
		}
		slices.SortStableFunc(x.Guesses, func(a, b gallery.Guess) int {
			rank := map[bool]int{true: 0, false: 1}
			return rank[*a.Shown] - rank[*b.Shown]
		})
		x.Guesses = x.Guesses[:max(found, min(top, len(x.Guesses)))]
	default:
		x.Guesses = gallery.Best(values, top, p.Name)
	}
	return x
}

// OpenPredictor opens the weights and a net for them. Weights that do not say how images are normalised have the usual
// way of the set that images, if not nil, returns for a number of channels. It logs which state dict it took.
func (o *Options) OpenPredictor(log io.Writer, images func(channels int) (data.Dataset, error)) (_ *Predictor,
	err error) {
	file, meta, err := o.OpenWeights(log)
	if err != nil {
		return nil, err
	}
	p := &Predictor{Meta: meta, closers: closers{file.Close}}
	if err := p.open(o, file, images, log); err != nil {
		return nil, p.close(err)
	}
	return p, nil
}

func (p *Predictor) open(o *Options, file *statedict.File, images func(channels int) (data.Dataset, error),
	log io.Writer) error {
	m, outputs, channels, err := NetOf(file, &p.Meta)
	if err != nil {
		return err
	}
	p.Channels, p.photos, p.Name = channels, m.Config.Size > PhotoSize, gallery.Namer(p.Meta.Classes, outputs)
	if p.Meta.Mean == nil || p.Meta.Std == nil || p.Meta.Kind == "" && p.photos || images != nil {
		if err := p.fill(o, images); err != nil {
			return err
		}
	}
	dev, err := o.Open(nil, o.Threads)
	if err != nil {
		return err
	}
	p.closers = append(p.closers, dev.Close)
	if p.Net, err = network.Blank(dev, p.Meta.Model, p.Meta.Config(outputs, channels)); err != nil {
		return err
	}
	p.closers = append(p.closers, p.Net.Close)
	p.Net.Meaning, p.Net.Fixed = p.Meta.Meaning, true
	return o.load(p.Net, file, log)
}

// fill completes the metadata of weights that do not say how images are normalised.
func (p *Predictor) fill(o *Options, images func(channels int) (data.Dataset, error)) error {
	if images == nil && !p.photos {
		return fmt.Errorf("%s does not say how images are normalised: name --mean and --std, as 0 and 1 for none", o.Weights)
	}
	var set data.Dataset
	var err error
	if images != nil {
		set, err = images(p.Channels)
	}
	if err != nil {
		return err
	}
	profile, err := p.profile(set)
	if err == nil {
		Fill(&p.Meta, profile)
	}
	return err
}

// Close releases the net, its device and the weights.
func (p *Predictor) Close() error { return p.close(nil) }

// profile is the preparation of a set. A set that cannot be read is one of photos: its loader names the images.
func (p *Predictor) profile(set data.Dataset) (data.Profile, error) {
	if !p.photos {
		if profile, err := data.ProfileOf(set); err == nil {
			return profile, nil
		}
	}
	return PhotoProfile()
}

// Transform returns the transform for the images of a set.
func (p *Predictor) Transform(set data.Dataset) (augment.Transform, error) {
	profile, err := p.profile(set)
	if err != nil {
		return nil, err
	}
	return profile.Evaluation(data.EvalOptions{Size: p.Meta.ImageSize, Resize: p.Meta.ValResize,
		Interpolation: p.Meta.Interpolation})
}

// Fixed reports whether the transform is the same for all sets.
func (p *Predictor) Fixed() bool { return p.photos || p.Meta.ValResize > 0 }

// Predict returns the most probable classes of a set's images, in its order. A net with further inputs takes them from a
// data.Extended. Predict logs images that cannot be read, and
// returns their number.
func (p *Predictor) Predict(ctx context.Context, set data.Dataset, top int, o data.LoaderOptions, log io.Writer,
	each func(i int, x Prediction)) (list []Prediction, bad int, err error) {
	if err := p.Net.CheckInputs(set); err != nil {
		return nil, 0, err
	}
	transform, err := p.Transform(set)
	if err != nil {
		return nil, 0, err
	}
	o.MaxBad = data.AllBad
	o.Log = func(format string, args ...any) { bad++; fmt.Fprintf(log, format+"\n", args...) }
	loader, err := data.NewLoader(set, transform, o)
	if err != nil {
		return nil, 0, err
	}
	err = p.Net.Probabilities(ctx, loader, func(i int, values []float64) error {
		if slices.ContainsFunc(values, func(x float64) bool { return math.IsNaN(x - x) }) { // finite weights may overflow
			return fmt.Errorf("%s: the net's outputs are not finite", set.Name(i))
		}
		x := p.Prediction(set.Name(i), values, top)
		list = append(list, x)
		each(i, x)
		return nil
	})
	return list, bad, err
}
