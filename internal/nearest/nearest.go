// Package nearest suggests a known word for an unknown one.
package nearest

import "strings"

// To returns the candidate with the fewest edits from word, ignoring case, or "" if all exceed half the word's length,
// too many for a typo. Among equals, and if none is close, the first that begins with the word wins.
func To(word string, candidates []string) string {
	best, edits, begins := "", len(word)/2+1, false
	for _, c := range candidates {
		prefix := strings.HasPrefix(strings.ToLower(c), strings.ToLower(word))
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < edits ||
			d == edits && best != "" && prefix && !begins {
			best, edits, begins = c, d, prefix
		}
	}
	if best == "" && len(word) >= 3 {
		for _, c := range candidates {
			if strings.HasPrefix(strings.ToLower(c), strings.ToLower(word)) {
				return c
			}
		}
	}
	return best
}

// distance is the least number of edits that turn a into b: a byte inserted, deleted or replaced, or two neighbours
// swapped.
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			replace := last[j]
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
