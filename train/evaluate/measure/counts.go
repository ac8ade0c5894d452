package measure

import "math"

// Counts are the images of a class, or of all but one: shown and found, found but not shown, shown but not found.
type Counts struct{ Right, Wrong, Missed int }

// Precision is the share of the found images that show the class.
func (c Counts) Precision() Estimate { return share(c.Right, c.Right+c.Wrong) }

// Recall is the share of the images of the class that are found.
func (c Counts) Recall() Estimate { return share(c.Right, c.Right+c.Missed) }

// F1 is the harmonic mean of precision and recall; undefined if the class is neither shown nor found.
func (c Counts) F1() Estimate {
	all := 2*c.Right + c.Wrong + c.Missed
	if all == 0 {
		return undefined
	}
	f := 2 * float64(c.Right) / float64(all)
	squares := float64(c.Right)*(2-2*f)*(2-2*f) + float64(c.Wrong+c.Missed)*f*f
	return Estimate{f, math.Sqrt(squares) / float64(all)}
}

// Confusion counts images by label, then by predicted class. It is square.
type Confusion [][]int

// Counts are those of a class.
func (m Confusion) Counts(class int) Counts {
	c := Counts{Right: m[class][class]}
	for k := range m {
		if k != class {
			c.Wrong += m[k][class]
			c.Missed += m[class][k]
		}
	}
	return c
}

// BalancedAccuracy is the mean recall of the classes that have images.
func (m Confusion) BalancedAccuracy() Estimate {
	sum, variance, classes := 0., 0., 0
	for k := range m {
		if r := m.Counts(k).Recall(); r.Defined() {
			sum += r.Value
			variance += r.Error * r.Error
			classes++
		}
	}
	if classes == 0 {
		return undefined
	}
	return Estimate{sum / float64(classes), math.Sqrt(variance) / float64(classes)}
}

// MacroF1 is the mean F1 of the classes that occur, as labels or as predictions.
func (m Confusion) MacroF1() Estimate {
	f, of := make([]float64, len(m)), make([]float64, len(m)) // F1, and images that count for it
	sum, classes := 0., 0
	for k := range m {
		c := m.Counts(k)
		if e := c.F1(); e.Defined() {
			f[k], of[k] = e.Value, float64(2*c.Right+c.Wrong+c.Missed)
			sum += e.Value
			classes++
		}
	}
	if classes == 0 {
		return undefined
	}
	squares := 0.
	for i, row := range m {
		for j, n := range row {
			if n == 0 {
				continue
			}
			influence := (2 - 2*f[i]) / of[i]
			if i != j {
				influence = -f[i]/of[i] - f[j]/of[j]
			}
			squares += float64(n) * influence * influence
		}
	}
	return Estimate{sum / float64(classes), math.Sqrt(squares) / float64(classes)}
}
