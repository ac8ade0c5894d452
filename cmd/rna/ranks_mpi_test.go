//go:build mpi && linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// mpirun is rna on n ranks, started by one of the launchers.
func mpirun(t *testing.T, ctx context.Context, launcher string, n int, env string, args ...string) (*exec.Cmd,
	*bytes.Buffer) {
	t.Helper()
	if _, err := exec.LookPath(launcher); err != nil {
		if os.Getenv("ONLINERNA_MPI") == "require" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	line := []string{"-n", fmt.Sprint(n), os.Args[0]}
	if launcher == "mpirun.openmpi" {
		line = append([]string{"--allow-run-as-root", "--oversubscribe"}, line...)
	}
	cmd := exec.CommandContext(ctx, launcher, append(line, args...)...)
	cmd.Env = append(os.Environ(), rankVar+"=1")
	if env != "" {
		cmd.Env = append(cmd.Env, env)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

// on runs rna on n ranks and returns their output.
func on(t *testing.T, launcher string, n int, args ...string) string {
	t.Helper()
	cmd, out := mpirun(t, t.Context(), launcher, n, "", args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out.String()
}

// stepLosses returns the losses of the steps of a run.
func stepLosses(t *testing.T, dir string) (list []float64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var line struct {
			Kind string
			Loss float64
		}
		if err := json.Unmarshal(s.Bytes(), &line); err == nil && line.Kind == "step" {
			list = append(list, line.Loss)
		}
	}
	return list
}

var mpiLaunchers = []string{"mpirun.openmpi", "mpirun.mpich"}

// small is a training of a few steps.
func small(out string, more ...string) []string {
	return append([]string{"train", "--data", "glyphs", "--batch", "16", "--epochs", "3", "--limit-batches", "13",
		"--limit-val", "7", "--rna-start", "1",
		"--seed", "3", "--threads", "1", "--workers", "1", "--quiet", "--out", out}, more...)
}

// Ranks have the losses of one process that accumulates their batches; their bits repeat, and only rank 0 writes files.
func TestRanksTrainAsOneProcess(t *testing.T) {
	dir := t.TempDir()
	for _, n := range []int{2, 3, 4} {
		one := filepath.Join(dir, fmt.Sprint("one", n))
		if code, _, stderr := runRNA(t, small(one, "--accumulate", fmt.Sprint(n))...); code != 0 {
			t.Fatal(stderr)
		}
		want := stepLosses(t, one)
		for _, launcher := range mpiLaunchers {
			out := filepath.Join(dir, fmt.Sprint(launcher, n))
			said := on(t, launcher, n, small(out)...)
			if strings.Count(said, "final.safetensors") != 1 || !strings.Contains(said, fmt.Sprintf("%d ranks on 1 node, ", n)) {
				t.Errorf("%s: %s", launcher, said)
			}
			got := stepLosses(t, out)
			if len(got) != len(want) {
				t.Fatalf("%d steps, want %d", len(got), len(want))
			}
			for i := range got {
				if !(math.Abs(got[i]-want[i]) < 2e-5*math.Abs(want[i])) {
					t.Errorf("%s, %d ranks, step %d: loss %g, want %g", launcher, n, i+1, got[i], want[i])
				}
			}
			if n != 3 {
				continue
			}
			again := out + "-again"
			on(t, launcher, n, small(again)...)
			for _, f := range []string{"final.safetensors", "rna.safetensors"} {
				a, err := os.ReadFile(filepath.Join(out, f))
				b, err2 := os.ReadFile(filepath.Join(again, f))
				if err != nil || err2 != nil || !bytes.Equal(a, b) {
					t.Errorf("%s: %s has other bits the second time (%v, %v)", launcher, f, err, err2)
				}
			}
		}
	}
}

// A rank is killed; fewer ranks resume. Then one rank is told to stop: all save and exit with 130.
func TestKillResumeStop(t *testing.T) {
	for _, launcher := range mpiLaunchers {
		t.Run(launcher, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			args := []string{"train", "--data", "glyphs", "--batch", "16", "--epochs", "400", "--limit-batches", "40",
				"--limit-val", "1", "--rna", "off",
				"--threads", "1", "--workers", "1", "--quiet", "--out", out}
			cmd, said := mpirun(t, t.Context(), launcher, 4, "", args...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, out, 3, 0)
			from := time.Now()
			syscall.Kill(child(t, out), syscall.SIGKILL)
			if err := cmd.Wait(); err == nil || time.Since(from) > 30*time.Second {
				t.Fatalf("a rank was killed: %v after %v\n%s", err, time.Since(from), said)
			}
			before := epochs(t, out)
			cmd, said = mpirun(t, t.Context(), launcher, 3, "", "train", "--resume", out, "--quiet", "--workers", "1")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, out, before+2, before)
			syscall.Kill(child(t, out), syscall.SIGTERM)
			err := cmd.Wait()
			if err == nil || !strings.Contains(said.String(), "interrupted in epoch") || strings.Count(said.String(),
				"Go on with") != 1 {
				t.Fatalf("a rank was told to stop: %v\n%s", err, said)
			}
			code := cmd.ProcessState.ExitCode()
			if m := regexp.MustCompile(`(?i)exit code: *(\d+)|EXIT CODE: (\d+)`).FindStringSubmatch(said.String()); m != nil &&
				code != 130 {
				code, _ = strconv.Atoi(m[1] + m[2])
			}
			if code != 130 {
				t.Errorf("exit code %d\n%s", code, said)
			}
		})
	}
}

// evalFiles evaluates with all outputs and returns them, the printed text first. run runs rna.
func evalFiles(t *testing.T, dir string, run func(args ...string) string, more ...string) (list [4]string) {
	t.Helper()
	files := []string{filepath.Join(dir, "predictions.csv"), filepath.Join(dir, "confusion.csv"),
		filepath.Join(dir, "worst.png")}
	list[0] = run(append([]string{"eval", "--data", "glyphs", "--batch", "13", "--threads", "1", "--workers", "1",
		"--per-class", "--predictions", files[0], "--confusion", files[1],
		"--worst", files[2], "--worst-count", "5"}, more...)...)
	for i, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		list[i+1] = string(b)
	}
	return list
}

