package kern

// stretch is the number of elements of a row that Transpose turns at a time: their columns stay in the first level cache.
const stretch = 128

// Transpose writes n rows of the given length, stride apart, as columns, and zeros up to width columns.
func (s *Set) Transpose(dst []float32, width int, src []float32, stride, n, length int) {
	turns, whole := n&^7, length&^7
	if s == nil || s.Turn == nil || whole == 0 {
		turns = 0
	}
	if turns > 0 {
		_, _ = src[(turns-1)*stride+length-1], dst[(length-1)*width+turns-1]
		for c := 0; c < whole; c += stretch {
			for j := 0; j < turns; j += 8 {
				s.Turn(&dst[c*width+j], &src[j*stride+c], min(stretch, whole-c)/8, 4*width, 4*stride)
			}
		}
		for j := range turns {
			for c := whole; c < length; c++ {
				dst[c*width+j] = src[j*stride+c]
			}
		}
	}
	if turns < width {
		transpose(dst[turns:], width, src[min(turns*stride, len(src)):], stride, n-turns, length, width-turns)
	}
}

// transpose is Transpose in plain Go, for the first columns of dst, whose rows are width apart.
func transpose(dst []float32, width int, src []float32, stride, n, length, columns int) {
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
	for ; j < columns; j++ {
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
