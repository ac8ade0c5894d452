package evaluate

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/data/format"
	"onlinerna/nn"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// PhotoSize is the input size above which a net is considered one for photos, as ImageNet's.
const PhotoSize = 96

// NetOf returns the model that meta names, the outputs in an open file of its weights and the channels of its images.
// It fills in the image size.
func NetOf(file *statedict.File, meta *network.Meta) (m *nn.Model, outputs, channels int, err error) {
	m, err = nn.Build(meta.Model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return nil, 0, 0, err
	}
	outputs, channels = network.Outputs(file, m), m.Config.Channels
	if len(meta.Mean) > 0 {
		channels = len(meta.Mean)
	}
	if outputs == 0 {
		if of := network.Others(file, meta.Model); of != "" {
			return nil, 0, 0, fmt.Errorf("%s: the weights do not fit %s%s", file.Path, meta.Model, of)
		}
		return nil, 0, 0, fmt.Errorf("%s has no last layer as %s has: rna inspect shows its tensors, rna train --init makes "+
			"a new one", file.Path, meta.Model)
	}
	if len(meta.Classes) > outputs {
		return nil, 0, 0, fmt.Errorf("%d names of classes for %d outputs of %s", len(meta.Classes), outputs, file.Path)
	}
	if meta.ImageSize == 0 {
		meta.ImageSize = m.Config.Size
	}
	return m, outputs, channels, nil
}

// PhotoProfile returns the data profile of photos.
func PhotoProfile() (data.Profile, error) {
	photo, err := data.FromImages([]string{""}, []image.Image{image.NewRGBA(image.Rect(0, 0, 256, 192))}, []int{0})
	if err != nil {
		return data.Profile{}, err
	}
	return data.ProfileOf(photo)
}

// OpenWeights opens the file of the weights, logs its state dict, and completes its metadata from the options.
func (o *Options) OpenWeights(log io.Writer) (*statedict.File, network.Meta, error) {
	run, err := FindRun(o.Weights)
	if err != nil {
		return nil, network.Meta{}, err
	}
	if run != nil {
		o.Weights = run.File
	}
	file, err := statedict.Open(o.Weights, o.Key)
	if st, none := os.Stat(o.Weights); err != nil && none == nil && st.IsDir() && strings.HasSuffix(err.Error(),
		"not a file") {
		err = fmt.Errorf("%w, and has no run in it: there is no config.json of one", err)
	}
	if err != nil {
		return nil, network.Meta{}, err
	}
	if kind, what := file.Contents(); kind != statedict.Weights {
		return nil, network.Meta{}, errors.Join(fmt.Errorf("%s %s", o.Weights, what), file.Close())
	}
	if found := file.Found(); found != "" {
		fmt.Fprintln(log, found)
	}
	meta, err := network.MetaOf(file)
	if run != nil && err == nil {
		fmt.Fprintln(log, run.took(meta))
		if meta.Split == nil {
			meta.Split = run.Split()
		}
		meta.Split = run.Located(*meta.Split)
	}
	if err == nil {
		err = o.resolve(file, &meta)
	}
	if err != nil {
		return nil, meta, errors.Join(err, file.Close())
	}
	return file, meta, nil
}

// outputs returns the number of classes of the net: from the command line, else the size of the last layer in the file,
// else the number of classes of the data.
func (o *Options) outputs(file *statedict.File, model string, classes int) (int, error) {
	if o.NumClasses > 0 {
		return o.NumClasses, nil
	}
	m, err := nn.Build(model, nn.Config{Batch: 1, Mode: nn.Eval})
	if err != nil {
		return 0, err
	}
	n := network.Outputs(file, m)
	switch {
	case n == 0:
		return classes, nil // loading reports misfits
	case n >= classes:
		return n, nil
	}
	return 0, fmt.Errorf("%s has %d outputs, the data %d classes: evaluate on data of the classes it was trained on, "+
		"or name them by --classes", o.Weights, n, classes)
}

// resolve lets the command line override the file.
func (o *Options) resolve(file *statedict.File, m *network.Meta) error {
	if o.Model != "" {
		if resized(m.Model, o.Model) {
			m.ImageSize, m.ValResize = 0, 0
		}
		m.Model = o.Model
	}
	if m.Model == "" {
		names := network.Identify(file)
		if un := m.Unoffered(names...); un != "" {
			return fmt.Errorf("%s: %s", o.Weights, un)
		}
		hint := ""
		if len(names) > 0 {
			hint = ", as " + strings.Join(names, " or ") + ", whose tensors it has"
		}
		return fmt.Errorf("%s does not name its model: name it by --model%s", o.Weights, hint)
	}
	if o.Classes != "" {
		names, err := format.ReadClasses(o.Classes)
		if err != nil {
			return err
		}
		m.Classes = names
	}
	if o.ImageSize > 0 && o.ImageSize != m.ImageSize {
		m.ImageSize, m.ValResize = o.ImageSize, 0 // in proportion
	}
	if o.ValResize > 0 {
		m.ValResize = o.ValResize
	}
	if o.Interpolation != "" {
		m.Interpolation = o.Interpolation
	}
	if o.Mean != nil {
		m.Mean = o.Mean
	}
	if o.Std != nil {
		m.Std = o.Std
	}
	return nil
}

// resized reports whether a model is for images of another size than the one that a file names.
func resized(named, model string) bool {
	a, err := nn.Lookup(model)
	b, unknown := nn.Lookup(named)
	return err == nil && unknown == nil && a.Size != b.Size
}

// Fill sets unknown values from the data's profile. Photos are prepared as for the net's published weights: those of
// another program are resized as these, too.
func Fill(m *network.Meta, p data.Profile) {
	if photos, err := PhotoProfile(); err == nil && slices.Equal(p.Mean, photos.Mean) {
		if a, err := nn.Lookup(m.Model); err == nil && a.Mean != nil {
			p.Mean, p.Std = a.Mean, a.Std
			if p.Name == photos.Name {
				p.Size = a.Size
				m.Published(a)
			}
		}
	}
	if m.ImageSize == 0 {
		m.ImageSize = p.Size
	}
	if m.Mean == nil {
		m.Mean = p.Mean
	}
	if m.Std == nil {
		m.Std = p.Std
	}
}
