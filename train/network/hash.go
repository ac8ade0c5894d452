package network

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"

	"onlinerna/nn/device"
)

// Hash is a short hash of a vector's numbers. A float32 vector has the same hash as its numbers in float64.
func Hash(v device.Vector) (string, error) {
	h := sha256.New()
	x := make([]float64, 1<<13)
	b := make([]byte, 0, 8*len(x))
	for off := 0; off < v.Len(); off += len(x) {
		part := x[:min(len(x), v.Len()-off)]
		if err := v.ReadAt64(part, off); err != nil {
			return "", err
		}
		b = b[:0]
		for _, a := range part {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(a))
		}
		h.Write(b)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}
