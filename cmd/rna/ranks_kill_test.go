//go:build mpi && linux

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// killsVar is the number of ranks that TestKillAnyTime kills, at seconds for each; without it the test is skipped.
const killsVar = "ONLINERNA_KILLS"

// Any rank may be killed at any time: the others end, the folder can be resumed or holds no run yet, and a run that is
// resumed after each kill ends with the bits of an undisturbed one.
func TestKillAnyTime(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv(killsVar))
	if err != nil {
		t.Skip("\"make check-kill\" runs it")
	}
	const n = 3
	for i, launcher := range mpiLaunchers {
		random := rand.New(rand.NewPCG(uint64(i), 7))
		dir := t.TempDir()
		args := func(out string) []string {
			return []string{"train", "--data", "glyphs", "--batch", "16", "--epochs", "30", "--limit-batches", "40",
				"--limit-val", "2", "--rna-start", "1", "--rna-window", "3",
				"--threads", "1", "--workers", "1", "--quiet", "--seed", "5", "--out", out}
		}
		alone, out := filepath.Join(dir, "alone"), filepath.Join(dir, "run")
		on(t, launcher, n, args(alone)...)
		done := 0
		for killed := 0; killed < kills; {
			line := []string{"train", "--resume", out, "--quiet", "--workers", "1"}
			if _, err := os.Stat(filepath.Join(out, "config.json")); err != nil {
				if _, err := os.Stat(filepath.Join(out, "metrics.jsonl")); err == nil {
					t.Fatal("a folder with metrics and no run")
				}
				os.RemoveAll(out)
				line = args(out)
			}
			cmd, said := mpirun(t, t.Context(), launcher, n, "", line...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Duration(random.IntN(2500)) * time.Millisecond)
			rank := random.IntN(n)
			pid := process(out, rank)
			if pid != 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			from := time.Now()
			err := cmd.Wait()
			switch took := time.Since(from); {
			case pid == 0 && err == nil: // it had finished
				done++
				os.RemoveAll(out)
			case pid == 0: // it had not started
			case took > 30*time.Second:
				t.Fatalf("%s: rank %d was killed, and the others ended %v later\n%s", launcher, rank, took, said)
			case err == nil && !bytes.Contains(said.Bytes(), []byte("final.safetensors")):
				t.Fatalf("%s: rank %d was killed, and nobody says so\n%s", launcher, rank, said)
			default:
				killed++
			}
		}
		if _, err := os.Stat(filepath.Join(out, "config.json")); err == nil {
			on(t, launcher, n, "train", "--resume", out, "--quiet", "--workers", "1")
		} else {
			os.RemoveAll(out)
			on(t, launcher, n, args(out)...)
		}
		for _, f := range []string{"final.safetensors", "rna.safetensors"} {
			a, err := os.ReadFile(filepath.Join(alone, f))
			b, err2 := os.ReadFile(filepath.Join(out, f))
			if err != nil || err2 != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s has other bits after %d kills (%v, %v)", launcher, f, kills, err, err2)
			}
		}
		t.Logf("%s: %d kills, %d runs over before", launcher, kills, done)
	}
}
