package cpu

import (
	"time"

	"onlinerna/internal/level"
	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
)

var _ device.Processor = (*Device)(nil)

// Threads implements device.Processor: the number of workers.
func (d *Device) Threads() int { return d.pool.Workers() }

// Winograd implements device.Processor: see [Options].
func (d *Device) Winograd() bool { return d.winograd && kern.For(level.Current()) != nil }

// Level implements device.Processor: "avx512", "avx2", "neon" or "go".
func (d *Device) Level() string { return level.Current().String() }

// Peak implements device.Processor: the rate at which the workers
// multiply and add whole vectors that stay in registers. No kernel of the level is faster. It is 0 where the
// kernels are plain Go.
func (d *Device) Peak(t time.Duration) float64 {
	set := kern.For(level.Current())
	if set == nil {
		return 0
	}
	const turns = 1 << 14 // of a block: tens of microseconds
	workers := d.pool.Workers()
	perTurn := 2 * 2 * float64((set.Registers-2)*set.Lanes)
	body := func(int, int) { set.Peak(turns) }
	start := time.Now()
	for blocks := 8 * workers; ; blocks *= 2 {
		before := time.Now()
		d.pool.Run(blocks, body)
		if now := time.Now(); now.Sub(start) >= t {
			return float64(blocks) * turns * perTurn / now.Sub(before).Seconds()
		}
	}
}
