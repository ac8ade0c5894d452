// Package nearest finds what somebody may have meant by a word that is none of those known.
package nearest

import "strings"

// To is the one of the candidates with the fewest edits from word, whatever their case, and "" where none has few
// enough for a slip of the hand: half the word's length.
func To(word string, candidates []string) string {
	best, edits := "", len(word)/2+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < edits {
			best, edits = c, d
		}
	}
	return best
}

// distance is the least number of bytes to insert, delete or replace to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
