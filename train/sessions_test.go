package train

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/internal/checksum"
	"onlinerna/nn/device/cpu"
	"onlinerna/train/internal/traintest"
)

// TestSessions: each process of a run adds a line with its machine and with the options that are not defaults, also in
// a resumed run, whose recorded options have all values.
func TestSessions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	dev, err := cpu.New(cpu.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	c := Spec{Model: "lenet", Batch: 32, Epochs: 2, StepsLimit: 2, ValLimit: 1, Out: dir, Device: "cpu"}
	c.Schedule.Rate = 0.05 // the default
	final := 1e-3
	c.Schedule.Final = &final
	r, err := New(c, Deps{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	for e := 1; e <= 2; e++ {
		if err := r.TrainTo(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	// a line that was cut short
	f, err := os.OpenFile(filepath.Join(dir, sessionsName), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(`{"started":`)
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err = Resume(dir, Deps{Device: dev}, func(c *Spec) { c.Epochs = 3 })
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	list, err := ReadSessions(dir)
	if err != nil || len(list) != 2 {
		t.Fatalf("%d sessions, %v", len(list), err)
	}
	for i, want := range []map[string]string{
		{"batch": "32", "epochs": "2", "lr-final": "0.001", "limit-batches": "2", "limit-val": "1"},
		{"batch": "32", "epochs": "3", "lr-final": "0.001", "limit-batches": "2", "limit-val": "1"},
	} {
		s := list[i]
		got := map[string]string{}
		for _, x := range s.Chosen {
			got[x.Name] = x.Value
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("session %d: %s is %q, want %q", i, name, got[name], value)
			}
			delete(got, name)
		}
		if !dev.Winograd() { // plain Go lacks it, so the run's value is not the default
			delete(got, "winograd")
		}
		if i == 0 && len(got) > 0 || got["lr"] != "" || got["classes"] != "" || got["momentum"] != "" ||
			got["float32"] != "" {
			t.Errorf("session %d lists defaults: %v", i, got)
		}
		if s.Device != "cpu" || s.Go == "" || s.Cores < 1 || s.Epoch != 1+2*i || s.Step != 4*i || s.Started.IsZero() {
			t.Errorf("session %d: %+v", i, s)
		}
	}
}

// Each flipped bit of the sessions is found, and each cut that is not between lines; lines of older programs have no checksums.
func TestVerifySessions(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, sessionsName)
	old := []byte(`{"started":"2026-01-01T00:00:00Z","epoch":1}` + "\n")
	traintest.Put(t, path, old)
	if summed, err := verifySessions(path); summed || err != nil {
		t.Errorf("an older program's: %v, %v", summed, err)
	}
	for range 2 {
		line, err := json.Marshal(Session{Sum: checksum.Zeros, Device: "cpu"})
		if err == nil {
			err = appendSession(path, line)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if summed, e := verifySessions(path); !summed || e != nil || err != nil {
		t.Fatalf("%v, %v, %v", summed, e, err)
	}
	found := func(what string, b []byte) {
		t.Helper()
		traintest.Put(t, path, b)
		if _, err := verifySessions(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			found(fmt.Sprintf("bit %d of byte %d", bit, i), b)
			b[i] ^= 1 << bit
		}
		if i > len(old) && b[i-1] != '\n' {
			found(fmt.Sprintf("%d bytes", i), b[:i])
		}
	}
	found("without its first line", b[len(old):])
}
