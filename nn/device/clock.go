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

// Timed is how long the work takes that f gives to a device: by the clock of one that has it, else by the host's. It
// uses the clock's first two marks: f may not, and what uses them may not be around it.
func Timed(dev Device, f func() error) (time.Duration, error) {
	c, ok := As[Clock](dev)
	if !ok {
		start := time.Now()
		err := f()
		if err == nil {
			err = dev.Sync()
		}
		return time.Since(start), err
	}
	err := c.Mark(0)
	if err == nil {
		err = f()
	}
	if err == nil {
		err = c.Mark(1)
	}
	if err != nil {
		return 0, err
	}
	return c.Between(0, 1)
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
