package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"onlinerna/internal/files"
	"onlinerna/train/hook"
	"onlinerna/train/internal/store"
	"onlinerna/train/statedict"
	"onlinerna/train/torchfile"
)

// Verified is the result of [Verify] for a file or a checkpoint.
type Verified struct {
	Path string
	// Sums reports whether it has checksums. Without them, only readability was checked.
	Sums bool
	// Epoch, Batch and Step are a checkpoint's position, and Program is the program that wrote it; zero for a file.
	Epoch, Batch, Step int
	Program            string
	// Unread says why no weights were read from a file without damage: it holds no state dict, or is no file of weights.
	Unread string
	// Err is the damage found, nil for none.
	Err error
}

// errNothing is a folder without a run and without weights.
type errNothing string

func (path errNothing) Error() string { return string(path) + " holds no run and no weights" }

// Verify reads a file of weights completely, or all checkpoints and weights of the run in a folder, and compares them
// with their checksums. In another folder it does so for its weights and for all runs and weights in the folders below,
// but not through links. A file without weights and a folder without any are errors; damage and the files that a run
// lacks are reported in the list.
func Verify(path string) ([]Verified, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is no regular file", path)
		}
		return []Verified{verifyWeights(path)}, nil
	}
	checkpoints, err := store.List(filepath.Join(path, checkpointDir))
	if err != nil {
		return nil, err
	}
	var list []Verified
	for _, dir := range checkpoints {
		v := Verified{Path: dir, Sums: true}
		var m *store.Manifest
		if m, v.Err = store.Verify(dir); m != nil {
			v.Epoch, v.Batch, v.Step, v.Program = m.Epoch, m.Batch, m.Step, m.Program
		}
		list = append(list, v)
	}
	for _, pattern := range []string{"*.safetensors", keptDir + "/*.safetensors", "*.pt", "*.pth", "*.pth.tar", "*.ckpt",
		"pytorch_model*.bin"} {
		names, err := fs.Glob(os.DirFS(path), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			file := filepath.Join(path, filepath.FromSlash(name))
			if st, err := os.Stat(file); err != nil || !st.IsDir() {
				v := verifyWeights(file)
				if v.Err != nil && filepath.Ext(file) != ".safetensors" && statedict.Foreign(file) {
					v.Unread, v.Err = "it does not begin as a file of weights", nil
				}
				list = append(list, v)
			}
		}
	}
	if index := filepath.Join(path, "model.safetensors.index.json"); files.IsRegular(index) {
		v := Verified{Path: index}
		v.Sums, v.Err = statedict.VerifyIndex(index)
		list = append(list, v)
	}
	lost, err := missing(path, checkpoints)
	if err != nil {
		return nil, err
	}
	for _, v := range lost {
		if !slices.ContainsFunc(list, func(has Verified) bool { return has.Path == v.Path }) {
			list = append(list, v)
		}
	}
	if len(list) == 0 { // other forms of rna merge
		if v := verifyWeights(path); v.Err == nil {
			return []Verified{v}, nil
		}
	}
	if !files.IsRegular(filepath.Join(path, configName)) && len(checkpoints) == 0 {
		below, err := verifyBelow(path)
		if err != nil {
			return nil, err
		}
		list = append(list, below...)
	}
	if len(list) == 0 {
		return nil, errNothing(path)
	}
	if len(checkpoints) > 0 { // checkpoints know the other files
		list = append(list, Verified{Path: filepath.Join(path, configName), Sums: true, Err: sameConfig(path, checkpoints)},
			Verified{Path: filepath.Join(path, metricsName), Sums: true, Err: verifyMetrics(path, checkpoints[0])})
	}
	v := Verified{Path: filepath.Join(path, sessionsName)}
	if v.Sums, v.Err = verifySessions(v.Path); !errors.Is(v.Err, fs.ErrNotExist) {
		list = append(list, v)
	}
	return list, nil
}

