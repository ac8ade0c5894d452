package datasheet

import (
	"fmt"
	"strings"
	"time"

	"onlinerna/cuda/number"
	"onlinerna/nn/device"
)

// A Card holds the figures of a data sheet.
type Card struct {
	Key, Name       string
	Major, Minor    int   // compute capability
	Memory          int64 // bytes
	Multiprocessors int
	Clock           float64    // of multiprocessors at their boost, Hz
	Bandwidth       float64    // of its memory, bytes a second
	Peak            [4]float64 // FLOP a second by precision, without sparsity, with float32 sums
}

// Cards are the known cards.
var Cards = []Card{
	{"a100", "NVIDIA A100-SXM4-80GB", 8, 0, 80e9, 108, 1.41e9, 2.039e12, peaks(19.5, 156, 312, 312)},
	{"h100", "NVIDIA H100 80GB HBM3", 9, 0, 80e9, 132, 1.98e9, 3.35e12, peaks(66.9, 494.7, 989.4, 989.4)},
	{"h200", "NVIDIA H200", 9, 0, 141e9, 132, 1.98e9, 4.8e12, peaks(66.9, 494.7, 989.4, 989.4)},
	{"b200", "NVIDIA B200", 10, 0, 180e9, 148, 1.965e9, 8e12, peaks(75, 1125, 2250, 2250)},
	{"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, 24e9, 128, 2.52e9, 1.008e12, peaks(82.6, 82.6, 165.2, 165.2)},
}

// peaks are the peaks of float32, tf32, bfloat16 and float16, given in TFLOP a second.
func peaks(f32, tf32, bf16, f16 float64) [4]float64 {
	return [4]float64{number.Float32: f32 * 1e12, number.TF32: tf32 * 1e12, number.BFloat16: bf16 * 1e12,
		number.Float16: f16 * 1e12}
}

// Find returns the card with this key.
func Find(key string) (Card, error) {
	var keys []string
	for _, c := range Cards {
		if c.Key == strings.ToLower(key) {
			return c, nil
		}
		keys = append(keys, c.Key)
	}
	return Card{}, fmt.Errorf("unknown card %q: use one of %s", key, strings.Join(keys, ", "))
}

// Start is the cost of starting a kernel after another of the same graph: an assumption, since data sheets do not state
// it.
const Start = 1500 * time.Nanosecond

// Time is a lower bound for work: the longest of its bytes at the memory's bandwidth, its products at the peak and its
// instructions at the rate at which multiprocessors start them, plus its start.
func (c Card) Time(w device.Work, p number.Precision) time.Duration {
	return Start + time.Duration(1e9*max(float64(w.Bytes())/c.Bandwidth, float64(w.FLOP)/c.Peak[p],
		float64(w.Instructions)/c.Issue()))
}

// Issue is the number of instructions of threads that the card starts in a second: four warps a multiprocessor and
// clock.
func (c Card) Issue() float64 { return 128 * c.Clock * float64(c.Multiprocessors) }
