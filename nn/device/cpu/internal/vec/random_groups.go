//go:build (amd64 || arm64) && !purego

package vec

// byGroups makes random numbers by a kernel for groups of four counters, and in plain Go outside whole groups.
func byGroups(
	kernel func(dst *float32, groups int, counter, sample, step uint32, key uint64),
) func(dst []float32, key uint64, step, sample uint32, element int) {
	return func(dst []float32, key uint64, step, sample uint32, element int) {
		const group = 4 * philoxWords
		if first := min(-element&(philoxWords-1), len(dst)); first > 0 {
			uniforms(dst[:first], key, step, sample, element)
			dst, element = dst[first:], element+first
		}
		if n := len(dst) / group; n > 0 {
			kernel(&dst[0], n, uint32(element/philoxWords), sample, step, key)
			dst, element = dst[n*group:], element+n*group
		}
		uniforms(dst, key, step, sample, element)
	}
}
