package measure

import (
	"cmp"
	"math"
	"slices"
)

// Ranking is the order of images by their score for a class, the highest first.
type Ranking struct {
	order     []int32 // images
	ends      []int32 // of groups of equal scores, in order
	shown     []bool  // by image
	positives int
}

// Rank orders images by score; shown says which of them show the class. Equal scores have no order. It keeps shown.
func Rank(scores []float64, shown []bool) *Ranking {
	r := &Ranking{order: make([]int32, len(scores)), shown: shown}
	for i := range r.order {
		r.order[i] = int32(i)
		if shown[i] {
			r.positives++
		}
	}
	slices.SortFunc(r.order, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	for at := 1; at <= len(r.order); at++ {
		if at == len(r.order) || scores[r.order[at]] != scores[r.order[at-1]] {
			r.ends = append(r.ends, int32(at))
		}
	}
	return r
}

// groups calls fn for each group of equal scores, with the number of its images that show the class and of those that
// do not.
func (r *Ranking) groups(fn func(images []int32, positives, negatives int)) {
	from := int32(0)
	for _, end := range r.ends {
		images, n := r.order[from:end], 0
		for _, i := range images {
			if r.shown[i] {
				n++
			}
		}
		fn(images, n, len(images)-n)
		from = end
	}
}

// AUC is the area under the ROC curve: the probability that an image of the class has a higher score than another, where
// equal scores count one half. It adds the influence of each image to influence, unless that is nil.
func (r *Ranking) AUC(influence []float64) Estimate {
	m, n := r.positives, len(r.order)-r.positives
	if m == 0 || n == 0 {
		return undefined
	}
	pm, pn := float64(m), float64(n)
	sum, above := 0., 0 // images of the class above the group
	r.groups(func(_ []int32, p, q int) {
		sum += float64(q) * (float64(above) + float64(p)/2)
		above += p
	})
	area := sum / (pm * pn)
	// unbiased variances of the two kinds of images, as DeLong's
	fixM, fixN := math.Sqrt(pm/max(1, pm-1)), math.Sqrt(pn/max(1, pn-1))
	squares, below := 0., n
	above = 0
	r.groups(func(images []int32, p, q int) {
		below -= q
		ofPositive := ((float64(below)+float64(q)/2)/pn - area) / pm * fixM
		ofNegative := ((float64(above)+float64(p)/2)/pm - area) / pn * fixN
		above += p
		squares += float64(p)*ofPositive*ofPositive + float64(q)*ofNegative*ofNegative
		r.spread(influence, images, ofPositive, ofNegative)
	})
	if m == 1 || n == 1 {
		return Estimate{area, math.NaN()}
	}
	return Estimate{area, math.Sqrt(squares)}
}

// spread adds numbers to the influence of images that show the class, and of others.
func (r *Ranking) spread(influence []float64, images []int32, positive, negative float64) {
	if influence == nil {
		return
	}
	for _, i := range images {
		if r.shown[i] {
			influence[i] += positive
		} else {
			influence[i] += negative
		}
	}
}

// AveragePrecision is the mean, over the images of the class, of the precision among the images with at least their
// score. It adds the influence of each image to influence, unless that is nil.
func (r *Ranking) AveragePrecision(influence []float64) Estimate {
	if r.positives == 0 {
		return undefined
	}
	m := float64(r.positives)
	precision := make([]float64, len(r.ends))
	value, shown, all, g := 0., 0, 0, 0
	// for an image of a group: the sums over it and all later groups of positives/images and positives·precision/images
	gain, loss := make([]float64, len(r.ends)), make([]float64, len(r.ends))
	r.groups(func(_ []int32, p, q int) {
		shown, all = shown+p, all+p+q
		precision[g] = float64(shown) / float64(all)
		value += float64(p) * precision[g]
		gain[g] = float64(p) / float64(all)
		loss[g] = gain[g] * precision[g]
		g++
	})
	value /= m
	for k := len(gain) - 2; k >= 0; k-- {
		gain[k] += gain[k+1]
		loss[k] += loss[k+1]
	}
	squares := 0.
	g = 0
	r.groups(func(images []int32, p, q int) {
		positive, negative := (precision[g]+gain[g]-loss[g]-value)/m, -loss[g]/m
		squares += float64(p)*positive*positive + float64(q)*negative*negative
		r.spread(influence, images, positive, negative)
		g++
	})
	if r.positives == len(r.order) || r.positives == 1 { // no other image, or nothing to vary
		return Estimate{value, math.NaN()}
	}
	return Estimate{value, math.Sqrt(squares)}
}

// Measure is a measure of a ranking: [Ranking.AUC] or [Ranking.AveragePrecision].
type Measure func(r *Ranking, influence []float64) Estimate

// Classes measures each class by each measure, given the ranking of all images for a class. The mean is that of the
// classes for which the measure is defined; its standard error counts an image's influence on all classes together.
func Classes(classes, images int, class func(k int) *Ranking, by ...Measure) (each [][]Estimate, mean []Estimate) {
	each, mean = make([][]Estimate, len(by)), make([]Estimate, len(by))
	influence := make([][]float64, len(by))
	sums, defined := make([]float64, len(by)), make([]int, len(by))
	for b := range by {
		influence[b] = make([]float64, images)
	}
	for k := range classes {
		r := class(k)
		for b, measure := range by {
			e := measure(r, influence[b])
			each[b] = append(each[b], e)
			if e.Defined() {
				sums[b] += e.Value
				defined[b]++
			}
		}
	}
	for b := range by {
		if defined[b] == 0 {
			mean[b] = undefined
			continue
		}
		squares := 0.
		for _, x := range influence[b] {
			squares += x * x
		}
		mean[b] = Estimate{sums[b] / float64(defined[b]), math.Sqrt(squares) / float64(defined[b])}
	}
	return each, mean
}
