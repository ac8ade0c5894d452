//go:build gpu && cgo

package datasheet

// #cgo CFLAGS: -I${SRCDIR}/../include
// #include "datasheet.h"
import "C"

import (
	"errors"
	"time"
	"unsafe"

	"onlinerna/cuda/lazy"
)

// Use makes this process work with the model of c. No library may have been loaded before.
func Use(c Card) error {
	if !lazy.Provide("paper", C.paper_lookup) {
		return errors.New("cuda: a card's model needs a process without NVIDIA's libraries, and one is loaded already")
	}
	name := C.CString(c.Name)
	defer C.free(unsafe.Pointer(name))
	C.paper_card(name, C.int(c.Major), C.int(c.Minor), C.int(c.Multiprocessors), C.size_t(c.Memory))
	return nil
}

// Pass advances the card's clock.
func Pass(d time.Duration) { C.paper_pass(C.double(d.Seconds())) }
