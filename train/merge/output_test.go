package merge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"onlinerna/rna"
	"onlinerna/train/extrapolate"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
	"onlinerna/train/safetensors"
	"onlinerna/train/statedict"
)

// contents are a folder's files by name.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	all, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := map[string][]byte{}
	for _, e := range all {
		if m[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// equal compares files or folders.
func equal(t *testing.T, got, want string) {
	t.Helper()
	if !IsFolder(got) {
		a, err := os.ReadFile(got)
		b, err2 := os.ReadFile(want)
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Fatalf("%s is not %s: %v, %v", got, want, err, err2)
		}
		return
	}
	a, b := contents(t, got), contents(t, want)
	if len(a) != len(b) {
		t.Fatalf("%d files, want %d", len(a), len(b))
	}
	for name := range b {
		if !bytes.Equal(a[name], b[name]) {
			t.Fatalf("%s differs", name)
		}
	}
}

// stopping is a rule that stops at a tensor with an error.
func stopping(rules extrapolate.Rules, at string, stop error) extrapolate.Rules {
	return func(ctx context.Context, t extrapolate.Tensor) (extrapolate.Rule, error) {
		if t.Name == at {
			return extrapolate.Rule{}, stop
		}
		return rules(ctx, t)
	}
}

// TestResume stops a merge before each shard and resumes: it keeps finished shards and rewrites damaged ones.
func TestResume(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 3)
	s := series(t, 2, paths...)
	rules := extrapolate.Linear(Mean(3))
	out := Output{Path: filepath.Join(dir, "whole"), ShardSize: 5000}
	if w, err := Write(t.Context(), s, rules, out); err != nil || w.Shards != 3 {
		t.Fatalf("%+v, %v", w, err)
	}
	want := contents(t, out.Path)
	stop := errors.New("stopped")
	for i, at := range []string{"a.bias", "a.weight", "b.weight"} { // in the file's order
		o := out
		o.Path = filepath.Join(dir, "stopped-at-"+at)
		hidden := filepath.Join(dir, ".stopped-at-"+at+".merge")
		_, err := Write(t.Context(), s, stopping(rules, at, stop), o)
		if !errors.Is(err, stop) || strings.Contains(err.Error(), "--resume") != (i > 0) {
			t.Errorf("%s: %v", at, err)
		}
		if _, err := os.Stat(o.Path); err == nil {
			t.Fatalf("%s: a folder is there, not whole", at)
		}
		o.Resume = i > 0
		shards, _ := filepath.Glob(filepath.Join(hidden, "model-*"))
		if len(shards) != i {
			t.Fatalf("%s: %d shards", at, len(shards))
		}
		damaged := 0
		if i == 2 {
			b, err := os.ReadFile(shards[0])
			if err != nil {
				t.Fatal(err)
			}
			b[len(b)-5] ^= 4
			if err := os.WriteFile(shards[0], b, 0o644); err != nil {
				t.Fatal(err)
			}
			damaged = 1
		}
		w, err := Write(t.Context(), s, rules, o)
		if err != nil || w.Resumed != i-damaged {
			t.Errorf("%s: %+v, %v", at, w, err)
		}
		got := contents(t, o.Path)
		for name, b := range want {
			if !bytes.Equal(got[name], b) {
				t.Errorf("%s: %s differs", at, name)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d files, want %d", at, len(got), len(want))
		}
	}
	o := out
	o.Path, o.Resume = filepath.Join(dir, "new"), true
	if _, err := Write(t.Context(), s, rules, o); err == nil || !strings.Contains(err.Error(), "nothing to resume") {
		t.Error(err)
	}
	o.Resume = false
	if _, err := Write(t.Context(), s, stopping(rules, "b.weight", stop), o); !errors.Is(err, stop) {
		t.Error(err)
	}
	o.Resume, o.ShardSize = true, 6000
	o.Metadata = map[string]string{"merge": "other"}
	if _, err := Write(t.Context(), s, rules, o); err == nil || !strings.Contains(err.Error(), "is of another merge") {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*.lock")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	if _, err := Write(t.Context(), s, rules, out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
}

// TestChanged changes an input while it is read: nothing is written.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 3)
	for _, name := range []string{"out", "out.safetensors", "out.pt"} {
		s := series(t, 2, paths...)
		rules := func(ctx context.Context, x extrapolate.Tensor) (extrapolate.Rule, error) {
			if x.Name == "b.weight" {
				if err := os.Chtimes(paths[1], time.Time{}, time.Now().Add(time.Duration(len(name))*time.Hour)); err != nil {
					t.Error(err)
				}
			}
			return extrapolate.Rule{Weights: Mean(3)}, nil
		}
		_, err := Write(t.Context(), s, rules, Output{Path: filepath.Join(dir, name), ShardSize: 1 << 30})
		if err == nil || !strings.Contains(err.Error(), "1.safetensors was changed while it was read") {
			t.Errorf("%s: %v", name, err)
		}
		all, _ := os.ReadDir(dir)
		if len(all) != len(paths) {
			t.Errorf("%s: left behind: %v", name, all)
		}
	}
}

// TestForms merges into each format and finds the same numbers, and the model's files beside the shards.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	hub := filepath.Join(dir, "hub")
	if err := os.CopyFS(hub, os.DirFS("../statedict/testdata/hub")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokenizer.json", "merges.txt", "optimizer.bin", "notes.md"} {
		if err := os.WriteFile(filepath.Join(hub, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := series(t, 2, "../statedict/testdata/flat.dcp", "../statedict/testdata/nested.dcp", hub)
	for _, name := range []string{"o.safetensors", "o.pt", "o"} {
		p, err := New(t.Context(), s, Options{By: ByMean})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, name)
		w, err := Write(t.Context(), s, p.Rules, Output{Path: path, ShardSize: 300})
		if err != nil {
			t.Fatal(err)
		}
		f, err := statedict.Open(path, "")
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range values(t, f, "b.weight") {
			if want := float64(i)/4 + 2; v != want {
				t.Errorf("%s: element %d is %v, want %v", name, i, v, want)
				break
			}
		}
		f.Close()
		if name == "o" {
			if !slices.Equal(w.Copied, []string{"config.json", "merges.txt", "tokenizer.json"}) || w.Shards != f.Shards ||
				w.Shards < 2 {
				t.Errorf("%+v, %d shards", w, f.Shards)
			}
			if left := contents(t, path); len(left) != w.Shards+4 {
				t.Errorf("%d files", len(left))
			}
		}
	}
}

// TestManyRanks merges on ranks, which write shards in turn: the bits are those of one process, also after a stop.
func TestManyRanks(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 4)
	for name, opt := range map[string]Options{
		"mean": {By: ByMean},
		"rna":  {By: ByRNA, Per: "whole", RNA: rna.Options{Lambda: rna.Set(1e-6)}},
		"per":  {By: ByRNA, Per: "tensor", RNA: rna.Options{Lambda: rna.Set(1e-6)}},
		"ties": {By: ByTIES, Density: 0.4, Sign: "sum", Scale: 2, Rescale: "none"},
	} {
		whole := filepath.Join(dir, name)
		var far *extrapolate.Distances
		for _, n := range []int{1, 2, 3, 5} { // three shards
			out := whole
			if n > 1 {
				out = fmt.Sprint(whole, n)
			}
			run := func(fail error) func(g *ranks.Group) error {
				return func(g *ranks.Group) error {
					w := extrapolate.Window{Order: extrapolate.Given}
					s, err := w.Open(context.Background(), paths, extrapolate.Options{Workers: 2, Ranks: g})
					if err != nil {
						return err
					}
					defer s.Close()
					p, err := New(t.Context(), s, opt)
					if err != nil {
						return err
					}
					o := Output{Path: out, ShardSize: 5000, Ranks: g, Resume: n > 1 && fail == nil}
					o.Meter = &extrapolate.Meter{}
					rules := p.Rules
					if fail != nil {
						rules = stopping(rules, "b.weight", fail)
					}
					got, err := Write(t.Context(), s, rules, o)
					if err != nil {
						return err
					}
					if got.Shards != 3 || (got.Resumed > 0) != o.Resume {
						return fmt.Errorf("%+v", got)
					}
					if d := o.Meter.Distances(); n == 1 {
						far = d
					} else if d != nil && d.Diameter > far.Diameter {
						return fmt.Errorf("distances %+v, of one process %+v", d, far)
					}
					return nil
				}
			}
			if n == 1 {
				if err := run(nil)(nil); err != nil {
					t.Fatal(err)
				}
				continue
			}
			for rank, err := range rankstest.Errors(t, n, time.Minute, run(errors.New("stopped"))) {
				if err == nil || !strings.Contains(err.Error(), "rank 2") && n > 2 || !strings.Contains(err.Error(), "stopped (") {
					t.Errorf("%s, %d ranks, rank %d: %v", name, n, rank, err)
				}
			}
			if _, err := os.Stat(out); err == nil {
				t.Fatal("an output that is not whole")
			}
			rankstest.Run(t, n, time.Minute, run(nil))
			equal(t, out, whole)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	damaged, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	damaged[len(damaged)-3] ^= 1
	if err := os.WriteFile(paths[1], damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, err := range rankstest.Errors(t, 2, time.Minute, func(g *ranks.Group) error {
		w := extrapolate.Window{Order: extrapolate.Given}
		_, err := w.Open(context.Background(), paths, extrapolate.Options{Ranks: g})
		return err
	}) {
		if err == nil || !strings.Contains(err.Error(), "rank 1") || !strings.Contains(err.Error(), "damaged") {
			t.Error(err)
		}
	}
}

// TestScaledShards keeps a tensor and its scale in one shard.
func TestScaledShards(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 2 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.safetensors", i)))
		var list []safetensors.Tensor
		for _, name := range []string{"a.weight", "b.weight"} {
			list = append(list, safetensors.Tensor{Name: name, DType: safetensors.F8E4M3, Shape: []int{2, 2}})
		}
		for _, name := range []string{"b.weight_scale", "a.weight_scale"} {
			list = append(list, safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{1}})
		}
		w, err := safetensors.Create(paths[i], list, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range list {
			b := []byte{0x38, 0xb8, 0x30, 0x7e} // 1, −1, 0.5, 448
			if x.DType == safetensors.F32 {
				b = []byte{0, 0, 0x80, 0x3f} // 1
			}
			if err := w.WriteAt(x.Name, b, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	s := series(t, 2, paths...)
	p, err := New(t.Context(), s, Options{By: ByTIES, Density: 1, Sign: "sum", Scale: 1, Rescale: "none"})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	if w, err := Write(t.Context(), s, p.Rules, Output{Path: out, ShardSize: 4}); err != nil || w.Shards != 2 {
		t.Fatalf("%+v, %v", w, err)
	}
	for i, name := range []string{"a", "b"} {
		f, err := safetensors.Open(filepath.Join(out, shardName(i, 2)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if x, ok := f.Lookup(name + ".weight_scale"); !ok || x.Len() != 1 || len(f.Tensors) != 2 {
			t.Errorf("shard %d: %v", i, f.Tensors)
		}
	}
	f, err := statedict.Open(out, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, _ := f.Lookup("b.weight")
	if b, err := f.Bytes(nil, x); err != nil || !bytes.Equal(b, []byte{0x38, 0xb8, 0x30, 0x7e}) {
		t.Errorf("%x, %v", b, err)
	}
}

// TestFloat8 averages 8-bit numbers.
func TestFloat8(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.safetensors"), filepath.Join(dir, "b.safetensors")
	save(t, a, []int{5}, map[string][]float64{"w": {1, 448, -0.5, 0.001953125, 1.125}}, "F8_E4M3")
	save(t, b, []int{5}, map[string][]float64{"w": {2, 416, -0.625, 0, 1.25}}, "F8_E4M3")
	f := merged(t, series(t, 1, a, b), Options{By: ByMean}, filepath.Join(dir, "o.safetensors"))
	x, _ := f.Lookup("w")
	got, err := f.Bytes(nil, x)
	// 1.5; 432, between 416 and 448, whose code is even; −0.5625; half the smallest number, to 0; 1.1875, between 1.125
	// and 1.25, which is even.
	if want := []byte{0x3c, 0x7e, 0xb1, 0x00, 0x3a}; err != nil || !bytes.Equal(got, want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
	s := series(t, 1, a, b)
	if err := s.Write(t.Context(), filepath.Join(dir, "far.safetensors"), []float64{2, -1},
		extrapolate.WriteOptions{}); err == nil ||
		!strings.Contains(err.Error(), "element 1 of tensor \"w\" would be 480, which F8_E4M3 cannot hold") {
		t.Error(err)
	}
}

// TestTogether writes one file from several ranks: its bytes are those of one process, and after an error of a rank
// there is none.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	paths := walk(t, dir, 4)
	for _, ext := range []string{".safetensors", ".pt"} {
		for name, opt := range map[string]Options{
			"rna":  {By: ByRNA, Per: "whole", RNA: rna.Options{Lambda: rna.Set(1e-6)}},
			"ties": {By: ByTIES, Density: 0.4, Sign: "sum", Scale: 2, Rescale: "none"},
		} {
			whole := filepath.Join(dir, name+ext)
			far := map[int]*extrapolate.Distances{}
			for _, n := range []int{1, 2, 3, 7} {
				out := whole
				if n > 1 {
					out = fmt.Sprint(filepath.Join(dir, name), n, ext)
				}
				for _, fail := range []string{"b.weight", ""} {
					errs := rankstest.Errors(t, n, time.Minute, func(g *ranks.Group) error {
						w := extrapolate.Window{Order: extrapolate.Given}
						s, err := w.Open(context.Background(), paths, extrapolate.Options{Workers: 2, Ranks: g})
						if err != nil {
							return err
						}
						defer s.Close()
						p, err := New(t.Context(), s, opt)
						if err != nil {
							return err
						}
						o := Output{Path: out, Ranks: g}
						o.Meter, o.Sync = &extrapolate.Meter{}, n == 3
						_, err = Write(t.Context(), s, stopping(p.Rules, fail, errors.New("stopped")), o)
						if g.First() {
							far[n] = o.Meter.Distances()
						}
						return err
					})
					_, there := os.Stat(out)
					for rank, err := range errs {
						if (err == nil) != (fail == "") || (there == nil) != (fail == "") || err != nil && !strings.Contains(err.Error(), "stopped") {
							t.Errorf("%s, %d ranks, rank %d: %v, the file: %v", out, n, rank, err, there)
						}
					}
				}
				equal(t, out, whole)
				if d := far[n].Diameter; math.Abs(d/far[1].Diameter-1) > 1e-9 {
					t.Errorf("%s: diameter %v, of one process %v", out, d, far[1].Diameter)
				}
			}
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
