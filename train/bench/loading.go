package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"onlinerna/data"
	"onlinerna/data/augment"
)

// Loading is the speed of preparing a set's images.
type Loading struct {
	Sample  string  `json:"sample"` // the transform of an image
	Workers int     `json:"workers"`
	Images  int     `json:"images"`
	Bad     int     `json:"bad"` // unreadable images
	Seconds float64 `json:"seconds"`
	Usage   Usage   `json:"usage"`
	// Difference is the effect of fast decoding on the pixels; nil without it.
	Difference *Difference `json:"difference,omitempty"`
}

// Difference is between the samples of an epoch from images decoded at reduced size and at full size.
type Difference struct {
	Images int     `json:"images"` // images that differ
	Of     int     `json:"of"`
	Mean   float64 `json:"mean"` // of differing samples: absolute, in levels of 255
	Max    int     `json:"max"`
}

// PerSecond returns images per second.
func (l *Loading) PerSecond() float64 { return float64(l.Images) / l.Seconds }

// PerCPUSecond returns images per processor second; 0 if the system does not report processor time.
func (l *Loading) PerCPUSecond() float64 {
	if cpu := l.Usage.User + l.Usage.System; cpu > 0 {
		return float64(l.Images) / cpu
	}
	return 0
}

// WriteText writes l in lines.
func (l *Loading) WriteText(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s, %d workers: %.0f images/s, %.0f a second of a core; %d of %d images could not be read\n",
		l.Sample, l.Workers, l.PerSecond(), l.PerCPUSecond(), l.Bad, l.Images)
	if d := l.Difference; d != nil && err == nil {
		_, err = fmt.Fprintf(w, "%d of %d images are decoded smaller; their samples differ by %.2f of 255 levels on "+
			"average, %d at most\n",
			d.Images, d.Of, d.Mean, d.Max)
	}
	return err
}

// Load runs epochs of set through a loader for at least the given time, after an unmeasured first one. fast decodes
// JPEGs as described at data.LoaderOptions.FastDecode.
func Load(ctx context.Context, set data.Dataset, tr augment.Transform, workers int, fast bool,
	atLeast time.Duration) (*Loading, error) {
	opt := data.LoaderOptions{
		Batch: min(64, set.Len()), Workers: workers, Shuffle: true, Seed: 1, Substitute: true, MaxBad: data.AllBad,
		FastDecode: fast,
	}
	loader, err := data.NewLoader(set, tr, opt)
	if err != nil {
		return nil, err
	}
	l := &Loading{Sample: tr.String(), Workers: workers}
	var start time.Time
	var before Usage
	for epoch := 0; epoch < 2 || l.Seconds < atLeast.Seconds(); epoch++ {
		if epoch == 1 {
			start, before = time.Now(), usageNow()
		}
		for batch, err := range loader.Epoch(ctx, epoch, 0) {
			if err != nil {
				return nil, err
			}
			if epoch > 0 {
				l.Images += batch.N
				l.Bad += batch.Bad
			}
		}
		if epoch > 0 {
			l.Seconds = time.Since(start).Seconds()
		}
	}
	l.Usage = usageNow().since(before)
	if fast {
		opt.FastDecode = false
		whole, err := data.NewLoader(set, tr, opt)
		if err != nil {
			return nil, err
		}
		if l.Difference, err = difference(ctx, loader, whole); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// difference compares the first epochs of two loaders of the same images.
func difference(ctx context.Context, fast, whole *data.Loader) (*Difference, error) {
	d := new(Difference)
	next, stop := iter.Pull2(whole.Epoch(ctx, 0, 0))
	defer stop()
	sum, samples := 0, 0
	for a, err := range fast.Epoch(ctx, 0, 0) {
		b, e, ok := next()
		if err = errors.Join(err, e); err != nil || !ok {
			return nil, err
		}
		for n, size := 0, a.Height*a.Width*a.Channels; n < a.N; n++ {
			of := 0
			for i := n * size; i < (n+1)*size; i++ {
				by := max(int(a.Images[i])-int(b.Images[i]), int(b.Images[i])-int(a.Images[i]))
				of += by
				d.Max = max(d.Max, by)
			}
			d.Of++
			if of > 0 {
				d.Images++
				sum += of
				samples += size
			}
		}
	}
	d.Mean = float64(sum) / float64(max(samples, 1))
	return d, nil
}
