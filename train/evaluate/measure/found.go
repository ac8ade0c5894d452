package measure

import "math"

// Labels are the measures of the classes found in images that show any number of them.
type Labels struct {
	Classes []Counts
	MacroF1 Estimate // mean over classes that are shown or found
	MicroF1 Estimate // of all pairs of an image and a class
	Exact   Estimate // the share of images whose classes are those found
}

// Found compares rows of found classes with those shown, whose targets are above 0, of width classes each. Standard
// errors count an image's influence on all classes together.
func Found(found []bool, targets []float64, width int) Labels {
	l := Labels{Classes: make([]Counts, width), MacroF1: undefined}
	n, exact := len(found)/width, 0
	for i := range n {
		right := true
		for k := range width {
			shown := targets[i*width+k] > 0
			l.Classes[k].count(found[i*width+k], shown)
			right = right && found[i*width+k] == shown
		}
		if right {
			exact++
		}
	}
	l.Exact = share(exact, n)
	var all Counts
	sum, defined := 0., 0
	for _, c := range l.Classes {
		all.Right, all.Wrong, all.Missed = all.Right+c.Right, all.Wrong+c.Wrong, all.Missed+c.Missed
		if f := c.F1(); f.Defined() {
			sum += f.Value
			defined++
		}
	}
	l.MicroF1 = all.F1()
	if defined == 0 {
		return l
	}
	macro, micro := 0., 0. // sums of the squared influences
	for i := range n {
		ofMacro, ofMicro := 0., 0.
		for k := range width {
			f, s := found[i*width+k], targets[i*width+k] > 0
			ofMacro += l.Classes[k].influence(f, s) / float64(defined)
			ofMicro += all.influence(f, s)
		}
		macro += ofMacro * ofMacro
		micro += ofMicro * ofMicro
	}
	l.MacroF1 = Estimate{sum / float64(defined), math.Sqrt(macro)}
	l.MicroF1.Error = math.Sqrt(micro)
	return l
}

// count adds an image.
func (c *Counts) count(found, shown bool) {
	switch {
	case found && shown:
		c.Right++
	case found:
		c.Wrong++
	case shown:
		c.Missed++
	}
}

// influence is that of an image on F1.
func (c Counts) influence(found, shown bool) float64 {
	f := c.F1().Value
	all := float64(2*c.Right + c.Wrong + c.Missed)
	switch {
	case found && shown:
		return (2 - 2*f) / all
	case found || shown:
		return -f / all
	}
	return 0
}
