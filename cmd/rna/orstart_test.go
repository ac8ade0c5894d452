package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One command starts, resumes and finishes a run.
func TestResumeOrStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	args := append([]string{"train", "--resume-or-start", "-o", dir, "--epochs", "2", "--lr", "0.05", "--seed", "7", "-q"},
		quick...)
	// As left by a kill before the first checkpoint.
	if err := os.MkdirAll(filepath.Join(dir, "checkpoint", "000001.new"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ want, not string }{{"", "Resumed"}, {"Resumed after epoch 2", ""}} {
		status, out, stderr := runRNA(t, args...)
		if status != 0 || !strings.Contains(out, c.want) || c.not != "" && strings.Contains(out, c.not) {
			t.Fatalf("status %d: %s%s", status, out, stderr)
		}
	}
	fails(t, append(args, "--lr", "0.1"), "the run in "+dir+" was started with --lr 0.05")
	fails(t, []string{"train", "--resume-or-start"}, "name that by -o")
	fails(t, []string{"train", "--resume-or-start", "-o", dir, "--resume", dir}, "without --resume")
	fails(t, []string{"train", "--data-changed", "ok"}, "give --resume, too")
	// More epochs: the same command with more epochs continues.
	longer := append(args, "--epochs", "3")
	if status, out, stderr := runRNA(t, longer...); status != 0 || !strings.Contains(out, "Resumed after epoch 2") {
		t.Errorf("status %d: %s%s", status, out, stderr)
	}
}

// A run that is repeatedly killed before its first checkpoint still starts, and ends like an undisturbed one.
func TestKilledBeforeCheckpoint(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 8
	}
	dir := t.TempDir()
	args := func(out string) []string {
		return append([]string{"train", "--resume-or-start", "--epochs", "1", "-q", "--rna", "off", "--threads", "1", "-o",
			filepath.Join(dir, out)}, quick[:6]...)
	}
	began := time.Now()
	if b, err := itself(args("whole")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	took := time.Since(began)
	rng := rand.New(rand.NewPCG(1, 2))
	for range kills {
		cmd := itself(args("killed")...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rng.Int64N(int64(took))))
		cmd.Process.Kill()
		cmd.Wait()
	}
	if b, err := itself(args("killed")...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	var final [2][]byte
	for i, name := range []string{"whole", "killed"} {
		b, err := os.ReadFile(filepath.Join(dir, name, "final.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		final[i] = b
	}
	if !bytes.Equal(final[0], final[1]) {
		t.Error("other weights than those of a run that was not killed")
	}
}
