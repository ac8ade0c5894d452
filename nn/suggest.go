package nn

import "strings"

// nearest finds the candidate with the fewest edits from s, if they are few enough for a slip of the hand.
func nearest(s string, candidates []string) (string, bool) {
	best, edits := "", len(s)/2+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(s), strings.ToLower(c)); d < edits {
			best, edits = c, d
		}
	}
	return best, best != ""
}

// editDistance is the least number of bytes to insert, delete or replace to turn a into b (Levenshtein).
func editDistance(a, b string) int {
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
