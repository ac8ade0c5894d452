//go:build !purego

package kern

import "onlinerna/internal/simd"

var sets = [simd.Count]Set{
	simd.Go: plain,
	simd.NEON: {
		Dots:         [Most]dots{dots1NEON, dots2NEON, dots3NEON, dots4NEON},
		AddRows:      [Most]addRows{addRows1NEON, addRows2NEON, addRows3NEON, addRows4NEON},
		CodedDots:    [Most]codedDots{codedDots1NEON, codedDots2NEON, codedDots3NEON, codedDots4NEON},
		CodedAddRows: [Most]codedAddRows{codedAddRows1NEON, codedAddRows2NEON, codedAddRows3NEON, codedAddRows4NEON},
		SparseDots:   sparseDots4NEON, SparseAddRows: sparseAddRows4NEON,
		StripDots: stripDotsNEON, StripAddRows: stripAddRowsNEON, StripSums: stripSumsNEON, StripAdds: stripAddsNEON,
		Logistic: logisticNEON, Squares: squaresNEON, LogisticSlopes: logisticSlopesNEON,
		SquaresSlopes: squaresSlopesNEON,
		Dot:           dotNEON, Combine2: combine2NEON, Combine3: combine3NEON,
		SAGAStep: sagaStepNEON, Mix: mixNEON, KatyushaStep: katyushaStepNEON,
	},
}
