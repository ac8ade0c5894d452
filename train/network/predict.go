package network

import (
	"context"
	"fmt"
	"image"
	"math"

	"onlinerna/data"
)

// Predict returns the probability of each class, or each number, for an image of any size, resized and cropped as the
// last loaded weights say, or by default. inputs are the net's further inputs by name, nil without.
func (n *Network) Predict(img image.Image, inputs map[string][]float32) ([]float64, error) {
	set, err := data.FromImages([]string{""}, []image.Image{img}, []int{0})
	for name, row := range inputs {
		if err == nil {
			set, err = data.WithInput(set, name, [][]float32{row})
		}
	}
	if err != nil {
		return nil, err
	}
	if want := n.model.Config.Channels; set.Channels() > want {
		return nil, fmt.Errorf("%s sees gray images: give an *image.Gray", n.arch)
	} else if set.Channels() < want {
		rgb := image.NewRGBA(img.Bounds())
		for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
			for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
				rgb.Set(x, y, img.At(x, y))
			}
		}
		return n.Predict(rgb, inputs)
	}
	profile, err := data.ProfileOf(set)
	if err != nil {
		return nil, err
	}
	o := n.seen
	o.Size = n.cfg.Size
	transform, err := profile.Evaluation(o)
	if err != nil {
		return nil, err
	}
	l, err := data.NewLoader(set, transform, data.LoaderOptions{Batch: 1, Workers: 1})
	if err != nil {
		return nil, err
	}
	var p []float64
	err = n.Probabilities(context.Background(), l, func(_ int, probabilities []float64) error {
		p = probabilities
		return nil
	})
	return p, err
}

// Probabilities calls each for every image of a loader with its index in the set and its Meaning.Values, such as class
// probabilities. It ignores labels.
func (n *Network) Probabilities(ctx context.Context, l *data.Loader, each func(i int, p []float64) error) error {
	k := n.model.Config.Classes
	means := n.Meaning
	n.Meaning = Meaning{} // images without targets
	defer func() { n.Meaning = means }()
	_, err := n.Tally(ctx, l, func(b *data.Batch, logits []float32) error {
		for i, index := range b.Index[:b.N] {
			if err := each(index, means.Values(logits[i*k:(i+1)*k])); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	return err
}

// Softmax returns the probabilities of logits.
func Softmax(logits []float32) []float64 {
	most := math.Inf(-1)
	for _, x := range logits {
		most = max(most, float64(x))
	}
	p, sum := make([]float64, len(logits)), 0.
	for i, x := range logits {
		p[i] = math.Exp(float64(x) - most)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
