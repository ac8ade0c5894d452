//go:build soak && linux

package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSoakSweep kills sweeps with SIGKILL at any time, goes on with --resume, and compares the SHA-256 of all weights
// with those of sweeps that nothing disturbed. SOAK_KILLS and SOAK_SEED are those of TestSoak.
func TestSoakSweep(t *testing.T) {
	seed := soakNumber(t, "SOAK_SEED", 1)
	s := &soak{T: t, Rand: rand.New(rand.NewPCG(uint64(seed), 1))}
	kills := soakNumber(t, "SOAK_KILLS", 200)
	fmt.Printf("\n| sweep | sweeps | SIGKILLs | ended with equal weights |\n|-|-|-|-|\n")
	for name, options := range map[string]string{
		"grid, 2 seeds":    "--set lr=0.02,0.1 --seeds 2",
		"ASHA, 2 jobs":     "--set lr=log:1e-3..1 --trials 9 --halving 3 --jobs 2",
		"TPE, then halved": "--set lr=log:1e-3..1 --set momentum=lin:0..0.9 --trials 14 --search tpe --halving 2",
	} {
		args := append([]string{"sweep"}, strings.Fields(options+
			" --epochs 4 --limit-batches 3 --limit-val 2 --batch 8 --rna-start 1 --threads 1 --device cpu -q")...)
		weights := func(dir string) map[string]string {
			sums := map[string]string{}
			paths, _ := filepath.Glob(filepath.Join(dir, "*", "*.safetensors"))
			for _, path := range paths {
				b, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				rel, _ := filepath.Rel(dir, path)
				sums[rel] = fmt.Sprintf("%x", sha256.Sum256(b))
			}
			return sums
		}
		whole := filepath.Join(t.TempDir(), "sweep")
		from := time.Now()
		if cmd, said := s.start(append(args, "-o", whole)...); cmd.Wait() != nil {
			t.Fatal(said)
		}
		s.took = time.Since(from)
		want := weights(whole)
		if len(want) < 8 {
			t.Fatalf("%s: %d files of weights", name, len(want))
		}
		sweeps, killed, same := 0, 0, 0
		for ; killed < kills/4; sweeps++ {
			dir := filepath.Join(t.TempDir(), "sweep")
			for starts := 0; ; starts++ {
				now := append(args, "-o", dir)
				if _, err := os.Stat(filepath.Join(dir, "sweep.json")); err == nil {
					now = []string{"sweep", "--resume", dir, "-q"}
				}
				cmd, said := s.start(now...)
				if starts < 6 { // then it may end
					time.Sleep(time.Duration(s.Float64() * .8 * float64(s.took)))
					cmd.Process.Kill()
				}
				err := cmd.Wait()
				if err == nil {
					break
				}
				if killed++; cmd.ProcessState.ExitCode() != -1 {
					t.Fatalf("%s: %v: %s", name, err, said)
				}
			}
			got, ok := weights(dir), true
			for path, sum := range want {
				if got[path] != sum {
					ok = false
					t.Errorf("%s: %s differs", dir, path)
				}
			}
			if ok && len(got) == len(want) {
				same++
			} else if ok {
				t.Errorf("%s: %d files of weights, want %d", dir, len(got), len(want))
			}
		}
		fmt.Printf("| %s | %d | %d | %d |\n", name, sweeps, killed, same)
	}
}
