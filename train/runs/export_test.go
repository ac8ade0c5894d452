package runs

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/hook"
	"onlinerna/train/network"
)

// TestExport: both forms have the same values under the same names, and a line that is being written is left out.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	score := func(loss float64) *network.Score { return &network.Score{Loss: loss, Top1: 50, Top5: 90, Images: 4} }
	var lines []byte
	add := func(v any) {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, b...), '\n')
	}
	add(hook.StepRecord{Kind: "step", Epoch: 1, Step: 1, Loss: 2.5, Rate: .1})
	first := hook.EpochRecord{Kind: "epoch", Epoch: 1, Step: 1, Rate: .1, Train: *score(2), SGD: score(1.5)}
	add(first)
	add(hook.EpochRecord{Kind: "epoch", Epoch: 2, Step: 2, Rate: .05, Train: *score(1), SGD: score(1.25),
		RNA: &hook.RNARecord{C: []float64{.25, .75}, NormC: .8, Score: score(1.125)}})
	if err := os.WriteFile(filepath.Join(dir, metricsName), append(lines, `{"kind":"ep`...), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &Run{Dir: dir, History: []hook.EpochRecord{first}}
	for _, steps := range []bool{false, true} {
		var c, j bytes.Buffer
		n, err := Export(&c, r, "csv", steps)
		m, err2 := Export(&j, r, "jsonl", steps)
		want := map[bool]int{false: 2, true: 3}[steps]
		if err != nil || err2 != nil || n != want || m != want {
			t.Fatalf("%d and %d lines, want %d; %v, %v", n, m, want, err, err2)
		}
		rows, err := csv.NewReader(&c).ReadAll()
		if err != nil || len(rows) != want+1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, line := range strings.Split(strings.TrimSpace(j.String()), "\n") {
			var values map[string]json.Number
			if err := json.Unmarshal([]byte(line), &values); err != nil {
				t.Fatal(err)
			}
			for k, name := range rows[0] {
				if cell := rows[i+1][k]; cell != values[name].String() {
					t.Errorf("line %d: %s is %s in csv, %s in jsonl", i+1, name, cell, values[name])
				}
			}
		}
		last := j.String()[strings.LastIndex(strings.TrimSpace(j.String()), "\n")+1:]
		for _, want := range []string{`"step": 2`, `"validation/SGD/loss": 1.25`, `"validation/RNA/loss": 1.125`,
			`"rna/c/0 before the newest": 0.75`, `"rna/c/1 before the newest": 0.25`, `"train/SGD/top1": 50`} {
			if !strings.Contains(last, want) {
				t.Errorf("no %s in %s", want, last)
			}
		}
	}
	if _, err := Export(&bytes.Buffer{}, &Run{Dir: dir}, "csv", false); err == nil {
		t.Error("no epoch, and no error")
	}
	if _, err := Export(&bytes.Buffer{}, &Run{Dir: t.TempDir()}, "csv", true); err == nil ||
		!strings.Contains(err.Error(), "no finished epoch") {
		t.Errorf("no metrics: %v", err)
	}
}
