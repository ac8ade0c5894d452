//go:build !amd64 || purego

package vec

var (
	sets  = [1]Set{plain}
	large = sets

	updates [1]Updates
)
