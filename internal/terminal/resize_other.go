//go:build !unix

package terminal

import "os"

// Resized does nothing here: no signal reports a new size, which the next line takes.
func Resized(chan<- os.Signal) {}
