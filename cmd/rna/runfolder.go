package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/network"
)

// A runFolder is the folder of a run that stands for its weights.
type runFolder struct {
	dir    string
	file   string // its best weights
	config train.Spec
}

// findRun is the run in a folder, nil where path is none: a file, or a folder of something else.
func findRun(path string) (*runFolder, error) {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return nil, nil
	}
	c, err := train.ReadSpec(path)
	if err != nil {
		if _, none := os.Stat(filepath.Join(path, "metrics.jsonl")); none == nil {
			return nil, err
		}
		return nil, nil // others have a config.json, too
	}
	r := &runFolder{dir: path, config: c}
	for _, name := range []string{"best.safetensors", "final.safetensors"} {
		if file := filepath.Join(path, name); files.IsRegular(file) {
			r.file = file
			return r, nil
		}
	}
	checkpoint, err := train.Checkpoint(path)
	if err != nil {
		return nil, fmt.Errorf("%s: the run has no weights yet: %w", path, err)
	}
	r.file = filepath.Join(checkpoint, "weights.safetensors")
	return r, nil
}

// took says which of the run's weights were taken.
func (r *runFolder) took(m network.Meta) string {
	sgd := r.config.OptimizerName()
	name := map[network.Kind]string{network.SGD: sgd, network.SGDStats: sgd + " with BatchNorm recalibrated", network.RNA: "RNA", network.Average: "the average", network.EMA: "the EMA"}[m.Kind]
	return fmt.Sprintf("%s: %s of epoch %d", r.file, cmp.Or(name, string(m.Kind), "weights"), m.Epoch)
}

// split is how the run divided its data, for weights that do not say it.
func (r *runFolder) split() *network.Split {
	c := &r.config
	return &network.Split{Data: cmp.Or(c.Data, "glyphs"), ValData: c.ValData, ValSplit: c.ValSplit, Holdout: c.Holdout, Seed: c.Seed}
}

// located is a split with the places of images as they are from here: those that are not may lie where the run was started.
func (r *runFolder) located(s network.Split) *network.Split {
	dir, err := filepath.Abs(r.dir)
	base, ok := strings.CutSuffix(dir, string(filepath.Separator)+filepath.Clean(r.config.Out))
	if err != nil || !ok {
		return &s
	}
	for _, place := range []*string{&s.Data, &s.ValData} {
		there := filepath.Join(base, *place)
		if _, err := os.Stat(*place); err == nil || *place == "" || filepath.IsAbs(*place) {
			continue
		}
		if _, err := os.Stat(there); err == nil {
			*place = there
		}
	}
	return &s
}

// isRun says whether a path is the folder of a run.
func isRun(path string) bool {
	r, err := findRun(path)
	return r != nil || err != nil
}

// expand puts files in the place of folders of runs: of the only argument the kept weights, if row, else the best weights of each.
func expand(args []string, row bool, log io.Writer) ([]string, *runFolder, error) {
	var files []string
	var only *runFolder
	for _, arg := range args {
		run, err := findRun(arg)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case run == nil:
			files = append(files, arg)
			continue
		case len(args) == 1 && row:
			_, kept, err := train.Kept(arg, run.config)
			if err == nil && len(kept) < 2 {
				err = fmt.Errorf("%s has kept the weights of %s: a row of them is extrapolated; train with --keep-every 1, which keeps those of each epoch",
					arg, text.Count(len(kept), "epoch"))
			}
			if err != nil {
				return nil, nil, err
			}
			fmt.Fprintf(log, "%s: %s to %s\n", text.Count(len(kept), "file"), kept[0], kept[len(kept)-1])
			return kept, run, nil
		}
		meta, err := network.ReadMeta(run.file)
		if err != nil {
			return nil, nil, err
		}
		fmt.Fprintln(log, run.took(meta))
		files, only = append(files, run.file), run
	}
	if len(args) > 1 {
		only = nil
	}
	return files, only, nil
}
