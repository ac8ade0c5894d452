package bench

import (
	"context"
	"time"

	"onlinerna/data"
)

// Loading is how fast a set's images are made ready.
type Loading struct {
	Sample  string  `json:"sample"` // what an image becomes
	Workers int     `json:"workers"`
	Images  int     `json:"images"`
	Bad     int     `json:"bad"` // that could not be read
	Seconds float64 `json:"seconds"`
	Usage   Usage   `json:"usage"`
}

// PerSecond is the number of images a second.
func (l *Loading) PerSecond() float64 { return float64(l.Images) / l.Seconds }

// PerCPUSecond is the number of images a second of a processor; 0 where the system does not tell.
func (l *Loading) PerCPUSecond() float64 {
	if cpu := l.Usage.User + l.Usage.System; cpu > 0 {
		return float64(l.Images) / cpu
	}
	return 0
}

// Load goes through epochs of set by a loader, for that long at least, after a first one that nobody measures.
func Load(ctx context.Context, set data.Dataset, tr data.Transform, workers int, atLeast time.Duration) (*Loading, error) {
	loader, err := data.NewLoader(set, tr, data.LoaderOptions{
		Batch: min(64, set.Len()), Workers: workers, Shuffle: true, Seed: 1, Substitute: true, MaxBad: 1,
	})
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
	return l, nil
}
