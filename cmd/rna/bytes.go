package main

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"onlinerna/internal/text"
)

// bytesFlag is a number of bytes, as 800MB or 2GB. Zero is none given.
type bytesFlag int64

func (f *bytesFlag) Type() string { return "size" }

func (f *bytesFlag) String() string {
	if *f == 0 {
		return ""
	}
	return text.Bytes(int64(*f))
}

var byteUnits = []struct {
	name  string
	bytes float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1}}

// Set implements pflag.Value.
func (f *bytesFlag) Set(s string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.ToLower(s), strings.ToLower(u.name))
		if !ok {
			continue
		}
		x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(x*u.bytes >= 1) || x*u.bytes > math.MaxInt64/2 {
			break
		}
		*f = bytesFlag(x * u.bytes)
		return nil
	}
	return errors.New("want a number of bytes, as 800MB or 2GB")
}

const decodeMemoryHelp = "memory that decoding takes in each process at most, by the sizes that images declare, as 2GB: one that needs more is unreadable (default: a quarter of what is free, shared by the processes of a machine, and 320 MiB at least; of 2 GiB where nobody says)"

// decodeMemory adds --decode-memory.
func (g group) decodeMemory(p *int64) {
	g.Var((*bytesFlag)(p), "decode-memory", decodeMemoryHelp)
}
