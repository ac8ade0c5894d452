// Package space is rna's Space on a GPU: it keeps RNA's vectors in GPU memory. It uses NVRTC through package nvrtc and
// the GPU through package driver; it does not know nets. Without the build tag gpu it has only its options.
//
// A [Space] keeps the vectors of a window in GPU memory as far as they fit, and the rest in pinned host memory. It
// passes the conformance suite of package rna/spacetest. If the vectors come from GPU memory, only the N×N matrix
// leaves it.
package space
