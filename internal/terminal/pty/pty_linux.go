// Package pty opens terminals for tests.
package pty

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A PTY is a terminal and its other side, from which the output can be read.
type PTY struct{ Terminal, Screen *os.File }

// Open opens a terminal of the given number of columns.
func Open(columns int) (*PTY, error) {
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	p := &PTY{Screen: screen}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		p.Terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err == nil {
		err = p.Resize(columns)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Resize gives the terminal another width.
func (p *PTY) Resize(columns int) error {
	return unix.IoctlSetWinsize(int(p.Screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: uint16(columns)})
}

// Close closes both sides.
func (p *PTY) Close() {
	if p.Terminal != nil {
		p.Terminal.Close()
	}
	p.Screen.Close()
}
