package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train/report"
)

func TestCompareAndRuns(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for run, args := range map[string]string{"a": "--lr 0.05", "b": "--lr 0.02", "b2": "--lr 0.02 --seed 1"} {
		mustRun(t, append(append([]string{"train", "--epochs", "2", "-o", at(run), "-q", "--rna", "off"},
			strings.Fields(args)...), quick[:6]...)...)
	}
	out := mustRun(t, "compare", at("a"), at("b")+"/", at("b2"), "--plot", at("runs.pdf"), "--csv", at("runs.csv"))
	for _, want := range []string{"A  a\n", "B  b, b2\n", "0.02  ", "same images"} {
		if !strings.Contains(out, want) || strings.Contains(out, "lr-final") { // which follows from lr
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if x, err := os.ReadFile(at("runs.pdf")); err != nil || !strings.HasPrefix(string(x), "%PDF-") {
		t.Errorf("the figure begins with %.8q, %v", x, err)
	}
	if x, err := os.ReadFile(at("runs.csv")); err != nil || strings.Count(string(x), "\n") != 4 {
		t.Errorf("%s, %v", x, err)
	}
	status, text, log := runRNA(t, "compare", dir, "--sort", "lr", "--json")
	var c report.Comparison
	if err := json.Unmarshal([]byte(text), &c); status != 0 || err != nil || len(c.Groups) != 2 ||
		len(c.Groups[0].Runs) != 2 || log != "" {
		t.Errorf("status %d, %v, %s %s", status, err, log, text)
	}

	if err := os.MkdirAll(at("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, text, log = runRNA(t, "runs", dir, "--sort", "best")
	if status != 0 || strings.Count(text, " done\n") != 3 || log != "Passed over: no run in "+at("empty")+"\n" {
		t.Errorf("status %d\n%s%s", status, text, log)
	}
	status, text, _ = runRNA(t, "runs", dir, "--where", "lr=0.02", "--where", "seed=1", "--json")
	var rows []report.Row
	if err := json.Unmarshal([]byte(text), &rows); status != 0 || err != nil || len(rows) != 1 || rows[0].Name != "b2" {
		t.Errorf("status %d, %v\n%s", status, err, text)
	}
	if _, text, _ := runRNA(t, "runs", dir, "--where", "state=failed"); text != "None of 3 runs meets state=failed\n" {
		t.Error(text)
	}
	for want, args := range map[string][]string{
		"name runs":           {"compare"},
		"no run in":           {"compare", at("empty")},
		"there is no folder":  {"compare", at("a"), at("none")},
		".svg, .png, .pdf":    {"compare", at("a"), at("b"), "--plot", at("x.jpg")},
		"unknown option":      {"compare", at("a"), "--sort", "speed"},
		"belongs to the run":  {"compare", at("a"), "--csv", at("a") + "/metrics.jsonl"},
		"no state is":         {"runs", dir, "--where", "state=over"},
		`unknown option "bst`: {"runs", dir, "--sort", "bst"},
	} {
		fails(t, args, want)
	}
}
