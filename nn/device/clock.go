package device

import "time"

// Clock is a Device with a queue that times its work itself: the host only sees when it gave the work.
type Clock interface {
	Device
	// Mark notes as mark number i when the work that was given so far is done.
	Mark(i int) error
	// Between waits for mark j and returns the time from mark i to it.
	Between(i, j int) (time.Duration, error)
}

// Limits are speeds that bound what runs on a device: the best that was measured with nothing beside it.
type Limits struct {
	Products  []Limit // operations a second of products of matrices, the precision of the device's nets first
	Bandwidth Limit   // bytes a second to and from memory
}

// Limit is a speed, and what it was measured by.
type Limit struct {
	Name  string // as "bfloat16"
	Speed float64
	How   string // as "product of 8192×8192 matrices by cuBLAS"
}

// Gauge is a Device that measures its own limits.
type Gauge interface {
	Device
	Limits() (Limits, error)
}
