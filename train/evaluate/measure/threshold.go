package measure

// BestThreshold returns a score, and the F1 of finding a class in all images whose score is at least as high, where that
// F1 is the highest there is: half-way between the two scores that it separates. Of several the lowest counts. ok is
// false if no image shows the class.
func (r *Ranking) BestThreshold(scores []float64) (threshold float64, f1 Estimate, ok bool) {
	if r.positives == 0 {
		return 0, undefined, false
	}
	best, at := 0., 0
	found, all, g := 0, 0, 0
	var counts Counts
	r.groups(func(_ []int32, p, q int) {
		found, all = found+p, all+p+q
		c := Counts{Right: found, Wrong: all - found, Missed: r.positives - found}
		if f := c.F1().Value; f >= best {
			best, at, counts = f, g, c
		}
		g++
	})
	end := int(r.ends[at])
	threshold = scores[r.order[end-1]]
	if end < len(r.order) {
		threshold = (threshold + scores[r.order[end]]) / 2
	}
	return threshold, counts.F1(), true
}
