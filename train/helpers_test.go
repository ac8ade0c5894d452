package train

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/nn/device"
	"onlinerna/nn/op"
	"onlinerna/train/hook"
	"onlinerna/train/internal/traintest"
)

// Short names for the shared helpers of training tests.
var (
	pictures, put    = traintest.Pictures, traintest.Put
	cpuDevice        = traintest.CPU
	numbers, tensors = traintest.Numbers, traintest.Tensors
	near, mean       = traintest.Near, traintest.Mean
	uniform          = traintest.Uniform
)

// tiny is a run of LeNet on a few glyphs.
func tiny(out string) Spec { return traintest.Spec(table, Spec{Out: out}, traintest.Tiny) }

// tinyColour is a run of a model with BatchNorm on pictures.
func tinyColour(out, pictures string) Spec {
	return traintest.Spec(table, Spec{Out: out, Data: pictures}, traintest.TinyColour)
}

type watch = traintest.Watch

func newRun(t testing.TB, c Spec, dev device.Device, hooks ...hook.Hook) *Run {
	t.Helper()
	r, err := New(c, Deps{Device: dev, Hooks: hooks})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// trained returns a finished run.
func trained(t testing.TB, c Spec, dev device.Device, hooks ...hook.Hook) *Run {
	t.Helper()
	r := newRun(t, c, dev, hooks...)
	if err := r.Train(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// untimed returns JSON without the values that differ between runs: times and folders.
func untimed(t testing.TB, b []byte) string {
	t.Helper()
	var clean func(v any)
	clean = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, k := range []string{"seconds", "img_per_s", "out", "metrics"} { // metrics: its size in bytes
				delete(v, k)
			}
			for _, x := range v {
				clean(x)
			}
		case []any:
			for _, x := range v {
				clean(x)
			}
		}
	}
	var out strings.Builder
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	for dec.More() {
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		clean(v)
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(b, '\n'))
	}
	return out.String()
}

// filesOf lists the files of a run; of its checkpoints those of the newest, without its number. Two equal runs leave
// the same files: weights, checkpoint and window bit for bit, metrics and state apart from times.
func filesOf(t testing.TB, dir string) []string {
	t.Helper()
	newest, _ := Checkpoint(dir)
	var list []string
	for _, name := range traintest.Files(t, dir) {
		if name == sessionsName || name == logName { // of processes
			continue
		}
		if at, ok := strings.CutPrefix(name, checkpointDir+"/"); ok {
			number, rest, _ := strings.Cut(at, "/")
			if rest == "manifest.json" || number != filepath.Base(newest) {
				continue
			}
			name = checkpointDir + "/" + rest
		}
		list = append(list, name)
	}
	return list
}

// inRun returns the path of a file listed by filesOf.
func inRun(t testing.TB, dir, name string) string {
	if rest, ok := strings.CutPrefix(name, checkpointDir+"/"); ok {
		newest, err := Checkpoint(dir)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(newest, rest)
	}
	return filepath.Join(dir, filepath.FromSlash(name))
}

func sameFolders(t testing.TB, got, want string) {
	t.Helper()
	g, w := filesOf(t, got), filesOf(t, want)
	if !slices.Equal(g, w) {
		t.Errorf("files %v, want %v", g, w)
		return
	}
	for _, name := range w {
		a, err := os.ReadFile(inRun(t, got, name))
		b, err2 := os.ReadFile(inRun(t, want, name))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") || strings.HasSuffix(name, ".jsonl") {
			a, b = []byte(untimed(t, a)), []byte(untimed(t, b))
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs", name)
			if len(a)+len(b) < 20000 && strings.Contains(name, ".json") {
				t.Logf("got\n%s\nwant\n%s", a, b)
			}
		}
	}
}

func reference(d op.DType) device.Device { return device.NewReference(d) }

func ptr(x float64) *float64 { return &x }
