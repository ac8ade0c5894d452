package watch

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"onlinerna/internal/text"
	"onlinerna/train"
	"onlinerna/train/hook"
	"onlinerna/train/network"
	"onlinerna/train/runs"
)

// demo is a run in its third epoch.
func demo(t *testing.T) *View {
	t.Helper()
	v := &View{Run: runs.Run{Name: "a", Config: train.Spec{Model: "lenet", Epochs: 5}, State: train.Running},
		Log: []string{"12:00 photos/a\x1b[2J.jpg is unreadable"}}
	for e := 1; e <= 2; e++ {
		s := network.Score{Loss: 1 / float64(e), Top1: 50 * float64(e) / 2, Images: 100}
		r := hook.EpochRecord{Kind: "epoch", Epoch: e, Step: 10 * e, Rate: .1, SGD: &s, ImagesPerSecond: 1234,
			Seconds: hook.Seconds{Compute: 60}}
		r.Best = &hook.BestRecord{ScoreRecord: hook.ScoreRecord{Kind: network.SGD, Score: s}, Epoch: e}
		v.History = append(v.History, r)
	}
	for i := range 25 {
		v.Losses = append(v.Losses, 2-float64(i)/20)
	}
	for i := range 5 {
		v.Steps, v.Step = v.Steps+1, hook.StepRecord{Step: 21 + i, Loss: .8, Rate: .05}
	}
	return v
}

// TestFrame: the screen fits its size, and tells the position, the rates, the candidates and the messages.
func TestFrame(t *testing.T) {
	v := demo(t)
	for _, size := range [][2]int{{80, 24}, {200, 60}, {40, 10}, {20, 3}} {
		lines := Frame(v, size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, l := range lines {
			if text.Width(l) >= size[0] || strings.ContainsRune(l, '\x1b') {
				t.Errorf("%v: %q", size, l)
			}
		}
	}
	lines := Frame(v, 80, 24)
	all := strings.Join(lines, "\n")
	for _, want := range []string{"a  lenet on glyphs", "running", "epoch 3/5, step 5/10", " 50 %, 2 min left", "learning rate 0.05",
		"loss 0.8000", "1234 images/s", "epoch of 1 min", "best: SGD, epoch 2            50.00    0.5000", "unreadable",
		"training loss", "Error of the iterate, %", "  2┤", "q ends"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if len(lines) < 20 {
		t.Errorf("%d of 24 lines\n%s", len(lines), all)
	}
	v.State, v.Failure = train.Failed, &train.Failure{Error: "out of\x1b[0m memory", Epoch: 3}
	if all = strings.Join(Frame(v, 80, 24), "\n"); !strings.Contains(all, "failed after 2 of 5 epochs: out of") {
		t.Errorf("a failed run\n%s", all)
	}
}

// TestBraille: by hand, two rows of two cells; a rising line, one with a gap, and many values a column.
func TestBraille(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   []string
	}{
		{[]float64{0, 7}, []string{"\u2800⡏", "⣀⡇"}},
		{[]float64{7, math.NaN(), 7, 7}, []string{"⠁⠉", ""}},
		{[]float64{0, 7, 0, 7, 0, 7, 0, 7}, []string{"⣿⣿", "⣿⣿"}},
	} {
		if got := braille(c.values, 0, 7, 2, 2); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
}

// TestRead: lines are read once, also one that arrives in two parts, and from the start after a resumed run has cut
// the file. Lines ends with the run.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	v := demo(t)
	step, _ := json.Marshal(hook.StepRecord{Kind: "step", Epoch: 1, Step: 1, Loss: 2})
	epoch, _ := json.Marshal(v.History[0])
	write("config.json", `{"model": "lenet", "epochs": 5}`)
	var got View
	read := func(metrics string, losses, steps, epochs int) {
		t.Helper()
		write("metrics.jsonl", metrics)
		if err := got.Read(dir); err != nil {
			t.Fatal(err)
		}
		if len(got.Losses) != losses || got.Steps != steps || len(got.History) != epochs {
			t.Errorf("%d losses, %d steps, %d epochs; want %d, %d, %d", len(got.Losses), got.Steps, len(got.History),
				losses, steps, epochs)
		}
	}
	s, e := string(step)+"\n", string(epoch)+"\n"
	read(s+s[:9], 1, 1, 0)
	read(s+s, 2, 2, 0)
	read(s+s+e+s, 3, 1, 1)
	read(s, 1, 1, 0)
	read(s+e, 1, 0, 1)
	write("log.txt", "12:00 a\x1bb\n")
	var out bytes.Buffer
	if err := Lines(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "\n") != 4 || !strings.Contains(text, "epoch 1/5") ||
		!strings.Contains(text, "interrupted after 1 of 5 epochs; rna train --resume") || strings.Contains(text, "\x1b") {
		t.Error(text)
	}
	if err := got.Read(filepath.Join(dir, "none")); err == nil {
		t.Error("no folder, and no error")
	}
}
