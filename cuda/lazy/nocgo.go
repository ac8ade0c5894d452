//go:build gpu && !cgo

package lazy

// The tag gpu needs cgo, which Go switches off when it finds no C compiler.
var _ = the_tag_gpu_needs_gcc_and_CGO_ENABLED_1
