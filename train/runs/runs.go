// Package runs finds the runs in folders, with their options, records and states, and filters and sorts them.
package runs

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"onlinerna/internal/files"
	"onlinerna/train"
	"onlinerna/train/hook"
)

// A Run is read from its folder.
type Run struct {
	Name    string // the shortest end of the path that tells the runs of a list apart
	Dir     string
	Config  train.Spec
	History []hook.EpochRecord
	State   train.State
	Failure *train.Failure // nil unless the run failed
	Updated time.Time      // of the last record
}

// Data names the run's training set.
func (r *Run) Data() string { return cmp.Or(r.Config.Data, "glyphs") }

// Option is the text of an option, "" if it is not set.
func (r *Run) Option(name string) string {
	if name == "seed" {
		return strconv.FormatUint(r.Config.Seed, 10) // 0 is one
	}
	if o := train.Options().Find(name); o != nil {
		return o.Text(&r.Config)
	}
	return ""
}

// Epoch is the number of finished epochs.
func (r *Run) Epoch() int {
	if n := len(r.History); n > 0 {
		return r.History[n-1].Epoch
	}
	return 0
}

// Best describes the best weights so far; nil if no weights were compared.
func (r *Run) Best() *hook.BestRecord {
	if n := len(r.History); n > 0 {
		return r.History[n-1].Best
	}
	return nil
}

// BestAt describes the best weights of the first epochs; nil if no weights were compared, or the run is not so far.
func (r *Run) BestAt(epoch int) *hook.BestRecord {
	for i := range r.History {
		if r.History[i].Epoch == epoch {
			return r.History[i].Best
		}
	}
	return nil
}

// Read reads the run in a folder.
func Read(dir string) (Run, error) {
	r := Run{Name: filepath.Base(dir), Dir: dir}
	var err error
	if r.Config, err = train.ReadSpec(dir); err != nil {
		return r, err
	}
	if r.History, err = train.ReadHistory(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	for _, name := range []string{metricsName, configName} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil {
			r.Updated = st.ModTime()
			break
		}
	}
	r.State, r.Failure, err = train.ReadState(dir, r.Config, r.History)
	return r, err
}

const (
	configName    = "config.json"
	metricsName   = "metrics.jsonl"
	checkpointDir = "checkpoint"
)

// isRun reports whether a folder looks like that of a run.
func isRun(dir string) bool {
	is := func(name string) bool { return files.IsRegular(filepath.Join(dir, name)) }
	st, err := os.Stat(filepath.Join(dir, checkpointDir))
	return is(metricsName) || err == nil && st.IsDir() && is(configName)
}

// depth is the number of levels below a folder in which Find looks for runs: studies and sweeps are folders of runs.
const depth = 3

// Find reads runs, each given by its folder or by one above it, and names them. A run that is given twice is read once.
// passed has a line for each path without runs, and for each run that cannot be read. A missing path is an error.
func Find(paths ...string) (list []Run, passed []string, err error) {
	seen := map[string]bool{}
	for _, path := range paths {
		st, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("there is no folder %s: name a folder of runs", path)
		} else if err != nil {
			return nil, nil, err
		}
		path = filepath.Clean(path)
		if !st.IsDir() {
			passed = append(passed, path+" is a file, no run")
			continue
		}
		dirs, empty := search(path, depth)
		for _, dir := range dirs {
			real, err := filepath.EvalSymlinks(dir)
			if real, err = absolute(real, err); err != nil {
				return nil, nil, err
			}
			if seen[real] {
				continue
			}
			seen[real] = true
			r, err := Read(dir)
			if err != nil {
				passed = append(passed, fmt.Sprintf("%s cannot be read: %v", dir, err))
				continue
			}
			list = append(list, r)
		}
		if len(dirs) == 0 {
			passed = append(passed, "no run in "+path)
		} else if len(empty) > 0 {
			passed = append(passed, "no run in "+some(empty))
		}
	}
	name(list)
	return list, passed, nil
}

func absolute(path string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// some lists names, the first five of many.
func some(names []string) string {
	const most = 5
	if n := len(names); n > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), n-most)
	}
	return strings.Join(names, ", ")
}

// search returns the folders of runs at or below dir, in order, and the folders directly in dir that have none.
func search(dir string, depth int) (found, empty []string) {
	if isRun(dir) {
		return []string{dir}, nil
	}
	entries, _ := os.ReadDir(dir)
	if depth == 0 {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !e.IsDir() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		if st, err := os.Stat(sub); err != nil || !st.IsDir() {
			continue
		}
		below, _ := search(sub, depth-1)
		if len(below) == 0 {
			empty = append(empty, sub)
		}
		found = append(found, below...)
	}
	return found, empty
}

// name names runs by their folders, without the folders that all of them have in common.
func name(list []Run) {
	if len(list) < 2 {
		return
	}
	var parts [][]string
	for _, r := range list {
		abs, err := filepath.Abs(r.Dir)
		if err != nil {
			return
		}
		parts = append(parts, strings.Split(filepath.ToSlash(abs), "/"))
	}
	common := len(parts[0]) - 1
	for _, p := range parts {
		n := 0
		for n < min(common, len(p)-1) && p[n] == parts[0][n] {
			n++
		}
		common = n
	}
	for i := range list {
		list[i].Name = strings.Join(parts[i][common:], "/")
	}
}

// Options lists the names of the options, besides the folder, in which runs differ, in the order of the table. Options
// that no run was given follow from others and are left out, if all runs recorded their given options.
func Options(list []Run) (names []string) {
	options, given := train.Options(), map[string]bool{"seed": true}
	recorded := true
	for _, r := range list {
		recorded = recorded && r.Config.Given != nil
		for _, name := range r.Config.Given {
			given[name] = true
		}
	}
	for i := range options {
		o := &options[i]
		if o.Name != "out" && (!recorded || given[o.Name]) && slices.ContainsFunc(list, func(r Run) bool {
			return o.Text(&r.Config) != o.Text(&list[0].Config)
		}) {
			names = append(names, o.Name)
		}
	}
	return names
}
