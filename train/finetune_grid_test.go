package train

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/data"
	"onlinerna/train/network"
)

// tuneStudy runs cells and stores their results in a file.
type tuneStudy struct {
	t        *testing.T
	dir      string
	until    time.Time
	todo     []func()
	done     []cell
	had      map[string]bool // finished cells
	wanted   map[string]bool
	order    []string // order of tasks
	names    []string // names of methods
	sets     map[string]*album
	pretrain int // epochs
}

// newTuneStudy continues the study in the folder ONLINERNA_FINETUNE. If that is unset, or meant is false, it skips the
// test.
func newTuneStudy(t *testing.T, meant bool) *tuneStudy {
	dir := os.Getenv("ONLINERNA_FINETUNE")
	if dir == "" || !meant {
		t.Skip("set ONLINERNA_FINETUNE to a folder for the results of the study to run it")
	}
	s := &tuneStudy{t: t, dir: dir, had: map[string]bool{}, wanted: map[string]bool{}, sets: map[string]*album{},
		pretrain: 15, until: time.Now().Add(1e6 * time.Hour)}
	if m := os.Getenv("ONLINERNA_FINETUNE_MINUTES"); m != "" {
		d, err := time.ParseDuration(m + "m")
		if err != nil {
			t.Fatal(err)
		}
		s.until = time.Now().Add(d)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(s.file())
	if os.IsNotExist(err) {
		return s
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c cell
		if json.Unmarshal(lines.Bytes(), &c) == nil && !s.had[c.key()] { // the last line may be torn
			s.done, s.had[c.key()] = append(s.done, c), true
		}
	}
	return s
}

func (s *tuneStudy) file() string { return filepath.Join(s.dir, "cells.jsonl") }

// want queues a run, unless its result exists.
func (s *tuneStudy) want(k task, size int, m method, seed uint64) {
	c := cell{Task: k.name(s.album(k.source)), Size: size, Method: m.name, Seed: seed}
	if !slices.Contains(s.order, c.Task) {
		s.order = append(s.order, c.Task)
	}
	if !slices.Contains(s.names, m.name) {
		s.names = append(s.names, m.name)
	}
	s.wanted[c.key()] = true
	if s.had[c.key()] {
		return
	}
	s.todo = append(s.todo, func() {
		start := time.Now()
		train, test := s.album(k.source).divide(k.target, size, seed)
		run, err := m.tune(s.t, lesson{Spec{Model: k.model, Data: k.source, Seed: seed, Init: s.weights(k)}, train}, s.dir)
		if diverged := (*DivergedError)(nil); errors.As(err, &diverged) {
			c.Error = 100 - 100/float64(len(k.target)) // the error of guessing
		} else if err != nil {
			s.t.Fatal(err)
		} else {
			c.Error = errorOn(s.t, run, test)
			run.Close()
		}
		c.Seconds = time.Since(start).Seconds()
		s.keep(c)
	})
}

// wantAll queues the runs of all sets, those with few images first: they are the shortest and the least certain.
func (s *tuneStudy) wantAll(list []method, seeds ...uint64) {
	only := os.Getenv("ONLINERNA_FINETUNE_SETS") // part of a set's source and model; unset: all
	for _, size := range sizes {
		for _, seed := range seeds {
			for _, k := range tasks {
				if strings.Contains(k.source+" "+k.model, only) {
					for _, m := range list {
						s.want(k, size, m, seed)
					}
				}
			}
		}
	}
}

// keep stores a result.
func (s *tuneStudy) keep(c cell) {
	s.done = append(s.done, c)
	b, err := json.Marshal(c)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(s.file(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		s.t.Fatal(err)
	}
}

// run executes the queue in order until the time is over.
func (s *tuneStudy) run() {
	for i, do := range s.todo {
		if time.Now().After(s.until) {
			s.t.Logf("the time is over: %d runs are left", len(s.todo)-i)
			return
		}
		do()
	}
}

// weights trains a net on the classes that precede a task's, or finds it in the folder.
func (s *tuneStudy) weights(k task) string {
	path := filepath.Join(s.dir, fmt.Sprintf("%s-%s-%s.safetensors", k.source, k.model,
		strings.Trim(strings.ReplaceAll(fmt.Sprint(k.before), " ", ""), "[]")))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	train, test := s.album(k.source).divide(k.before, 1<<20, 1)
	run, err := tune(s.t, lesson{Spec{Model: k.model, Data: k.source, Seed: 1, Epochs: s.pretrain}, train})
	if err != nil {
		s.t.Fatal(err)
	}
	defer run.Close()
	s.t.Logf("%s: error %.1f %% on classes %v", path, errorOn(s.t, run, test), k.before)
	if err := run.Net.SaveWeights(path, run.Net.Params, run.Net.Stats, run.Meta(network.SGD)); err != nil {
		s.t.Fatal(err)
	}
	return path
}

// errorOn returns the error of a run's net on a set, in percent.
func errorOn(t *testing.T, r *Run, set data.Dataset) float64 {
	p, err := data.ProfileOf(set)
	if err != nil {
		t.Fatal(err)
	}
	c := r.Resolved
	c.Batch = 100
	in := &input{Deps: &r.Deps, profile: p}
	l, err := in.evaluation(&c, set, nil)
	if err != nil {
		t.Fatal(err)
	}
	score, err := r.Net.Score(context.Background(), l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return score.Error()
}

// results returns the errors on a set and a size by method, for the seeds that all methods have.
func (s *tuneStudy) results(task string, size int) (by map[string][]float64, seeds int) {
	by = map[string][]float64{}
	done := slices.Clone(s.done)
	slices.SortStableFunc(done, func(a, b cell) int { return cmp.Compare(a.Seed, b.Seed) })
	for _, c := range done {
		if c.Task == task && c.Size == size && s.wanted[c.key()] {
			by[c.Method] = append(by[c.Method], c.Error)
		}
	}
	seeds = math.MaxInt
	for _, m := range s.names {
		seeds = min(seeds, len(by[m]))
	}
	for m := range by {
		by[m] = by[m][:min(seeds, len(by[m]))]
	}
	return by, seeds
}

// row returns a line of the table, empty if results are missing.
func (s *tuneStudy) row(task string, size int) string {
	by, seeds := s.results(task, size)
	if seeds == 0 {
		return ""
	}
	line := fmt.Sprintf("| %s | %d | %d", task, size, seeds)
	for _, m := range s.names {
		if seeds == 1 {
			line += fmt.Sprintf(" | %.1f", by[m][0])
		} else {
			line += " | " + spread("%.1f", by[m])
		}
	}
	return line + " |\n"
}

// table shows the errors, with their spread over seeds.
func (s *tuneStudy) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| set | images a class | seeds | %s |\n|-|-|-%s|\n", strings.Join(s.names, " | "),
		strings.Repeat("|-", len(s.names)))
	sums, rows, seconds := make([]float64, len(s.names)), 0, 0.
	for _, task := range s.order {
		for _, size := range sizes {
			line := s.row(task, size)
			if line == "" {
				continue
			}
			rows++
			b.WriteString(line)
			by, _ := s.results(task, size)
			for i, m := range s.names {
				sums[i] += averaged(by[m])
			}
		}
	}
	b.WriteString("| mean | | ")
	for _, x := range sums {
		fmt.Fprintf(&b, " | %.2f", x/float64(max(1, rows)))
	}
	runs := 0
	for _, c := range s.done {
		if s.wanted[c.key()] {
			runs++
			seconds += c.Seconds
		}
	}
	fmt.Fprintf(&b, " |\n\n%d of %d runs, %.0f s\n", runs, len(s.wanted), seconds)
	return b.String()
}

// behind lists the cases where the default is more than two points worse than the best.
func (s *tuneStudy) behind() (list []string) {
	for _, task := range s.order {
		for _, size := range sizes {
			by, seeds := s.results(task, size)
			for _, m := range s.names[1:] {
				if seeds == 0 {
					continue
				}
				if d := averaged(by[s.names[0]]) - averaged(by[m]); d > 2 {
					list = append(list, fmt.Sprintf("%s, %d images a class: the default is %.1f points worse than %s", task, size, d,
						m))
				}
			}
		}
	}
	return list
}
