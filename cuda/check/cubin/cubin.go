// Package cubin reads the registers, memory and threads of kernels from a compiled image for a GPU. From these follows
// the number of threads that a multiprocessor runs at a time.
package cubin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// A Kernel holds the assembler's figures for a __global__ function.
type Kernel struct {
	Name      string
	Registers int // of a thread
	Shared    int // static bytes of a block
	Frame     int // bytes of a thread's own stack: arrays and spilled registers
	Stack     int // minimal bytes of a thread's stack, with called functions
	Threads   int // maximum of a block, by __launch_bounds__; 0 without
}

// An image's sections .nv.info and .nv.info.KERNEL contain records: a form, an attribute, and 16 bits that are the
// value or, in this form, the number of bytes that follow.
const formBytes = 4

// The attributes that this package reads.
const (
	maxThreads   = 0x05 // x, y, z
	frameSize    = 0x11 // symbol, bytes
	minStackSize = 0x12 // symbol, bytes
	registers    = 0x2f // symbol, number
)

// reservedShared is added to sections of shared memory if the system reserves a part: since compute capability 9, in
// images of ABI 8.
const (
	reservedShared = 1024
	reservingABI   = 8
	reservingArch  = 90
)

// Read lists the kernels of a cubin, in the order of its symbols.
func Read(image []byte) ([]Kernel, error) {
	const version = 20 // of the header's field that CUDA 12 sets to its own version
	if len(image) > version+4 {
		image = bytes.Clone(image)
		binary.LittleEndian.PutUint32(image[version:], uint32(elf.EV_CURRENT))
	}
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, fmt.Errorf("cubin: %w", err)
	}
	if f.Machine != 190 { // EM_CUDA
		return nil, fmt.Errorf("cubin: machine %v is not a GPU", f.Machine)
	}
	symbols, err := f.Symbols() // without the empty first symbol
	if err != nil {
		return nil, fmt.Errorf("cubin: %w", err)
	}
	found := map[string]*Kernel{}
	of := func(name string) *Kernel {
		if found[name] == nil {
			found[name] = &Kernel{Name: name}
		}
		return found[name]
	}
	flags := binary.LittleEndian.Uint32(image[48:])
	reserves := f.ABIVersion >= reservingABI && int(flags>>8&0xff) >= reservingArch
	for _, s := range f.Sections {
		if name, ok := strings.CutPrefix(s.Name, ".nv.shared."); ok && !strings.HasPrefix(name, "reserved.") {
			n := int(s.Size)
			if reserves {
				n -= reservedShared
			}
			if n < 0 {
				return nil, fmt.Errorf("cubin: section %s of %d bytes", s.Name, s.Size)
			}
			of(name).Shared = n
		} else if kernel, ok := strings.CutPrefix(s.Name, ".nv.info"); ok {
			data, err := s.Data()
			if err == nil {
				err = records(data, strings.TrimPrefix(kernel, "."), symbols, of)
			}
			if err != nil {
				return nil, fmt.Errorf("cubin: section %s: %w", s.Name, err)
			}
		}
	}
	var all []Kernel
	for _, s := range symbols {
		if k := found[s.Name]; k != nil && k.Registers > 0 && s.Other&entryPoint != 0 {
			all = append(all, *k)
			delete(found, s.Name)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("cubin: the image has no kernel")
	}
	return all, nil
}

// entryPoint marks a __global__ function in its symbol's st_other.
const entryPoint = 0x10

// records reads a section's records: those of kernel, or of all functions if kernel is empty.
func records(data []byte, kernel string, symbols []elf.Symbol, of func(string) *Kernel) error {
	for len(data) >= 4 {
		form, attribute, n := data[0], data[1], int(binary.LittleEndian.Uint16(data[2:]))
		data = data[4:]
		if form != formBytes {
			continue
		}
		if n > len(data) {
			return fmt.Errorf("a record of %d bytes, only %d are left", n, len(data))
		}
		value := data[:n]
		data = data[n:]
		want := map[byte]int{maxThreads: 12, frameSize: 8, minStackSize: 8, registers: 8}[attribute]
		if want == 0 {
			continue
		}
		if n < want {
			return fmt.Errorf("attribute %#x of %d bytes, want %d", attribute, n, want)
		}
		u := func(i int) int { return int(binary.LittleEndian.Uint32(value[4*i:])) }
		if attribute == maxThreads {
			if kernel != "" {
				of(kernel).Threads = u(0) * u(1) * u(2)
			}
			continue
		}
		if u(0) < 1 || u(0) > len(symbols) {
			return fmt.Errorf("attribute %#x of symbol %d of %d", attribute, u(0), len(symbols))
		}
		k := of(symbols[u(0)-1].Name)
		switch attribute {
		case frameSize:
			k.Frame = u(1)
		case minStackSize:
			k.Stack = u(1)
		case registers:
			k.Registers = u(1)
		}
	}
	return nil
}
