package kern

// Transpose writes n rows of the given length, stride apart, as columns, and zeros up to width columns.
func Transpose(dst []float32, width int, src []float32, stride, n, length int) {
	j := 0
	for ; j+4 <= n; j += 4 {
		s0, s1 := src[j*stride:][:length], src[(j+1)*stride:][:length]
		s2, s3 := src[(j+2)*stride:][:length], src[(j+3)*stride:][:length]
		d := dst[j:]
		for c, v := range s0 {
			e := d[c*width:][:4]
			e[0], e[1], e[2], e[3] = v, s1[c], s2[c], s3[c]
		}
	}
	for ; j < width; j++ {
		if j >= n {
			for c := range length {
				dst[c*width+j] = 0
			}
			continue
		}
		for c, v := range src[j*stride:][:length] {
			dst[c*width+j] = v
		}
	}
}
