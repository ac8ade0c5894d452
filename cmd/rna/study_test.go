package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"onlinerna/train"
	"onlinerna/train/hook"
)

// A study trains offline and online from one seed. The offline run's iterates are standard training, and the online run
// equals it up to the first extrapolated point that replaces its iterate.
func TestStudy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "study")
	out := mustRun(t, "study", "--epochs", "6", "--limit-batches", "3", "--limit-val", "1", "--batch", "32", "--quiet",
		"--seed", "4", "--profile", "2", "--out", dir)
	plain := filepath.Join(t.TempDir(), "plain")
	mustRun(t, "train", "--epochs", "6", "--limit-batches", "3", "--limit-val", "1", "--batch", "32", "--quiet", "--seed",
		"4", "--rna", "off", "--out", plain)
	for _, run := range []string{"offline", "online"} {
		if _, err := os.Stat(filepath.Join(dir, run, "profile.json")); err != nil {
			t.Error(err)
		}
	}
	histories := map[string][]hook.EpochRecord{}
	for name, folder := range map[string]string{"offline": filepath.Join(dir, "offline"), "online": filepath.Join(dir,
		"online"), "plain": plain} {
		h, err := train.ReadHistory(folder)
		if err != nil || len(h) != 6 {
			t.Fatalf("%s: %d epochs, %v", name, len(h), err)
		}
		histories[name] = h
	}
	injected := false
	for i, want := range histories["plain"] {
		if got := histories["offline"][i]; *got.SGD != *want.SGD {
			t.Errorf("epoch %d: standard training scores %+v, beside RNA %+v", want.Epoch, *want.SGD, *got.SGD)
		}
		online := histories["online"][i]
		if !injected && *online.SGD != *want.SGD {
			t.Errorf("epoch %d: before anything was put back online scores %+v, want %+v", want.Epoch, *online.SGD, *want.SGD)
		}
		injected = injected || online.RNA != nil && online.RNA.Injected
	}
	if !injected {
		t.Error("the online run put nothing back")
	}
	for _, want := range []string{"standard %", "online RNA %", "‖c − 1/N‖", "condition number", "study.svg"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	svg, err := os.ReadFile(filepath.Join(dir, "study.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "standard", "offline RNA", "online RNA", "validation error, %",
		"distance of c from 1/N"} {
		if !strings.Contains(strings.ToLower(string(svg)), strings.ToLower(want)) {
			t.Errorf("the figure lacks %q", want)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "--rna online") || !strings.Contains(string(page), "Confusion") {
		t.Errorf("the page lacks a run or its classes: %v", err)
	}
	without := filepath.Join(t.TempDir(), "without")
	mustRun(t, "study", "--epochs", "4", "--limit-batches", "1", "--limit-val", "1", "--quiet", "--no-report",
		"--out", without)
	if _, err := os.Stat(filepath.Join(without, "report.html")); err == nil {
		t.Error("--no-report wrote a page")
	}
	if status, _, stderr := runRNA(t, "study", "--rna", "online"); status != 2 || !strings.Contains(stderr,
		"--rna does not go with a study") {
		t.Errorf("status %d, %s", status, stderr)
	}
}

// A run of one epoch has a figure, too.
func TestOneEpochIsDrawn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	out := mustRun(t, "train", "--epochs", "1", "--limit-batches", "2", "--limit-val", "1", "--rna", "off", "-o", dir)
	if _, err := os.Stat(filepath.Join(dir, "plot.svg")); err != nil || !strings.Contains(out, "plot.svg") {
		t.Errorf("%v\n%s", err, out)
	}
}
