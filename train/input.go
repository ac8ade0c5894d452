package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"slices"
	"strings"

	"onlinerna/data"
	"onlinerna/data/augment"
	"onlinerna/data/gallery"
	"onlinerna/data/random"
	"onlinerna/internal/text"
	"onlinerna/nn/device"
	"onlinerna/train/network"
)

// Streams of randomness: loaders of a run with different purposes.
const (
	trainStream = iota
	statsStream
	heldStream
)

// input holds the images of a run: the sets, and the loaders that make batches of them. A rank loads its own share of
// each.
type input struct {
	set, valSet data.Dataset   // as opened; valSet may be nil
	opened      bool           // the run opened the sets, and closes them
	profile     data.Profile   // of the training set
	split       *network.Split // nil for images from Deps

	train, stats *data.Loader // of the current epoch
	val, held    *data.Loader // nil without such images
	heldSize     int          // number of held-out images
	sized        map[int]sizedLoaders
	few          *data.Loader // of a few images of trained, as the first epoch has them; nil unless they are wanted
	trained      data.Dataset // the set without the images that are held out
	are          identities

	*Deps
	unreadable map[string]bool // logged lines; nil for none
}

// identities identify the sets of runs, in checkpoints and on ranks.
type identities struct {
	Train data.Identity `json:"train"`
	Val   data.Identity `json:"val"`
}

// differ describes how the sets differ from a checkpoint's, "" if they are the same.
func (a *identities) differ(b *identities) string {
	var list []string
	for _, x := range []struct{ of, what string }{{"training", a.Train.Differ(b.Train)},
		{"validation", a.Val.Differ(b.Val)}} {
		if x.what != "" {
			list = append(list, x.of+" images: "+x.what)
		}
	}
	return strings.Join(list, "; ")
}

// sizedLoaders yield training images of one size.
type sizedLoaders struct{ train, stats *data.Loader }

// open takes the sets from Deps, or opens those that the Spec names.
func (in *input) open(c *Resolved) (err error) {
	if d := in.Deps; d.Train != nil {
		if err := checkSets(c, d); err != nil {
			return err
		}
		in.set, in.valSet = d.Train, d.Val
		c.Data = cmp.Or(c.Data, "images of the program's")
	} else if d.Val != nil {
		return errors.New("validation images without training images: give Deps.Train, too")
	} else {
		c.Data = cmp.Or(c.Data, "glyphs")
		if in.set, in.valSet, err = data.Open(c.Data, data.Options{Val: c.ValData, ValSplit: c.ValSplit,
			Classes: c.Classes, Task: c.Task}); err != nil {
			return err
		}
		in.opened = true
		in.split = splitOf(&c.Spec, in.set, in.valSet)
	}
	if in.profile, err = data.ProfileOf(in.set); err != nil {
		return err
	}
	in.are = identities{data.IdentityOf(in.set), data.IdentityOf(in.valSet)}
	return nil
}

// checkSets checks the sets from Deps.
func checkSets(c *Resolved, d *Deps) error {
	if c.ValData != "" {
		return fmt.Errorf("validation images in %s beside Deps.Train: give them as Deps.Val", c.ValData)
	}
	if c.ValSplit != 0 {
		return fmt.Errorf("a validation split of %g of Deps.Train: give data.SplitByClass's parts as Deps.Train and Deps.Val",
			c.ValSplit)
	}
	for _, s := range []struct {
		name string
		set  data.Dataset
	}{{"Deps.Train", d.Train}, {"Deps.Val", d.Val}} {
		if s.set == nil {
			continue
		}
		n := len(s.set.Classes())
		if s.set.Len() == 0 {
			return fmt.Errorf("%s has no images", s.name)
		}
		if task := data.TaskOf(s.set); c.Task != "" && task != c.Task || task != data.TaskOf(d.Train) {
			return fmt.Errorf("%s is for the task %s, not %s", s.name, task, cmp.Or(c.Task, data.TaskOf(d.Train)))
		} else if task != data.Classification {
			continue
		}
		for i := range s.set.Len() {
			if l := s.set.Label(i); l < 0 || l >= n {
				return fmt.Errorf("%s: image %d, %s, has the label %d: there are %d classes", s.name, i, s.set.Name(i), l, n)
			}
		}
	}
	if d.Val != nil {
		if !slices.Equal(d.Val.Classes(), d.Train.Classes()) {
			return errors.New("Deps.Val has other classes than Deps.Train")
		}
		if a, b := d.Train.Channels(), d.Val.Channels(); a != b {
			return fmt.Errorf("Deps.Val has %d channels, Deps.Train %d", b, a)
		}
	}
	return nil
}

