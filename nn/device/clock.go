package device

import "time"

// Clock is a Device with a queue that times its own work: the host only knows when it issued the work.
type Clock interface {
	Device
	// Mark records as mark i the time when the work issued so far is done.
	Mark(i int) error
	// Between waits for mark j and returns the time from mark i to it.
	Between(i, j int) (time.Duration, error)
}

// Timed measures the work that f issues to a device: by the device's clock if it has one, else by the host's. It uses
// the clock's marks 0 and 1, so neither f nor its callers may use them.
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

// Limits are the speeds that bound work on a device: the best measured on an idle device.
type Limits struct {
	Products  []Limit // operations a second of products of matrices, the precision of the device's nets first
	Bandwidth Limit   // bytes a second to and from memory
}

// Limit is a speed and its measurement.
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
