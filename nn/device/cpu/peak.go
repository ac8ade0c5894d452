package cpu

import (
	"time"

	"onlinerna/nn/device"
	"onlinerna/nn/device/cpu/internal/kern"
)

var (
	_ device.Processor = (*Device)(nil)
	_ device.Precise   = (*Device)(nil)
)

// Precision implements device.Precise: "float32" or "bfloat16".
func (d *Device) Precision() string {
	if d.bfloat16 {
		return "bfloat16"
	}
	return "float32"
}

// Threads implements device.Processor: the number of workers.
func (d *Device) Threads() int { return d.pool.Workers() }

// Winograd implements device.Processor: see [Options].
func (d *Device) Winograd() bool { return d.winograd && kern.For(d.level) != nil }

// Level implements device.Processor: "avx512", "avx2", "neon" or "go"; "amx" or "avx512bf16" if products of bfloat16
// run on AMX or AVX512_BF16, or products of float32 in parts on AMX.
func (d *Device) Level() string {
	if d.bfloat16 || d.tiles != nil {
		return d.level.String()
	}
	return d.level.Vectors().String()
}

// Peak implements device.Processor: the rate of multiply-adds of whole vectors in registers by all workers, of pairs of
// bfloat16 or of whole tiles if products use them; in parts, of as many as a product of float32 takes. No kernel of the
// level is faster. It is 0 if the kernels are plain Go.
func (d *Device) Peak(t time.Duration) float64 {
	set := kern.For(d.level)
	if d.bfloat16 {
		set = kern.ForBFloat16(d.level)
	}
	if set == nil {
		return 0
	}
	turns := 1 << 14 // of a block: tens of microseconds
	workers := d.pool.Workers()
	perTurn := 2 * 2 * float64((set.Registers-2)*set.Lanes)
	if set.Narrow != nil {
		perTurn *= float64(set.Narrow.Step)
	}
	body := func(int, int) { set.Peak(turns) }
	if d.tiles != nil {
		turns = 1 << 11
		perTurn = 4 * 2 * kern.TileRows * kern.TileWidth * kern.TileDepth / float64(len(d.tiles.Terms()))
		body = func(int, int) { d.tiles.Peak(turns) }
	}
	start := time.Now()
	for blocks := 8 * workers; ; blocks *= 2 {
		before := time.Now()
		d.pool.Run(blocks, body)
		if now := time.Now(); now.Sub(start) >= t {
			return float64(blocks) * float64(turns) * perTurn / now.Sub(before).Seconds()
		}
	}
}
