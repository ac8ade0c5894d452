package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/report"
	"onlinerna/train/runs"
)

// A run ends with a page, whose evaluation is that of its best weights, and which rna report writes again with the same
// content.
func TestReport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	mustRun(t, append([]string{"train", "--epochs", "3", "--out", dir, "-q", "--rna-window", "2", "--seed", "7"}, quick...)...)
	page := filepath.Join(dir, "report.html")
	first, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	history, err := train.ReadHistory(dir)
	if err != nil {
		t.Fatal(err)
	}
	best := history[len(history)-1].Best
	e, err := report.ReadEvaluation(dir, best)
	if err != nil || e == nil {
		t.Fatalf("%v, %v", e, err)
	}
	images := 0
	for _, c := range e.Confusion {
		images += c[2]
	}
	if e.Score.Top1 != best.Score.Top1 || e.Score.Images != best.Score.Images || images != best.Score.Images {
		t.Errorf("the page evaluates %+v of %d images, the run %+v", e.Score, images, best.Score)
	}
	for _, want := range []string{"lenet on glyphs", "RNA's coefficients", "Images with the highest losses",
		"rna train --", "--epochs 3", "--seed 7", "data:image/png;base64,", "go1."} {
		if !strings.Contains(string(first), want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if err := os.Remove(page); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "report", dir)
	if again, err := os.ReadFile(page); err != nil || string(again) != string(first) {
		t.Errorf("rna report writes another page: %v", err)
	}
	mustRun(t, "report", dir, "--no-images")
	if small, err := os.ReadFile(page); err != nil || strings.Contains(string(small), "data:image") {
		t.Errorf("--no-images: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "evaluation.json")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "a.html")
	mustRun(t, "report", dir, "--no-eval", "-o", out)
	if small, err := os.ReadFile(out); err != nil || !strings.Contains(string(small), "need an evaluation") {
		t.Errorf("--no-eval: %v", err)
	}
	mustRun(t, "report", dir, "--device", "cpu")
	if again, err := os.ReadFile(page); err != nil || string(again) != string(first) {
		t.Errorf("a new evaluation makes another page: %v", err)
	}

	none := filepath.Join(t.TempDir(), "run")
	mustRun(t, append([]string{"train", "--epochs", "3", "--out", none, "-q", "--no-report"}, quick...)...)
	if _, err := os.Stat(filepath.Join(none, "report.html")); err == nil {
		t.Error("--no-report writes a page")
	}
}

// A path without a run, a run of another version and a run without weights get a line each.
func TestReportMistakes(t *testing.T) {
	dir := t.TempDir()
	run := func(name, config, metrics string) string {
		at := filepath.Join(dir, name)
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"config.json": config, "metrics.jsonl": metrics} {
			if err := os.WriteFile(filepath.Join(at, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return at
	}
	newer := run("newer", `{"model": "lenet", "warp_drive": 9}`, "")
	bare := run("bare", `{"model": "lenet"}`, `{"kind":"epoch","epoch":1,"best":{"kind":"sgd","epoch":1,"score":{}}}`+"\n")
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{newer, "warp-drive", 1}, {empty, "no run in " + empty, 1}, {filepath.Join(dir, "none"), "name a folder of runs", 1},
		{filepath.Join(newer, "config.json"), "is a file, no run", 1}, {bare, "the run has no weights yet", 0},
	} {
		status, _, stderr := runRNA(t, "report", c.path, "-o", filepath.Join(dir, "page.html"))
		if status != c.status || !strings.Contains(strings.ReplaceAll(stderr, "_", "-"), c.want) ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: status %d, %s", c.path, status, stderr)
		}
	}
	for _, command := range []string{"watch", "export-metrics"} {
		for _, c := range [][2]string{{newer, "warp-drive"}, {empty, "no run in " + empty}, {filepath.Join(dir, "none"),
			"name a folder of runs"}, {dir, "warp-drive"}} {
			if command == "watch" && c[0] == dir { // of the other two, one is a run
				continue
			}
			status, _, stderr := runRNA(t, command, c[0])
			if c[0] != dir && status != 1 || !strings.Contains(strings.ReplaceAll(stderr, "_", "-"), c[1]) {
				t.Errorf("%s %s: status %d, %s", command, c[0], status, stderr)
			}
		}
	}
	if status, stdout, _ := runRNA(t, "watch", bare); status != 0 || !strings.Contains(stdout, "interrupted after 1") {
		t.Errorf("watch: status %d, %s", status, stdout)
	}
	if status, stdout, _ := runRNA(t, "export-metrics", bare); status != 0 || !strings.HasPrefix(stdout, "step,epoch,lr,") {
		t.Errorf("export-metrics: status %d, %s", status, stdout)
	}
	if status, stdout, stderr := runRNA(t, "report", dir, "-o", filepath.Join(dir, "page.html")); status != 0 ||
		!strings.Contains(stderr, "Passed over") {
		t.Errorf("status %d, %s%s", status, stdout, stderr)
	}
}

// A folder of several runs stands for the one that is going.
func TestTheRun(t *testing.T) {
	run := func(dir string, state train.State) runs.Run { return runs.Run{Dir: dir, State: state} }
	done, failed, going, too := run("a", train.Done), run("b", train.Failed), run("c", train.Running), run("d", train.Running)
	for _, c := range []struct {
		list  []runs.Run
		going bool
		want  string
	}{
		{[]runs.Run{done}, true, "a"},
		{[]runs.Run{done, going, failed}, true, "c"},
		{[]runs.Run{done, going}, false, "x has 2 runs: name one, such as a"},
		{[]runs.Run{done, failed}, true, "x has 2 runs, and none of them is going: name one, such as a"},
		{[]runs.Run{done, going, too}, true, "x has 2 runs that are going: name one, such as c"},
	} {
		r, err := theRun("x", c.list, c.going)
		if err != nil && err.Error() != c.want || err == nil && r.Dir != c.want {
			t.Errorf("%+v, %v, want %s", r, err, c.want)
		}
	}
}
