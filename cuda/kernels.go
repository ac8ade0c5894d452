//go:build gpu && cgo

package cuda

import (
	"embed"
	"fmt"
)

// kernels are the sources that [Context.Compile] gets.
//
//go:embed kernels/*.cu kernels/store.h
var kernels embed.FS

// netSource is one of the sources for nets, with what comes before it, and its options. store says what elements are: 0 float32,
// 1 bfloat16, 2 float16.
func netSource(file string, store int) (source string, options []string, err error) {
	head, err := kernels.ReadFile("kernels/store.h")
	if err != nil {
		return "", nil, err
	}
	body, err := kernels.ReadFile("kernels/" + file)
	return fmt.Sprintf("#line 1 \"store.h\"\n%s\n#line 1 \"%s\"\n%s", head, file, body), []string{fmt.Sprintf("-DSTORE=%d", store)}, err
}
