//go:build mpi && linux

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// badLaunch is a start that must fail.
type badLaunch struct {
	name string
	one  string   // arguments of rank 1 alone
	args []string // of both
	env  []string
	// other is the command that runs in place of rank 1.
	other []string
	// alone are variables of a missing launcher: the program is started by itself.
	alone []string
	want  string // expected message; after a bar that of mpich, if it differs
}

// badLaunches end with a specific error within seconds; "%" stands for a folder of the test.
var badLaunches = []badLaunch{
	{name: "no data on one rank", one: "--data nowhere", want: "rank 1 on "},
	{name: "another seed", one: "--seed 9", want: "seed: rank 1 on "},
	{name: "another model", one: "--model cnn6", want: "rank 1 on "},
	{name: "an option of one rank", one: "--nesterov", want: "nesterov: rank 1 on "},
	{name: "another batch", one: "--batch 8", want: "batch: rank 1 on "},
	{name: "more epochs", one: "--epochs 4", want: "epochs: rank 1 on "},
	{name: "fewer images", one: "--limit-batches 12", want: "rank 1 on "},
	{name: "another precision", one: "--precision float16", want: "precision"},
	{name: "no weights on one rank", one: "--init nowhere.safetensors", want: "rank 1 on "},
	{name: "a folder with a run", args: []string{"--out", "%/old"}, want: "holds a run already"},
	{name: "no room for the folder", args: []string{"--out", "/dev/null/run"}, want: "/dev/null"},
	{name: "a device that is not there", args: []string{"--device", "cuda:77"}, want: "cuda"},
	{name: "wrong use on one rank", one: "--no-such-option", args: []string{"--comm-timeout", "3s"},
		want: "unknown option --no-such-option"},
	{name: "no time", args: []string{"--comm-timeout", "0s"}, want: "must be above 0"},
	{name: "one rank goes alone", one: "--distributed off --epochs 1 --out %/alone", args: []string{"--comm-timeout",
		"2s"}, want: "rank"},
	{name: "no library", env: []string{"RNA_MPI_LIB=/nowhere/libmpi.so"}, want: "no MPI library can be loaded"},
	{name: "the library of another launcher", env: []string{"RNA_MPI_LIB=other"}, args: []string{"--comm-timeout", "5s"},
		want: "do not belong together|MPI"},
	{name: "another program", other: []string{"%/other"}, want: "program: rank 1 on "},
	{name: "a rank that ends at once", other: []string{"/bin/false"}, args: []string{"--comm-timeout", "5s"}},
	{name: "a rank that never comes", other: []string{"/bin/sleep", "50"}, args: []string{"--comm-timeout", "3s"},
		want: "not all ranks have come"},
	{name: "a rank beyond the last", alone: []string{"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=2"},
		want: "OMPI_COMM_WORLD_RANK=2 is not below"},
	{name: "a rank without a size", alone: []string{"PMI_RANK=0"}, want: "PMI_SIZE is missing"},
	{name: "a size that is no number", alone: []string{"SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=two"},
		want: "SLURM_STEP_NUM_TASKS"},
	{name: "ranks whose launcher is not there", alone: []string{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"},
		want: "do not belong together"},
	{name: "variables of torchrun", alone: []string{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost",
		"MASTER_PORT=29500"}, want: "start ranks on CPUs by mpirun or srun"},
	{name: "two masters", alone: []string{"TORCHELASTIC_RUN_ID=1", "RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a",
		"MASTER_PORT=1", "PMI_RANK=0", "PMI_SIZE=2"}, want: "torchrun"},
}

func TestBadLaunches(t *testing.T) {
	for i, c := range badLaunches {
		t.Run(c.name, func(t *testing.T) {
			launcher := mpiLaunchers[i%2]
			dir := t.TempDir()
			old := filepath.Join(dir, "old", "checkpoint", "000001", "manifest.json")
			if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o755), os.WriteFile(old, []byte("{}"), 0o644)); err != nil {
				t.Fatal(err)
			}
			in := func(list []string) (out []string) {
				for _, s := range list {
					out = append(out, strings.ReplaceAll(s, "%", dir))
				}
				return out
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := small(filepath.Join(dir, "run"), in(c.args)...)
			var cmd *exec.Cmd
			said := &bytes.Buffer{}
			if c.alone != nil {
				cmd = exec.CommandContext(ctx, os.Args[0], args...)
				cmd.Env = slices.Concat(os.Environ(), []string{rankVar + "=1"}, c.alone)
				cmd.Stdout, cmd.Stderr = said, said
			} else {
				cmd, said = mpirun(t, ctx, launcher, 2, "", args...)
				if c.one != "" {
					cmd.Env = append(cmd.Env, argsVar+"=1 "+strings.ReplaceAll(c.one, "%", dir))
				}
				cmd.Env = append(cmd.Env, c.env...)
				if slices.Contains(c.env, "RNA_MPI_LIB=other") {
					cmd.Env = append(cmd.Env, "RNA_MPI_LIB="+[]string{"libmpich.so.12", "libmpi.so.40"}[i%2])
				}
				if c.other != nil {
					replaceRank(t, cmd, dir, in(c.other))
				}
			}
			from := time.Now()
			err := cmd.Run()
			if err == nil || ctx.Err() != nil || !slices.ContainsFunc(strings.Split(c.want, "|"),
				func(s string) bool { return strings.Contains(said.String(), s) }) {
				t.Errorf("%v after %v, want %q\n%s", err, time.Since(from), c.want, said)
			}
			if _, err := os.Stat(filepath.Join(dir, "run", "final.safetensors")); err == nil {
				t.Error("it trained")
			}
			if _, err := os.Stat(old); err != nil {
				t.Errorf("what was there: %v", err)
			}
		})
	}
}

// replaceRank replaces the program of rank 1: other is a command, or for the name other this program with an extra
// byte.
func replaceRank(t *testing.T, cmd *exec.Cmd, dir string, other []string) {
	t.Helper()
	at := slices.Index(cmd.Args, "-n")
	first := slices.Clone(cmd.Args[at:])
	first[1] = "1"
	second := append([]string{":", "-n", "1"}, other...)
	if other[0] == filepath.Join(dir, "other") {
		b, err := os.ReadFile(os.Args[0])
		if err == nil {
			err = os.WriteFile(other[0], append(b, 0), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		second = append(second, first[3:]...)
	}
	cmd.Args = slices.Concat(cmd.Args[:at], first, second)
}

// The error about a hanging rank names it, and saved state stays.
func TestRankHangs(t *testing.T) {
	for _, launcher := range mpiLaunchers {
		t.Run(launcher, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			cmd, said := mpirun(t, t.Context(), launcher, 3, "", "train", "--data", "glyphs", "--batch", "16", "--epochs",
				"400", "--limit-batches", "40", "--limit-val", "1",
				"--rna", "off", "--threads", "1", "--workers", "1", "--quiet", "--comm-timeout", "3s", "--out", out)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wait(t, out, 2, 0)
			from, hung := time.Now(), child(t, out)
			syscall.Kill(hung, syscall.SIGSTOP)
			defer syscall.Kill(hung, syscall.SIGKILL)
			err := cmd.Wait()
			if took := time.Since(from); err == nil || took > 40*time.Second || !strings.Contains(said.String(),
				"missing: rank 1 on ") {
				t.Errorf("%v after %v\n%s", err, took, said)
			}
			newestCheckpoint(t, out)
		})
	}
}
