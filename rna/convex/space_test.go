package convex

import (
	"testing"

	"onlinerna/rna"
	"onlinerna/rna/spacetest"
)

func TestSpace(t *testing.T) {
	spacetest.Run(t, func(dim int) (rna.Space, error) { return newSpace(dim), nil })
}
