package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"onlinerna/train"
)

// TestOptionsPage checks that docs/options.md equals the output of 'rna options --markdown'.
func TestOptionsPage(t *testing.T) {
	want := mustRun(t, "options", "--markdown")
	if got, err := os.ReadFile("../../docs/options.md"); err != nil || string(got) != want {
		t.Errorf("docs/options.md is stale (%v): run 'go generate ./cmd/rna'", err)
	}
}

// TestOptions lists all options, and some of them.
func TestOptions(t *testing.T) {
	var rows []struct{ Name, Group, Default string }
	if err := json.Unmarshal([]byte(mustRun(t, "options", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	help := mustRun(t, "train", "--help")
	for _, r := range rows {
		if !strings.Contains(help, "--"+r.Name) {
			t.Errorf("rna train --help does not have --%s", r.Name)
		}
	}
	if n := len(train.Options()); len(rows) <= n {
		t.Errorf("%d options, %d of files", len(rows), n)
	}
	some := mustRun(t, "options", "lr-final", "rna_window")
	if !strings.Contains(some, "lr-final") || !strings.Contains(some, "rna-window") || strings.Contains(some, "lr-gamma") {
		t.Errorf("output\n%s", some)
	}
	if status, _, err := runRNA(t, "options", "zebra"); status != 2 || !strings.Contains(err, "zebra") {
		t.Errorf("status %d, %q", status, err)
	}
}
