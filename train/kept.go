package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// keptDir is the subfolder of the iterates kept by Spec.KeepEvery and Spec.KeepBest.
const keptDir = "kept"

// keptFile is the file of the iterate at the end of an epoch.
func keptFile(out string, epoch int) string {
	return filepath.Join(out, keptDir, fmt.Sprintf("epoch-%04d.safetensors", epoch))
}

// Kept lists the epochs whose iterates Spec.KeepEvery kept in the folder of a run, in order, with their files. It omits
// those that only Spec.KeepBest kept, so that epochs are equally spaced.
func Kept(out string, c Spec) (epochs []int, files []string, err error) {
	if c.KeepEvery < 1 {
		return nil, nil, nil
	}
	entries, err := os.ReadDir(filepath.Join(out, keptDir)) // not each epoch's file: a run may have any number to come
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	for _, entry := range entries {
		var e int
		fmt.Sscanf(entry.Name(), "epoch-%d.", &e)
		path := keptFile(out, e)
		if e < 1 || e > c.Epochs || e%c.KeepEvery != 0 || filepath.Base(path) != entry.Name() {
			continue
		}
		if _, err := os.Stat(path); err == nil {
			epochs = append(epochs, e)
		} else if !os.IsNotExist(err) {
			return nil, nil, err
		}
	}
	slices.Sort(epochs) // beyond 9,999 the names' order is another
	for _, e := range epochs {
		files = append(files, keptFile(out, e))
	}
	for i := 1; i < len(epochs); i++ {
		if epochs[i]-epochs[i-1] != c.KeepEvery {
			return nil, nil, fmt.Errorf("%s is missing between those of epochs %d and %d",
				keptFile(out, epochs[i-1]+c.KeepEvery), epochs[i-1], epochs[i])
		}
	}
	return epochs, files, nil
}

// KeptEMAs lists the files of the power averages that a run with several Spec.EMA has kept, up to an epoch.
func KeptEMAs(out string, c Spec, epoch int) (list []string, err error) {
	if len(c.EMA) < 2 {
		epoch = 0
	}
	for e := c.KeepEvery; e > 0 && e <= epoch; e += c.KeepEvery {
		for _, gamma := range c.EMA {
			path := filepath.Join(out, hook.EMAFile(e, gamma)+".safetensors")
			if _, err := os.Stat(path); err != nil {
				return nil, err
			}
			list = append(list, path)
		}
	}
	if list == nil {
		return nil, fmt.Errorf("%s has kept no power EMAs: train with --ema 5,12 --keep-every 1", out)
	}
	return list, nil
}

// ScoredEMA is the γ of the power average that is scored, 0 for none.
func (s *Spec) ScoredEMA() float64 {
	if len(s.EMA) == 0 {
		return 0
	}
	return s.EMA[len(s.EMA)-1]
}

// commas writes numbers as options take them.
func commas(list []float64) string {
	text := make([]string, len(list))
	for i, x := range list {
		text[i] = fmt.Sprint(x)
	}
	return strings.Join(text, ",")
}

// checkKept checks that there are images to choose the best by.
func (j *judge) checkKept() error {
	if c := j.c; c.KeepBest > 0 && !j.in.scores() {
		return errors.New("keep-best goes by validation or held-out images, and there are none")
	}
	return nil
}

// keepIterate writes the network's weights, the iterate of rec's epoch, if KeepEvery or KeepBest keeps it, and removes
// the files of epochs that are no longer among the best. The choice follows from the records alone, so that a resumed
// run keeps the same iterates.
func (j *judge) keepIterate(before []hook.EpochRecord, rec *hook.EpochRecord) error {
	c := j.c
	if c.Out == "" || c.KeepEvery == 0 && c.KeepBest == 0 {
		return nil
	}
	history := append(before[:len(before):len(before)], *rec)
	best := bestEpochs(history, c.KeepBest, c.BestBy)
	keeps := func(epoch int) bool {
		return c.KeepEvery > 0 && epoch%c.KeepEvery == 0 || slices.Contains(best, epoch)
	}
	return j.first(func() error {
		if keeps(rec.Epoch) {
			if err := os.MkdirAll(filepath.Join(c.Out, keptDir), 0o755); err != nil {
				return err
			}
			if err := j.net.SaveWeights(keptFile(c.Out, rec.Epoch), j.net.Params, j.net.Stats, j.meta(network.SGD)); err != nil {
				return fmt.Errorf("writing weights: %w", err)
			}
		}
		for _, h := range history {
			if !keeps(h.Epoch) {
				if err := os.Remove(keptFile(c.Out, h.Epoch)); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
		}
		return nil
	})
}

// bestEpochs returns the k epochs with the best iterates by a measure, on the held-out images, else on the validation
// images; the first on a tie.
func bestEpochs(history []hook.EpochRecord, k int, by string) []int {
	type scored struct {
		epoch int
		score network.Score
	}
	var list []scored
	for i := range history {
		s := history[i].HeldScore(network.SGD)
		if s == nil {
			s = history[i].SGD
		}
		if s != nil && s.Finite() {
			list = append(list, scored{history[i].Epoch, *s})
		}
	}
	slices.SortStableFunc(list, func(a, b scored) int { return hook.Compare(a.score, b.score, by) })
	var epochs []int
	for _, s := range list[:min(k, len(list))] {
		epochs = append(epochs, s.epoch)
	}
	return epochs
}