// Ranks evaluate and write exactly as one process does: predictions in order, the confusion matrix, the sheet of the
// worst images.
func TestRanksEvaluate(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	itselfDone := func(args ...string) string {
		b, err := itself(args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, b)
		}
		return string(b)
	}
	itselfDone(small(run)...)
	weights := []string{"--weights", filepath.Join(run, "final.safetensors")}
	want := evalFiles(t, dir, itselfDone, weights...)
	for i, n := range []int{3, 2} {
		got := evalFiles(t, dir, func(args ...string) string { return on(t, mpiLaunchers[i], n, args...) }, weights...)
		if ranks := regexp.MustCompile(`(?m)^\d ranks on 1 node, .*\n`); len(ranks.FindAllString(got[0], -1)) != 1 ||
			!slices.Equal(words(ranks.ReplaceAllString(got[0], "")), words(want[0])) {
			t.Errorf("%s\nwant\n%s", got[0], want[0])
		}
		for k, what := range []string{"predictions", "confusion matrix", "sheet"} {
			if got[k+1] != want[k+1] {
				t.Errorf("%d ranks: another %s: %d bytes, want %d", n, what, len(got[k+1]), len(want[k+1]))
			}
		}
	}
	// Other weights on one rank.
	cmd, said := mpirun(t, t.Context(), mpiLaunchers[0], 2, argsVar+"=1 --weights "+filepath.Join(run,
		"best.safetensors")+" --test-flip", "eval", "--data", "glyphs",
		"--weights", weights[1])
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "test-flip: rank 1 on ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// words are the different words of a text, sorted: Open MPI's ranks write to a terminal, where lines are wrapped, heads
// are bold, and tables may be divided.
func words(s string) []string {
	list := strings.Fields(strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(s))
	slices.Sort(list)
	return slices.Compact(list)
}

// Ranks merge to the bits of one process.
func TestRanksMerge(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	if code, _, stderr := runRNA(t, small(run, "--keep-every", "1")...); code != 0 {
		t.Fatal(stderr)
	}
	kept, err := filepath.Glob(filepath.Join(run, "kept", "*.safetensors"))
	if err != nil || len(kept) != 3 {
		t.Fatal(kept, err)
	}
	merge := func(by, out string) []string {
		return append([]string{"merge", "-o", out, "--by", by, "--shard-size", "20kB", "--quiet"}, kept...)
	}
	for _, by := range []string{"rna", "wsm"} {
		one := filepath.Join(dir, by)
		if code, _, stderr := runRNA(t, merge(by, one)...); code != 0 {
			t.Fatal(stderr)
		}
		all, err := os.ReadDir(one)
		if err != nil || len(all) < 4 {
			t.Fatal(all, err)
		}
		for _, launcher := range mpiLaunchers {
			t.Run(by+"/"+launcher, func(t *testing.T) {
				out := filepath.Join(dir, by+launcher)
				if said := on(t, launcher, 3, merge(by, out)...); strings.Count(said, "shards") != 2 { // the table's head, the last line
					t.Error(said)
				}
				for _, e := range all {
					a, err := os.ReadFile(filepath.Join(one, e.Name()))
					b, err2 := os.ReadFile(filepath.Join(out, e.Name()))
					if err != nil || err2 != nil || !bytes.Equal(a, b) {
						t.Errorf("%s has other bits (%v, %v)", e.Name(), err, err2)
					}
				}
			})
		}
	}
}