// notes returns lines about the sets.
func (in *input) notes() (lines []string) {
	for i, set := range []data.Dataset{in.set, in.valSet} {
		if set == nil {
			continue
		}
		for _, note := range data.Notes(set) {
			lines = append(lines, fmt.Sprintf("%s: %s", []string{"training images", "validation images"}[i], note))
		}
	}
	return lines
}

// load creates the loaders of a resolved config, and selects those of the first epoch.
func (in *input) load(c *Resolved) error {
	decoding := data.NewBudget(c.DecodeMemory, in.Ranks.Locals())
	train, held, err := split(&c.Spec, in.set)
	if err != nil {
		return err
	}
	opt := data.LoaderOptions{
		Batch: c.Batch, Workers: c.Workers, Shuffle: *c.Shuffle, Seed: c.Seed, Stream: trainStream,
		Limit: c.StepsLimit, Substitute: true, MaxBad: *c.MaxBad, Log: in.logUnreadable, Rank: in.Ranks.Rank(),
		Ranks:    in.Ranks.Size(),
		Balanced: c.Sampler == Balanced, Repeat: c.RepeatAugment, FastDecode: c.FastDecode, Budget: decoding,
	}
	augment := c.Augmentation(c.Mean, c.Mix() != augment.Mix{})
	in.sized = map[int]sizedLoaders{}
	for _, size := range c.Sizes(c.Epochs, c.ImageSize) {
		tr, err := in.profile.Train(c.Augment, size)
		if err == nil {
			tr, err = augment.With(tr)
		}
		if err != nil {
			return err
		}
		var l sizedLoaders
		mixed := opt
		mixed.Mix = c.Mix()
		if l.train, err = data.NewLoader(train, tr, mixed); err != nil {
			return err
		}
		looks := opt
		looks.Stream, looks.Shuffle, looks.Limit = statsStream, true, c.RNA.Batches
		if l.stats, err = data.NewLoader(train, tr, looks); err != nil {
			return err
		}
		in.sized[size] = l
		if size != c.SizeAt(0, c.ImageSize) || !c.TensorBoard || !in.Ranks.First() {
			continue
		}
		mixed.Batch, mixed.Limit, mixed.Rank, mixed.Ranks = min(fewImages, train.Len()), 1, 0, 1
		in.trained = train
		if in.few, err = data.NewLoader(train, tr, mixed); err != nil {
			return err
		}
	}
	in.resize(c, 1)
	if held != nil {
		in.heldSize = held.Len()
	}
	if in.held, err = in.evaluation(c, held, decoding); err != nil {
		return err
	}
	in.val, err = in.evaluation(c, in.valSet, decoding)
	return err
}

// fewImages is the number of images on a sheet for TensorBoard.
const fewImages = 24

// sheet draws a few training images as the net sees them.
func (in *input) sheet(ctx context.Context) (image.Image, error) {
	for b, err := range in.few.Epoch(ctx, 0, 0) {
		if err != nil {
			return nil, err
		}
		g := gallery.Gallery{Options: &gallery.Options{By: gallery.ByNothing}, Title: "Training images as the net sees them",
			Set: in.trained, Name: gallery.Namer(in.set.Classes(), len(in.set.Classes())), Budget: data.NewBudget(0, 1)}
		if in.split != nil {
			g.Place = in.split.Data
		}
		return g.Sheet(ctx, gallery.Images(b, "network"))
	}
	return nil, network.ErrNoImage
}

// resize selects the loaders of an epoch, counted from 1.
func (in *input) resize(c *Resolved, epoch int) {
	l := in.sized[c.SizeAt(max(epoch-1, 0), c.ImageSize)]
	in.train, in.stats = l.train, l.stats
}

// evaluation returns a loader of a set's images as prepared for evaluation, nil for no set.
func (in *input) evaluation(c *Resolved, set data.Dataset, decoding *data.Budget) (*data.Loader, error) {
	if set == nil {
		return nil, nil
	}
	tr, err := in.profile.Evaluation(data.EvalOptions{Size: c.ImageSize, Resize: c.ValResize,
		Interpolation: c.Interpolation})
	if err != nil {
		return nil, err
	}
	return data.NewLoader(set, tr, data.LoaderOptions{
		Batch: c.Batch, Workers: c.Workers, MaxBad: *c.MaxBad, Limit: c.ValLimit, Log: in.logUnreadable,
		Rank: in.Ranks.Rank(), Ranks: in.Ranks.Size(), FastDecode: c.FastDecode, Budget: decoding,
	})
}

