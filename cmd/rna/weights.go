package main

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"strings"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// photoSize is the size of the input above which a net is one for photos, as ImageNet's.
const photoSize = 96

// netOf is the model that meta names, with the outputs of an open file of its weights and the channels of its images. The size of images is
// filled in.
func netOf(file *statedict.File, meta *network.Meta) (m *nn.Model, outputs, channels int, err error) {
	m, err = nn.Build(meta.Model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return nil, 0, 0, err
	}
	outputs, channels = network.Outputs(file, m), m.Config.Channels
	if len(meta.Mean) > 0 {
		channels = len(meta.Mean)
	}
	if outputs == 0 {
		return nil, 0, 0, fmt.Errorf("%s has no last layer as %s has: rna inspect shows what it holds", file.Path, meta.Model)
	}
	if len(meta.Classes) > outputs {
		return nil, 0, 0, fmt.Errorf("%d names of classes for %d outputs of %s", len(meta.Classes), outputs, file.Path)
	}
	if meta.ImageSize == 0 {
		meta.ImageSize = m.Config.Size
	}
	return m, outputs, channels, nil
}

// photoProfile is that of photos.
func photoProfile() (data.Profile, error) {
	photo, err := data.FromImages([]string{""}, []image.Image{image.NewRGBA(image.Rect(0, 0, 256, 192))}, []int{0})
	if err != nil {
		return data.Profile{}, err
	}
	return data.ProfileOf(photo)
}

// openWeights opens the file of the weights, says in which of its parts they are, and completes what it says of them by the options.
func (f *evalFlags) openWeights(log io.Writer) (*statedict.File, network.Meta, error) {
	run, err := findRun(f.weights)
	if err != nil {
		return nil, network.Meta{}, err
	}
	if run != nil {
		f.weights = run.file
	}
	file, err := statedict.Open(f.weights, f.key)
	if st, none := os.Stat(f.weights); err != nil && none == nil && st.IsDir() && strings.HasSuffix(err.Error(), "not a file") {
		err = fmt.Errorf("%w, and has no run in it: there is no config.json of one", err)
	}
	if err != nil {
		return nil, network.Meta{}, err
	}
	if kind, what := file.Contents(); kind != statedict.Weights {
		return nil, network.Meta{}, errors.Join(fmt.Errorf("%s %s", f.weights, what), file.Close())
	}
	if found := file.Found(); found != "" {
		fmt.Fprintln(log, found)
	}
	meta, err := network.MetaOf(file)
	if run != nil && err == nil {
		fmt.Fprintln(log, run.took(meta))
		if meta.Split == nil {
			meta.Split = run.split()
		}
		meta.Split = run.located(*meta.Split)
	}
	if err == nil {
		err = f.resolve(&meta)
	}
	if err != nil {
		return nil, meta, errors.Join(err, file.Close())
	}
	return file, meta, nil
}
