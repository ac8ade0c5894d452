//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// apart has a process get no signals of the terminal.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
