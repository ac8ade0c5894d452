//go:build gpu && cgo

package dnn

// #include <cudnn_backend.h>
import "C"

import (
	"fmt"
	"slices"
	"strings"

	"onlinerna/cuda/number"
)

// An Engine is one of cuDNN's implementations of a graph, with its knob settings.
type Engine struct {
	Number int        `json:"engine"`
	Knobs  [][2]int64 `json:"knobs,omitempty"` // pairs of kind and value

	numerical, behaviour uint64 // bit sets of cuDNN's notes
	workspace            int64  // bytes, by the heuristics; -1 when unknown
	config               C.cudnnBackendDescriptor_t
	text                 string // the plan, made before; empty for one that is made from config
}

// Deterministic reports whether cuDNN gives the same bits in each run, by its notes.
func (e Engine) Deterministic() bool { return !e.notes(C.CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) }

// Compiled reports whether cuDNN compiles the engine's kernels when it makes a plan.
func (e Engine) Compiled() bool {
	return e.behaviour>>C.CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION&1 != 0
}

func (e Engine) notes(any ...uint) bool {
	return slices.ContainsFunc(any, func(n uint) bool { return e.numerical>>n&1 != 0 })
}

// suits reports whether the options allow an engine and it is as exact as the precision. Winograd transforms are
// inexact in 16 bits, and float32 on tensor cores is TensorFloat-32.
func (e Engine) suits(o Options) bool {
	switch {
	case e.notes(C.CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, C.CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS):
		return false
	case o.Precision.Bytes() == 2 && e.notes(C.CUDNN_NUMERICAL_NOTE_WINOGRAD, C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
		C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, C.CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13):
		return false
	case o.Precision == number.Float32 && e.notes(C.CUDNN_NUMERICAL_NOTE_TENSOR_CORE):
		return false
	}
	return !o.Deterministic || e.Deterministic()
}

func (e Engine) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "e%d", e.Number)
	for _, k := range e.Knobs {
		fmt.Fprintf(&b, " k%d=%d", k[0], k[1])
	}
	return b.String()
}

// engine reads a configuration. Unreadable parts stay zero.
func (p *Plans) engine(config C.cudnnBackendDescriptor_t) Engine {
	e := Engine{Number: -1, workspace: -1, config: config}
	b := backend{}
	at := []C.cudnnBackendDescriptor_t{b.make(C.CUDNN_BACKEND_ENGINE_DESCRIPTOR)}
	get(&b, config, C.CUDNN_ATTR_ENGINECFG_ENGINE, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, at)
	e.Number = int(b.getInt(at[0], C.CUDNN_ATTR_ENGINE_GLOBAL_INDEX))
	e.numerical = b.getBits(at[0], C.CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, C.CUDNN_TYPE_NUMERICAL_NOTE)
	e.behaviour = b.getBits(at[0], C.CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, C.CUDNN_TYPE_BEHAVIOR_NOTE)
	if bytes := b.getInt(config, C.CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE); b.err == nil {
		e.workspace = bytes
	}
	p.h.made = append(p.h.made, b.made...)
	return e
}

// knobs reads a configuration's knob settings, as far as cuDNN reports them.
func knobs(config C.cudnnBackendDescriptor_t) (all [][2]int64) {
	b := backend{}
	defer b.release(0)
	choices := make([]C.cudnnBackendDescriptor_t, 64)
	for i := range choices {
		choices[i] = b.make(C.CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)
	}
	n := get(&b, config, C.CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, C.CUDNN_TYPE_BACKEND_DESCRIPTOR, choices)
	for _, k := range choices[:min(len(choices), n)] {
		kind := make([]int32, 1)
		get(&b, k, C.CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, C.CUDNN_TYPE_KNOB_TYPE, kind)
		if value := b.getInt(k, C.CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE); b.err == nil {
			all = append(all, [2]int64{int64(kind[0]), value})
		}
	}
	return all
}
