package cpu

import (
	"fmt"
	"slices"
	"strings"

	"onlinerna/internal/simd"
)

// The ways to multiply float32: see [Options].
const (
	BF16x6 = "bf16x6"
	BF16x3 = "bf16x3"
	Direct = "direct"
)

var (
	ways    = []string{BF16x6, BF16x3, Direct}
	partsOf = map[string]int{BF16x6: 3, BF16x3: 2} // 0: direct
)

// checkFloat32 returns an error if products of float32 cannot run as o asks.
func (o Options) checkFloat32(l simd.Level) error {
	switch {
	case o.Float32 != "" && !slices.Contains(ways, o.Float32):
		return fmt.Errorf("float32 %q: want one of %s", o.Float32, strings.Join(ways, ", "))
	case o.Float32 != BF16x3:
		return nil
	case o.BFloat16:
		return fmt.Errorf("float32 %s: the precision is bfloat16, want %s or none", BF16x3, Direct)
	case l != simd.AMX:
		why := simd.LacksAMX()
		if why == nil {
			why = fmt.Errorf("level %v leaves out AMX", l)
		}
		return fmt.Errorf("float32 %s: %w: use %s, or %s, which uses AMX where it is there", BF16x3, why, Direct, BF16x6)
	}
	return nil
}

// Float32 implements device.Processor: "bf16x6" or "bf16x3" if products of float32 may run in parts, or else "direct".
func (d *Device) Float32() string {
	switch {
	case d.bfloat16 || d.tiles == nil:
		return Direct
	case d.tiles.Parts == 2:
		return BF16x3
	}
	return BF16x6
}
