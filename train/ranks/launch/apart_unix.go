//go:build unix

package launch

import (
	"os/exec"
	"syscall"
)

// apart keeps the terminal's signals from a process.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