// logUnreadable logs an unreadable image once, whichever loader reports it.
func (in *input) logUnreadable(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if in.unreadable[line] {
		return
	}
	if in.unreadable == nil {
		in.unreadable = map[string]bool{}
	}
	in.unreadable[line] = true
	in.log("%s", line)
}

// images returns the number of images of an epoch and of an evaluation.
func (in *input) images() (train, val int) {
	if in.val != nil {
		val = in.val.Images()
	}
	return in.train.Images(), val
}

// scores reports whether there are images to score weights on.
func (in *input) scores() bool { return in.val != nil || in.held != nil }

// works lists the programs that batches need: both batch sizes of each use, with the largest training images first,
// since they need the most memory.
func (in *input) works(c *Resolved) (list []network.Work) {
	sizes := c.Sizes(c.Epochs, c.ImageSize)
	slices.Reverse(sizes)
	for _, of := range []struct {
		use   network.Use
		l     *data.Loader
		sizes []int
	}{{network.Training, in.train, sizes}, {network.Evaluation, in.val, []int{c.ImageSize}}, {network.Evaluation, in.held,
		[]int{c.ImageSize}}} {
		if of.l == nil {
			continue
		}
		for _, size := range of.sizes {
			for _, n := range []int{min(c.Batch, of.l.Images()), of.l.Images() % c.Batch} {
				if n > 0 {
					list = append(list, network.Work{Use: of.use, Batch: n, Height: size, Width: size})
				}
			}
		}
	}
	return list
}

// memory returns the bytes of device memory that prefetched batches take: on a device without its own memory they count
// with everything else. On another device it is 0, with an error if they exceed the host's free memory, where 0 means
// unknown.
func (in *input) memory(batch int, free int64) (bytes int64, err error) {
	list := []*data.Loader{in.val, in.held}
	for _, l := range in.sized { // the loaders of all image sizes keep their prefetched batches
		list = append(list, l.train, l.stats)
	}
	for _, l := range list {
		if l != nil {
			bytes += l.Bytes()
		}
	}
	if _, own := device.As[device.OwnMemory](in.Device); !own {
		return bytes, nil
	}
	if free > 0 && bytes > free {
		return 0, fmt.Errorf("loading batches of %d images ahead takes %s of the host's memory, and %s are free: batch %d "+
			"fits, or more memory for this process",
			batch, text.Bytes(bytes), text.Bytes(free), max(1, int(float64(batch)*float64(free)/float64(bytes)*0.9)))
	}
	return 0, nil
}

// close closes the sets that the run opened.
func (in *input) close() error {
	if !in.opened {
		return nil
	}
	var errs []error
	for _, set := range []data.Dataset{in.set, in.valSet} {
		if c, ok := set.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}

// split divides a training set into images to train on and held-out images, a share of Spec.Holdout chosen by the seed.
// Without Holdout held is nil.
func split(c *Spec, set data.Dataset) (train, held data.Dataset, err error) {
	if c.Holdout == 0 {
		return set, nil, nil
	}
	n := set.Len()
	k := max(1, int(math.Round(c.Holdout*float64(n))))
	if k >= n {
		return nil, nil, fmt.Errorf("holdout %g of %d images leaves none to train on", c.Holdout, n)
	}
	order := make([]int32, n)
	r := random.New(c.Seed, heldStream)
	r.Perm(order)
	indices := make([]int, n)
	for i, j := range order {
		indices[i] = int(j)
	}
	// Keep the order of the set, which may be that of its files.
	slices.Sort(indices[:k])
	slices.Sort(indices[k:])
	if held, err = data.Subset(set, indices[:k]); err != nil {
		return nil, nil, err
	}
	train, err = data.Subset(set, indices[k:])
	return train, held, err
}

// Held returns the images of a training set that a run with this Spec.Holdout and Spec.Seed holds out.
func Held(set data.Dataset, share float64, seed uint64) (data.Dataset, error) {
	_, held, err := split(&Spec{Holdout: share, Seed: seed}, set)
	return held, err
}

// splitOf describes the division of the data, for files of weights.
func splitOf(c *Spec, train, val data.Dataset) *network.Split {
	s := &network.Split{Data: c.Data, ValData: c.ValData, ValSplit: c.ValSplit, Holdout: c.Holdout}
	if c.Holdout > 0 {
		s.Seed = c.Seed
	}
	if c.ValSplit > 0 {
		s.Count(train, val)
	} else {
		s.Count(train)
	}
	return s
}
