package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Impossible numbers of workers and threads, and invalid sizes, are mistakes that name their option.
func TestCoresAndBytes(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	for _, c := range []struct{ args, want string }{
		{"train --workers 1000000000", "--workers 1000000000: at most 4096"},
		{"train --threads 1000000000", "--threads 1000000000: at most 4096"},
		{"train --threads -1", "--threads -1: must not be negative"},
		{"train --workers many", "--workers many: want a whole number"},
		{"bench train --model lenet --threads 5000", "--threads 5000: at most 4096"},
		{"data check . --workers 99999999999999999999", "--workers 99999999999999999999: want a number of usual size"},
		{"train --decode-memory much", "--decode-memory much: want a number of bytes, as 800MB or 2GB"},
		{"train --decode-memory -1GB", "--decode-memory -1GB: want a number"},
		{"train --decode-memory 0", "--decode-memory 0: want a number"},
	} {
		status, _, stderr := runRNA(t, append(strings.Fields(c.args), "--out", out)...)
		if strings.HasPrefix(c.args, "bench") || strings.HasPrefix(c.args, "data") {
			status, _, stderr = runRNA(t, strings.Fields(c.args)...)
		}
		if status != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: status %d, %s", c.args, status, stderr)
		}
	}
}
