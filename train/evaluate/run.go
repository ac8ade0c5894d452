package evaluate

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/data/format"
	"onlinerna/internal/catalogue"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
	"onlinerna/train/statedict"
)

// Run is a run's folder that is given in place of its weights.
type Run struct {
	Dir    string
	File   string // its best weights, or the latest before any were judged
	Config train.Spec
}

// FindRun returns the run in a folder, nil if path is a file or some other folder.
func FindRun(path string) (*Run, error) {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return nil, nil
	}
	c, err := train.ReadSpec(path)
	if err != nil {
		if _, none := os.Stat(filepath.Join(path, "metrics.jsonl")); none == nil {
			return nil, err
		}
		return nil, nil // other programs write a config.json, too
	}
	r := &Run{Dir: path, Config: c}
	for _, name := range []string{"best.safetensors", "final.safetensors"} {
		if file := filepath.Join(path, name); files.IsRegular(file) {
			r.File = file
			return r, nil
		}
	}
	checkpoint, err := train.Checkpoint(path)
	if err != nil {
		return nil, fmt.Errorf("%s: the run has no weights yet: %w", path, err)
	}
	r.File = filepath.Join(checkpoint, "weights.safetensors")
	if best := filepath.Join(checkpoint, "best.safetensors"); files.IsRegular(best) {
		r.File = best
	}
	return r, nil
}

// took describes which of the run's weights were taken.
func (r *Run) took(m network.Meta) string {
	sgd := r.Config.OptimizerName()
	name := map[network.Kind]string{network.SGD: sgd, network.SGDStats: sgd + " with BatchNorm recalibrated",
		network.RNA: "RNA", network.Average: "the average", network.EMA: "the EMA"}[m.Kind]
	return fmt.Sprintf("%s: %s of epoch %d", r.File, cmp.Or(name, string(m.Kind), "weights"), m.Epoch)
}

// Split returns the run's division of its data, for weights that do not record it.
func (r *Run) Split() *network.Split {
	c := &r.Config
	return &network.Split{Data: cmp.Or(c.Data, "glyphs"), ValData: c.ValData, ValSplit: c.ValSplit, Holdout: c.Holdout,
		Seed: c.Seed}
}

// Located returns a split with the paths of images as seen from here: missing ones may be relative to the folder where
// the run was started, or have been elsewhere when the run went on.
func (r *Run) Located(s network.Split) *network.Split {
	for _, x := range []struct{ place, now *string }{{&s.Data, &r.Config.Data}, {&s.ValData, &r.Config.ValData}} {
		for _, path := range []string{*x.place, *x.now} {
			if found := r.located(path); found != "" {
				*x.place = found
				break
			}
		}
	}
	return &s
}

// located is the path of an existing file or folder that the run names, or "".
func (r *Run) located(path string) string {
	if path == "" {
		return ""
	}
	if _, err := os.Stat(path); err == nil {
		return path
	}
	dir, err := filepath.Abs(r.Dir)
	base, ok := strings.CutSuffix(dir, string(filepath.Separator)+filepath.Clean(r.Config.Out))
	if err != nil || !ok || filepath.IsAbs(path) {
		return ""
	}
	there := filepath.Join(base, path)
	if _, err := os.Stat(there); err != nil {
		return ""
	}
	return there
}

// IsRun reports whether a path is the folder of a run.
func IsRun(path string) bool {
	r, err := FindRun(path)
	return r != nil || err != nil
}

// NamesWeights reports whether a path is the folder of a run or of a checkpoint, a file that is no image and begins as
// weights or an index do, or no file but the name of weights to download.
func NamesWeights(path string) bool {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return catalogue.NamesWeights(path)
	case st.IsDir():
		return IsRun(path) || statedict.IsFolder(path)
	}
	return st.Mode().IsRegular() && !format.IsImage(path) && (filepath.Ext(path) == ".json" || !statedict.Foreign(path))
}

// Expand replaces folders of runs by files: a single argument by its kept weights if row is set, else each folder by
// its best weights.
func Expand(args []string, row bool, log io.Writer) ([]string, *Run, error) {
	var files []string
	var only *Run
	for _, arg := range args {
		run, err := FindRun(arg)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case run == nil:
			files = append(files, arg)
			continue
		case len(args) == 1 && row:
			_, kept, err := train.Kept(arg, run.Config)
			if err == nil && len(kept) < 2 {
				err = fmt.Errorf("%s has kept the weights of %s: a row of them is extrapolated; train with --keep-every 1, "+
					"which keeps those of each epoch",
					arg, text.Count(len(kept), "epoch"))
			}
			if err != nil {
				return nil, nil, err
			}
			fmt.Fprintf(log, "%s: %s to %s\n", text.Count(len(kept), "file"), kept[0], kept[len(kept)-1])
			return kept, run, nil
		}
		meta, err := network.ReadMeta(run.File)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(log, run.took(meta))
		files, only = append(files, run.File), run
	}
	if len(args) > 1 {
		only = nil
	}
	return files, only, nil
}
