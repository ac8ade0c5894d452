//go:build linux && amd64

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// boot is the first process of the emulated machine: it runs its job and reports the exit status.
func boot() {
	status := 1
	if err := do(&status); err != nil {
		fmt.Println("emulated:", err)
	}
	fmt.Printf("%s%d\n", exited, status)
	for {
		syscall.Pause() // until the machine is ended
	}
}

func do(status *int) error {
	if err := os.MkdirAll("/tmp", 0o777); err != nil { // no mount, which would hide the job's folder if it is there
		return err
	}
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"devtmpfs", "/dev"}} {
		if err := os.MkdirAll(m.at, 0o755); err != nil {
			return err
		}
		if err := syscall.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	text, err := os.ReadFile(jobFile)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	if err := os.MkdirAll(j.Dir, 0o755); err != nil {
		return err
	}
	c := exec.Command(j.Args[0], j.Args[1:]...)
	c.Dir, c.Env, c.Stdout, c.Stderr = j.Dir, j.Env, os.Stdout, os.Stdout
	err = c.Run()
	if c.ProcessState == nil {
		return err
	}
	if *status = c.ProcessState.ExitCode(); *status < 0 { // a signal
		*status = 1
		return err
	}
	return nil
}
