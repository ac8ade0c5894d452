package train

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	G "gorgonia.org/gorgonia"

	"onlinerna/data"
	"onlinerna/nn"
	"onlinerna/train/average"
	"onlinerna/train/hook"
	"onlinerna/train/ranks"
	"onlinerna/train/ranks/rankstest"
)

func init() {
	nn.Register(nn.Architecture{
		Name: "tabular", Size: 16, Channels: 3, Classes: 2,
		Build: func(b *nn.Builder, x *G.Node) *G.Node {
			x = b.ReLU("relu", b.BatchNorm("bn", b.Conv("conv", x, nn.Conv{Filters: 4, Kernel: 3, Stride: 2}), 1))
			x = b.Concat("both", 1, b.GlobalAvgPool("mean", x), b.Input("table", 3))
			return b.Linear("fc", x, b.Config().Classes)
		},
	})
}

// withTables opens the pictures in a folder with a row of a table each.
func withTables(t *testing.T, dir string, scale float32) (sets [2]data.Dataset) {
	t.Helper()
	train, val, err := data.Open(dir, data.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for k, set := range []data.Dataset{train, val} {
		rows := make([][]float32, set.Len())
		for i := range rows {
			rows[i] = []float32{scale * float32(set.Label(i)), float32(i%3) - 1, float32(k)}
		}
		if sets[k], err = data.WithInput(set, "table", rows); err != nil {
			t.Fatal(err)
		}
	}
	return sets
}

// TestTabular: runs of a net with a further input have RNA, resume with equal files, and refuse images without it.
func TestTabular(t *testing.T) {
	t.Parallel()
	sets := withTables(t, pictures(t, 20, 6, 16), 1)
	dir, dev := t.TempDir(), cpuDevice(t, 2)
	config := func(out string) Spec {
		c := tinyColour(out, "")
		c.Model, c.Epochs, c.RNA.Mode, c.RNA.Stats = "tabular", 4, average.Online, average.Reestimate
		return c
	}
	deps := Deps{Device: dev, Train: sets[0], Val: sets[1]}
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	for out, stop := range map[string]int{whole: 0, parts: 5} {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		d := deps
		if stop > 0 {
			d.Hooks = []hook.Hook{atStep(stop)(cancel)}
		}
		r, err := New(config(out), d)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Train(ctx); err != nil && (stop == 0 || !errors.Is(err, ErrInterrupted)) {
			t.Fatal(err)
		}
		r.Close()
	}
	other := withTables(t, sets[0].Name(0)[:strings.LastIndex(sets[0].Name(0), "/train/")], 2)
	_, err := Resume(parts, Deps{Device: dev, Train: other[0], Val: other[1]}, nil)
	if err == nil || !strings.Contains(err.Error(), "the further inputs") {
		t.Errorf("resumed with another table: %v", err)
	}
	r, err := Resume(parts, deps, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	sameFolders(t, parts, whole)

	narrow, err := data.WithInput(&listed{2, 2, 1}, "table", [][]float32{{1}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	for want, d := range map[string]Deps{
		"takes the input table [3] for each image, which the images lack": {Device: dev, Train: &listed{8, 2, 1}},
		"which is of 3 numbers": {Device: dev, Train: narrow},
	} {
		if _, err := New(config(""), d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestTabularRanks: two ranks train a net with a further input as one process does that accumulates their batches.
func TestTabularRanks(t *testing.T) {
	t.Parallel()
	sets := withTables(t, pictures(t, 12, 4, 16), 1)
	run := func(g *ranks.Group, accumulate int) (params []float64, err error) {
		dev, err := cpuOne()
		if err != nil {
			return nil, err
		}
		c := tinyColour("", "")
		c.Model, c.Batch, c.Epochs, c.RNA.Mode, c.Accumulate = "tabular", 3, 2, average.Off, accumulate
		r, err := New(c, Deps{Device: dev, Ranks: g, Train: sets[0], Val: sets[1]})
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if err := r.Train(context.Background()); err != nil {
			return nil, err
		}
		return numbers(t, r.Net.Params), nil
	}
	want, err := run(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	got := make([][]float64, 2)
	rankstest.Errors(t, 2, time.Minute, func(g *ranks.Group) (err error) {
		got[g.Rank()], err = run(g, 1)
		return err
	})
	if d := apart(got[0], want); d > 1e-4 || !slices.Equal(got[0], got[1]) {
		t.Errorf("parameters differ by %g", d)
	}
}
