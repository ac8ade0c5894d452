//go:build gpu && cgo

package cuda

import "embed"

// kernels are the sources that [Context.Compile] gets.
//
//go:embed kernels/*.cu
var kernels embed.FS
