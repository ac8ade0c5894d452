//go:build gpu

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"onlinerna/cuda/check/sim"
	"onlinerna/cuda/lazy"
	"onlinerna/train/bench"
)

// needGPUs skips a test that requires n GPUs unless they are simulated, and then sets their number.
func needGPUs(t *testing.T, n int) {
	t.Helper()
	needGPU(t)
	if !sim.Active() {
		t.Skip("these tests need GPUs by the number, and kill ranks")
	}
	if f, err := filepath.Abs(filepath.Dir(lazy.Driver.File())); err == nil && os.Getenv(lazy.SearchVariable) == "" {
		t.Setenv(lazy.SearchVariable, f)
	}
	t.Setenv("RNA_SIM_DEVICES", fmt.Sprint(n))
	t.Setenv(rankVar, "1")
}

// onGPUs starts rna on simulated GPUs.
func onGPUs(t *testing.T, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Cancel = func() error { return cmd.Process.Kill() } // its ranks end with it
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = 5 * time.Second
	return cmd, &out
}

// doneOnGPUs is onGPUs for commands that must succeed. It returns rna's output.
func doneOnGPUs(t *testing.T, args ...string) string {
	t.Helper()
	cmd, out := onGPUs(t, nil, args...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out.String()
}

// ranksRun is a training of a few steps: 13 batches; the last step of four ranks has one.
func ranksRun(out string, more ...string) []string {
	return append([]string{"train", "--data", "glyphs", "--batch", "8", "--epochs", "3", "--limit-batches", "13",
		"--limit-val", "3", "--rna-start", "1", "--rna-window", "2",
		"--seed", "3", "--threads", "1", "--workers", "1", "--quiet", "--precision", "float32", "--deterministic",
		"--comm-timeout", "60s", "--out", out}, more...)
}

// near fails unless losses equal another run's within a relative tolerance.
func near(t *testing.T, what string, got, want []float64, part float64) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%s: %d losses, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= part*math.Abs(want[i])) {
			t.Errorf("%s, loss %d: %g, want %g", what, i, got[i], want[i])
		}
	}
}

// Four GPUs have the losses of one that accumulates their batches, also in evaluation, where images are dealt unevenly;
// their bits repeat, and only rank 0 writes files. Gradients sent as bfloat16 give them less exactly.
func TestRanksOnGPU(t *testing.T) {
	needGPUs(t, 4)
	dir := t.TempDir()
	one, four, again, narrow := filepath.Join(dir, "one"), filepath.Join(dir, "four"), filepath.Join(dir, "again"),
		filepath.Join(dir, "narrow")
	doneOnGPUs(t, ranksRun(one, "--device", "cuda", "--accumulate", "4")...)
	said := doneOnGPUs(t, ranksRun(four, "--device", "cuda:all")...)
	if strings.Count(said, "final.safetensors") != 1 || !strings.Contains(said, "4 ranks on 1 node, NCCL 2.27.3 and "+
		"sockets: 32 images a step") {
		t.Error(said)
	}
	want := losses(t, one)
	near(t, "four ranks", losses(t, four), want, 2e-5)
	doneOnGPUs(t, ranksRun(again, "--device", "cuda:0,1,2,3")...)
	for _, f := range []string{"final.safetensors", "rna.safetensors"} {
		a, err := os.ReadFile(filepath.Join(four, f))
		b, err2 := os.ReadFile(filepath.Join(again, f))
		if err != nil || err2 != nil || !bytes.Equal(a, b) {
			t.Errorf("%s has other bits the second time (%v, %v)", f, err, err2)
		}
	}
	doneOnGPUs(t, ranksRun(narrow, "--device", "cuda:all", "--comm-precision", "bfloat16")...)
	got := losses(t, narrow)
	near(t, "bfloat16 between ranks", got, want, 1e-2)
	if slices.Equal(got, losses(t, four)) {
		t.Error("gradients that are sent as bfloat16 have the same losses")
	}
	// Evaluation is dealt, too: 40 images in 14 batches.
	var predictions [2]string
	for k, device := range []string{"cuda", "cuda:all"} {
		file := filepath.Join(dir, "predictions.csv")
		said := doneOnGPUs(t, "eval", "--weights", filepath.Join(one, "final.safetensors"), "--data", "glyphs",
			"--val-split", "0.01", "--batch", "3", "--workers", "1",
			"--precision", "float32", "--predictions", file, "--device", device)
		b, err := os.ReadFile(file)
		if err != nil || strings.Contains(said, "4 ranks on 1 node") != (k == 1) ||
			strings.Count(said, "lenet on 40 images") != 1 {
			t.Errorf("%v\n%s", err, said)
		}
		predictions[k] = string(b)
	}
	if predictions[0] != predictions[1] || strings.Count(predictions[0], "\n") != 41 {
		t.Error("four GPUs have other predictions than one")
	}
}

