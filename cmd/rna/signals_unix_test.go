//go:build unix

package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSignals stops runs by the signals of schedulers and terminals: each saves its state and can be resumed.
func TestSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGTERM} {
		out := filepath.Join(t.TempDir(), "run")
		stopBy(t, sig, out, "--limit-val", "1")
		if status, _, stderr := runRNA(t, "train", "--resume", out, "--epochs", "1", "-q"); status > 1 ||
			strings.Contains(stderr, "damaged") {
			t.Errorf("%v: resumed with status %d, %s", sig, status, stderr)
		}
	}
}

// TestReaderGone continues a run whose output nobody reads.
func TestReaderGone(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	cmd := itself("train", "--epochs", "2", "--limit-batches", "5", "--limit-val", "1", "--batch", "8", "--rna", "off",
		"-o", out)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(pipe).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	pipe.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(out, "final.safetensors")); err != nil {
		t.Error(err)
	}
}

// TestStopWithin ends a run with an endless step, and a study with one.
func TestStopWithin(t *testing.T) {
	endless := []string{"--stop-within", "1ms", "--accumulate", "1000000"}
	stopBy(t, syscall.SIGTERM, filepath.Join(t.TempDir(), "run"), endless...)
	out := filepath.Join(t.TempDir(), "study")
	said := stopOf(t, syscall.SIGTERM, filepath.Join(out, "offline"), append([]string{"study", "-o", out}, endless...)...)
	if !strings.Contains(said, "within a step") || !strings.Contains(said, "starts anew") {
		t.Error(said)
	}
}

// stopBy starts a run with some options, sends it a signal after it has begun, and checks that it stopped and is
// intact.
func stopBy(t *testing.T, sig syscall.Signal, out string, options ...string) {
	t.Helper()
	if said := stopOf(t, sig, out, append([]string{"train", "-o", out}, options...)...); !strings.Contains(said,
		"--resume "+out) {
		t.Errorf("%v: %s", sig, said)
	}
}

// stopOf is stopBy for a command whose run is in the folder out. It returns the output.
func stopOf(t *testing.T, sig syscall.Signal, out string, command ...string) string {
	t.Helper()
	cmd := itself(append(command, "--epochs", "50", "--batch", "8", "-q")...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(out, "config.json")); err == nil {
			break
		}
	}
	cmd.Process.Signal(sig)
	killed := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer killed.Stop()
	cmd.Wait()
	if status := cmd.ProcessState.ExitCode(); status != 130 {
		t.Errorf("%v: status %d\n%s", sig, status, &said)
	}
	mustRun(t, "verify", out)
	return said.String()
}
