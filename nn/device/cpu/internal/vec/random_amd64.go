//go:build amd64 && !purego

package vec

// uniformsByAVX2 leaves what is no whole group of counters to plain Go.
func uniformsByAVX2(dst []float32, key uint64, step, sample uint32, element int) {
	const group = 4 * philoxWords
	if first := min(-element&(philoxWords-1), len(dst)); first > 0 {
		uniforms(dst[:first], key, step, sample, element)
		dst, element = dst[first:], element+first
	}
	if n := len(dst) / group; n > 0 {
		uniformsAVX2(&dst[0], n, uint32(element/philoxWords), sample, step, key)
		dst, element = dst[n*group:], element+n*group
	}
	uniforms(dst, key, step, sample, element)
}
