//go:build amd64 && !purego

package kern

import "onlinerna/internal/simd"

var sets = [simd.Count]Set{
	simd.Go: plain,
	simd.AVX2: {
		Dots:         [Most]dots{dots1AVX2, dots2AVX2, dots3AVX2, dots4AVX2},
		AddRows:      [Most]addRows{addRows1AVX2, addRows2AVX2, addRows3AVX2, addRows4AVX2},
		CodedDots:    [Most]codedDots{codedDots1AVX2, codedDots2AVX2, codedDots3AVX2, codedDots4AVX2},
		CodedAddRows: [Most]codedAddRows{codedAddRows1AVX2, codedAddRows2AVX2, codedAddRows3AVX2, codedAddRows4AVX2},
		SparseDots:   sparseDots4AVX2, SparseAddRows: sparseAddRows4AVX2,
		StripDots: stripDotsAVX2, StripAddRows: stripAddRowsAVX2, StripSums: stripSumsAVX2, StripAdds: stripAddsAVX2,
		Logistic: logisticAVX2, Squares: squaresAVX2, LogisticSlopes: logisticSlopesAVX2,
		SquaresSlopes: squaresSlopesAVX2,
		Dot:           dotAVX2, Combine2: combine2AVX2, Combine3: combine3AVX2,
		SAGAStep: sagaStepAVX2, Mix: mixAVX2, KatyushaStep: katyushaStepAVX2,
	},
	simd.AVX512: {
		Dots:      [Most]dots{dots1AVX512, dots2AVX512, dots3AVX512, dots4AVX512},
		AddRows:   [Most]addRows{addRows1AVX512, addRows2AVX512, addRows3AVX512, addRows4AVX512},
		CodedDots: [Most]codedDots{codedDots1AVX512, codedDots2AVX512, codedDots3AVX512, codedDots4AVX512},
		CodedAddRows: [Most]codedAddRows{codedAddRows1AVX512, codedAddRows2AVX512, codedAddRows3AVX512,
			codedAddRows4AVX512},
		SparseDots: sparseDots4AVX2, SparseAddRows: sparseAddRows4AVX2,
		StripDots: stripDotsAVX2, StripAddRows: stripAddRowsAVX2, StripSums: stripSumsAVX2, StripAdds: stripAddsAVX2,
		Logistic: logisticAVX512, Squares: squaresAVX512, LogisticSlopes: logisticSlopesAVX512,
		SquaresSlopes: squaresSlopesAVX512,
		Dot:           dotAVX512, Combine2: combine2AVX512, Combine3: combine3AVX512,
		SAGAStep: sagaStepAVX512, Mix: mixAVX512, KatyushaStep: katyushaStepAVX512,
	},
}