// A net with BatchNorm, whose statistics the ranks average; the last step has three batches.
func TestRanksResNetOnGPU(t *testing.T) {
	needGPUs(t, 4)
	dir := t.TempDir()
	run := func(name string, more ...string) []float64 {
		out := filepath.Join(dir, name)
		doneOnGPUs(t, append([]string{"train", "--data", "glyphs", "--model", "resnet20", "--batch", "2", "--epochs", "1",
			"--limit-batches", "7", "--limit-val", "1", "--rna", "off",
			"--seed", "3", "--workers", "1", "--quiet", "--precision", "float32", "--deterministic", "--out", out}, more...)...)
		return losses(t, out)
	}
	want := run("one", "--device", "cuda", "--accumulate", "4")
	got := run("four", "--device", "cuda:all")
	near(t, "steps", got[:2], want[:2], 1e-4) // the evaluation uses averaged statistics
}

// A rank is killed; fewer ranks resume. Then the program is told to stop: it saves and exits with 130.
func TestRanksKillResumeStopOnGPU(t *testing.T) {
	needGPUs(t, 4)
	out := filepath.Join(t.TempDir(), "run")
	cmd, said := onGPUs(t, nil, "train", "--data", "glyphs", "--batch", "8", "--epochs", "400", "--limit-batches", "12",
		"--limit-val", "1", "--rna", "off", "--threads", "1", "--workers", "1",
		"--quiet", "--precision", "float32", "--device", "cuda:all", "--out", out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, out, 2, 0)
	from := time.Now()
	syscall.Kill(child(t, out), syscall.SIGKILL)
	if err := cmd.Wait(); err == nil || time.Since(from) > 20*time.Second || !strings.Contains(said.String(),
		"rank 1 on cuda:1 ended with signal: killed") {
		t.Fatalf("a rank was killed: %v after %v\n%s", err, time.Since(from), said)
	}
	before := epochs(t, out)
	cmd, said = onGPUs(t, nil, "train", "--resume", out, "--quiet", "--workers", "1", "--device", "cuda:0,1,3")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, out, before+1, before)
	cmd.Process.Signal(syscall.SIGTERM)
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || strings.Count(said.String(), "Go on with") != 1 ||
		!strings.Contains(said.String(), "3 ranks on 1 node") {
		t.Fatalf("it was told to stop: %v, exit code %d\n%s", err, code, said)
	}
}

