// Package space is the GPU as a place for RNA's vectors: rna's Space. It touches NVRTC by package nvrtc, and the
// GPU by package driver; it knows no net. Without the build tag gpu it has its options and no more.
//
// A [Space] keeps the vectors of a window in GPU memory, as far as there is some, and the rest in pinned host memory.
// It passes the conformance suite of package rna/spacetest. Only the N×N matrix leaves the GPU, when the vectors come
// from its memory too.
package space