// verifyBelow verifies the folders in a folder that is no run.
func verifyBelow(path string) (list []Verified, err error) {
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == keptDir { // whose files Verify lists
			continue
		}
		place := filepath.Join(path, e.Name())
		below, err := Verify(place)
		if _, none := err.(errNothing); err != nil && !none {
			below = []Verified{{Path: place, Err: err}}
		}
		list = append(list, below...)
	}
	return list, err
}

// missing lists the files that a run with these checkpoints should have and lacks.
func missing(out string, checkpoints []string) ([]Verified, error) {
	var list []Verified
	lacks := func(path, why string) {
		list = append(list, Verified{Path: path, Sums: true, Err: fmt.Errorf("%s is missing: %s", path, why)})
	}
	c, err := ReadSpec(out)
	if err != nil { // damaged: reported with its checkpoint
		return nil, nil
	}
	lost, err := store.Unlisted(filepath.Join(out, checkpointDir), c.CheckpointKeep)
	if err != nil {
		return nil, err
	}
	for _, path := range lost {
		lacks(path, "without it the checkpoint is none")
	}
	if len(checkpoints) == 0 {
		return list, nil
	}
	b, err := files.Read(filepath.Join(checkpoints[0], stateName))
	var at checkpoint
	if err != nil || json.Unmarshal(b, &at) != nil { // damaged, too
		return list, nil
	}
	history, err := ReadHistory(out)
	if err != nil {
		history = nil
	}
	want := map[string]string{}
	if at.Best != nil {
		want[bestFile] = fmt.Sprintf("the best weights, of epoch %d", at.Best.Epoch)
	}
	if e := at.Position.Epoch; e > c.Epochs || at.Position.Batch == 0 && c.exhausted(e-1, at.Best) {
		want[finalName] = "a resumed run writes it again"
	}
	if n := len(history); n > 0 {
		wantOf(want, &c, history)
		best := bestEpochs(history, c.KeepBest, c.BestBy)
		for _, rec := range history {
			if c.KeepEvery > 0 && rec.Epoch%c.KeepEvery == 0 || slices.Contains(best, rec.Epoch) {
				want[filepath.Join(keptDir, filepath.Base(keptFile(out, rec.Epoch)))] = "weights that the run keeps"
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if path := filepath.Join(out, name); !files.IsRegular(path) {
			lacks(path, want[name])
		}
	}
	return list, nil
}

// wantOf adds the files that hooks have written by the records of epochs.
func wantOf(want map[string]string, c *Spec, history []hook.EpochRecord) {
	if c.EMA != nil || c.EMADecay > 0 {
		want["ema.safetensors"] = "the EMA"
	}
	for _, rec := range history {
		if len(c.EMA) > 1 && c.KeepEvery > 0 && rec.Epoch%c.KeepEvery == 0 {
			for _, gamma := range c.EMA {
				want[hook.EMAFile(rec.Epoch, gamma)+".safetensors"] = "a power EMA that the run keeps"
			}
		}
	}
	for _, rec := range history {
		if rec.RNA != nil && rec.RNA.Score != nil {
			want["rna.safetensors"] = "the extrapolated weights"
		}
		for _, a := range rec.Averages {
			if rec.Epoch == c.Epochs {
				want[fmt.Sprintf("average-%d.safetensors", a.Epochs)] = "the average of the last epochs"
			}
		}
	}
}

func verifyWeights(path string) Verified {
	v := Verified{Path: path}
	f, err := statedict.Open(path, "")
	if err != nil {
		if none := new(torchfile.NoStateError); !errors.As(err, none) {
			v.Err = err
		} else if v.Sums, v.Err = statedict.VerifyTorch(path); v.Err == nil {
			v.Unread = err.Error()
		}
		return v
	}
	defer f.Close()
	v.Sums, v.Err = f.Verify()
	return v
}

// sameConfig returns an error if config.json is not that of a checkpoint.
func sameConfig(out string, checkpoints []string) error {
	path := filepath.Join(out, configName)
	has, err := files.Read(path)
	if err != nil || configOf(has, checkpoints) {
		return err
	}
	own, err := files.Read(filepath.Join(checkpoints[0], configName))
	return errors.Join(fmt.Errorf("%s differs from that of the checkpoint: %s", path, differ(has, own)), err)
}