// The error about a hanging rank names it and the step.
func TestRanksHangOnGPU(t *testing.T) {
	needGPUs(t, 3)
	out := filepath.Join(t.TempDir(), "run")
	cmd, said := onGPUs(t, nil, "train", "--data", "glyphs", "--batch", "8", "--epochs", "400", "--limit-batches", "12",
		"--limit-val", "1", "--rna", "off", "--threads", "1",
		"--workers", "1", "--quiet", "--precision", "float32", "--device", "cuda:all", "--comm-timeout", "8s", "--out", out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	wait(t, out, 1, 0)
	hung := child(t, out)
	syscall.Kill(hung, syscall.SIGSTOP)
	defer syscall.Kill(hung, syscall.SIGKILL)
	err := cmd.Wait()
	if s := said.String(); err == nil || !strings.Contains(s, "missing: rank 1 on ") || !strings.Contains(s, "epoch ") ||
		!strings.Contains(s, "was not done after 8s") {
		t.Errorf("%v\n%s", err, s)
	}
}

// Launches with GPUs that cannot work together report the reason.
func TestRanksMistakesOnGPU(t *testing.T) {
	needGPUs(t, 2)
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := fmt.Sprint("MASTER_PORT=", taken.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct {
		want string
		env  []string
		args []string
	}{
		{"Duplicate GPU detected", nil, []string{"--device", "cuda:0,0"}},
		{"no GPU 7", nil, []string{"--device", "cuda:0,7"}},
		{"takes a process for each of 2 GPUs", nil, []string{"--device", "cuda:all", "--distributed", "off"}},
		{"not on device cpu", []string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29511"},
			[]string{"--device", "cpu"}},
		{"missing: rank 1", []string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29512"},
			[]string{"--comm-timeout", "1s"}},
		{"is not at localhost:29513", []string{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29513"},
			[]string{"--comm-timeout", "1s"}},
		{"address already in use", []string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", port},
			[]string{"--comm-timeout", "5s"}},
		// no rank listens there
		{"rank", []string{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", port}, []string{"--comm-timeout", "1s"}},
		{"WORLD_SIZE=2", []string{"RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=localhost", port}, nil},
		{"is for several GPUs", nil, []string{"--comm-precision", "bfloat16", "--device", "cuda"}},
		{"use one of float32, bfloat16", nil, []string{"--comm-precision", "float64", "--device", "cuda:all"}},
	} {
		out := filepath.Join(dir, "run")
		cmd, said := onGPUs(t, c.env, ranksRun(out, c.args...)...)
		if err := cmd.Run(); err == nil || !strings.Contains(said.String(), c.want) {
			t.Errorf("%v %v: %v, want %q\n%s", c.env, c.args, err, c.want, said)
		}
		if _, err := os.Stat(filepath.Join(out, "final.safetensors")); err == nil {
			t.Errorf("%v: it trained", c.args)
		}
	}
}

// Ranks started by torchrun's variables, Slurm's, MPICH's, or by Open MPI's mpirun equal those of cuda:all: NCCL's
// ranks meet without MPI.
func TestRanksOfVariablesOnGPU(t *testing.T) {
	needGPUs(t, 2)
	dir := t.TempDir()
	own, theirs := filepath.Join(dir, "own"), filepath.Join(dir, "theirs")
	args := func(out string, more ...string) []string {
		return append([]string{"train", "--data", "glyphs", "--batch", "8", "--epochs", "1", "--limit-batches", "5",
			"--limit-val", "1", "--rna", "off", "--seed", "3", "--workers", "1",
			"--quiet", "--precision", "float32", "--deterministic", "--out", out}, more...)
	}
	doneOnGPUs(t, args(own, "--device", "cuda:all")...)
	same := func(launcher string) {
		if !slices.Equal(losses(t, own), losses(t, theirs)) {
			t.Errorf("%s: other losses than those of cuda:all", launcher)
		}
		if err := os.RemoveAll(theirs); err != nil {
			t.Error(err)
		}
	}
	for _, env := range []string{
		"RANK=%d WORLD_SIZE=2 LOCAL_RANK=%[1]d MASTER_ADDR=localhost MASTER_PORT=29519",
		"SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=%[1]d SLURM_STEP_NODELIST=localhost SLURM_JOB_ID=5",
		"PMI_RANK=%d PMI_SIZE=2 MPI_LOCALRANKID=%[1]d MPI_LOCALNRANKS=2",
	} {
		var all sync.WaitGroup
		for k := range 2 {
			cmd, said := onGPUs(t, strings.Fields(fmt.Sprintf(env, k)), args(theirs)...)
			all.Go(func() {
				if err := cmd.Run(); err != nil {
					t.Errorf("%s, rank %d: %v\n%s", env, k, err, said)
				}
			})
		}
		all.Wait()
		same(env)
	}
	mpirun, err := exec.LookPath("mpirun.openmpi")
	if err != nil {
		t.Log("without mpirun of Open MPI")
		return
	}
	cmd := exec.CommandContext(t.Context(), mpirun, append([]string{"--allow-run-as-root", "--oversubscribe",
		"--bind-to", "none", "-n", "2", os.Args[0]}, args(theirs, "--device", "cuda")...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	same("mpirun")
}

// Sums over GPUs are measured and correct.
func TestRanksBenchCommOnGPU(t *testing.T) {
	needGPUs(t, 3)
	file := filepath.Join(t.TempDir(), "comm.json")
	said := doneOnGPUs(t, "bench", "comm", "--device", "cuda:all", "--max", "40000", "--rounds", "1", "--json-file", file)
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r bench.CommResult
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Sizes) != 7 || r.Ranks != 3 || r.Device != "cuda" || strings.Contains(said, "plain") ||
		strings.Count(said, "3 ranks on 1 node, NCCL 2.27.3 and sockets") != 1 {
		t.Errorf("%+v\n%s", r, said)
	}
	for _, s := range r.Sizes {
		if s.Wrong != 0 || s.Sum.Median <= 0 {
			t.Errorf("%+v", s)
		}
	}
}
