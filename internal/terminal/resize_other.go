//go:build !unix

package terminal

import "os"

// Resized does nothing here: no signal tells of a new size, which the next line shows.
func Resized(chan<- os.Signal) {}
