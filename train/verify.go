package train

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"onlinerna/train/internal/store"
	"onlinerna/train/statedict"
)

// Verified is the result of [Verify] for a file or a checkpoint.
type Verified struct {
	Path string
	// Sums reports whether it has checksums. Without them, only readability was checked.
	Sums bool
	// Epoch, Batch and Step are a checkpoint's position, and Program is the program that wrote it; zero for a file.
	Epoch, Batch, Step int
	Program            string
	// Err is the damage found, nil for none.
	Err error
}

// Verify reads a file of weights completely, or all checkpoints and weights of the run in a folder, and compares them
// with their checksums. A file without weights and a folder without a run are errors; damage is reported in the list.
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
	for _, pattern := range []string{"*.safetensors", keptDir + "/*.safetensors"} {
		files, err := filepath.Glob(filepath.Join(path, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			list = append(list, verifyWeights(file))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s holds no run and no weights", path)
	}
	if len(checkpoints) > 0 { // checkpoints know the other files
		list = append(list, Verified{Path: filepath.Join(path, configName), Sums: true, Err: sameConfig(path, checkpoints)},
			Verified{Path: filepath.Join(path, metricsName), Sums: true, Err: verifyMetrics(path, checkpoints[0])})
	}
	return list, nil
}

func verifyWeights(path string) Verified {
	v := Verified{Path: path}
	f, err := statedict.Open(path, "")
	if err != nil {
		v.Err = err
		return v
	}
	defer f.Close()
	v.Sums, v.Err = f.Verify()
	return v
}

// sameConfig returns an error if config.json is not that of a checkpoint.
func sameConfig(out string, checkpoints []string) error {
	path := filepath.Join(out, configName)
	has, err := os.ReadFile(path)
	if err != nil || configOf(has, checkpoints) {
		return err
	}
	own, err := os.ReadFile(filepath.Join(checkpoints[0], configName))
	return errors.Join(fmt.Errorf("%s differs from that of the checkpoint: %s", path, differ(has, own)), err)
}
