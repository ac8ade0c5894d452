package train

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"

	"onlinerna/data"
	"onlinerna/internal/files"
	"onlinerna/internal/text"
)

// ClassWeights are the words of Spec.ClassWeights, one of:
//
//   - auto: n/(K·nₖ) for a class with nₖ of the n images of K classes, as scikit-learn's balanced;
//   - effective or effective:β: in proportion to (1−β)/(1−β^nₖ), 1 on average over classes (Cui et al. 2019);
//     β is 0.9999 by default;
//   - a number for each class, in the order of the classes;
//   - class=number for some classes; others have 1.
type ClassWeights []string

// usualBeta is the default of effective: images of a class are as good as 10,000 different ones at most.
const usualBeta = 0.9999

// beta returns the β of effective; ok is false for other words.
func beta(word string) (b float64, ok bool, err error) {
	text, given := strings.CutPrefix(word, "effective:")
	switch {
	case word == "effective":
		return usualBeta, true, nil
	case !given:
		return 0, false, nil
	}
	b, err = strconv.ParseFloat(text, 64)
	if err != nil || !(b >= 0 && b < 1) {
		err = errors.New("effective:β takes a β from 0 to below 1, as effective:0.999")
	}
	return b, true, err
}

// entry splits a word class=number, or number with an empty class.
func entry(word string) (class string, weight float64, err error) {
	number := word
	if at := strings.LastIndexByte(word, '='); at >= 0 {
		class, number = word[:at], word[at+1:]
	}
	weight, err = strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil:
		err = errors.New("want a number for each class, as 1,2.5, class=number, auto, effective, or a file with a class " +
			"and its number a line")
	case math.IsNaN(weight) || math.IsInf(weight, 0):
		err = errors.New("must be finite")
	case weight < 0:
		err = errors.New("must not be negative")
	}
	return class, weight, err
}

// checkWeight checks a word on its own.
func checkWeight(word string) error {
	if word == "auto" {
		return nil
	}
	if _, ok, err := beta(word); ok {
		return err
	}
	_, _, err := entry(word)
	return err
}

// check finds words that do not go together, or not with the classes.
func (w ClassWeights) check(classes []string) error {
	if len(w) == 0 || len(w) == 1 && byCount(w[0]) {
		return nil
	}
	named := 0
	seen := map[string]bool{}
	for _, word := range w {
		if byCount(word) {
			return fmt.Errorf("class-weights %s stands alone: there are %d words", word, len(w))
		}
		class, _, err := entry(word)
		switch {
		case err != nil:
			return fmt.Errorf("class-weights %s: %w", word, err)
		case class == "":
			continue
		case !slices.Contains(classes, class):
			return fmt.Errorf("class-weights %s: the training set has no class %s; it has %d classes",
				word, class, len(classes))
		case seen[class]:
			return fmt.Errorf("class-weights: %s has two numbers", class)
		}
		seen[class] = true
		named++
	}
	if named > 0 && named < len(w) {
		return fmt.Errorf("class-weights: %d words name their class and %d do not: name all or none", named, len(w)-named)
	}
	if named == 0 && len(w) != len(classes) {
		return fmt.Errorf("%d class weights for %d classes", len(w), len(classes))
	}
	return nil
}

// byCount reports whether a word derives weights from the numbers of images.
func byCount(word string) bool {
	_, effective, _ := beta(word)
	return word == "auto" || effective
}

// of returns the weights of a number of outputs for classes with these numbers of training images. Outputs beyond the
// classes have the weight 1. It returns nil for no words.
func (w ClassWeights) of(classes []string, counts []int, outputs int) ([]float64, error) {
	if len(w) == 0 {
		return nil, nil
	}
	x := slices.Repeat([]float64{1}, outputs)
	if !byCount(w[0]) {
		for i, word := range w {
			class, weight, err := entry(word)
			if err != nil {
				return nil, err
			}
			if class != "" {
				i = slices.Index(classes, class)
			}
			x[i] = weight
		}
		return x, nil
	}
	total, inverse := 0, 0.
	for k, n := range counts {
		if n == 0 {
			return nil, fmt.Errorf("class-weights %s: the class %s has no images to train on: add some, or leave it out of "+
				"the classes, or give numbers", w[0], classes[k])
		}
		total += n
	}
	b, effective, err := beta(w[0])
	if err != nil {
		return nil, err
	}
	for k, n := range counts {
		x[k] = float64(total) / float64(len(counts)*n)
		if effective {
			// (1−β)/(1−β^n), where β^n may be near 1
			x[k] = (1 - b) / -math.Expm1(float64(n)*math.Log(b))
			inverse += x[k]
		}
	}
	if effective {
		for k := range counts {
			x[k] *= float64(len(counts)) / inverse
		}
	}
	return x, nil
}

// classWeights returns the weights of the net's outputs in the loss, nil for none. Images that are held out do not count.
func (r *Run) classWeights() ([]float64, error) {
	c := &r.Resolved
	if len(c.ClassWeights) == 0 {
		return nil, nil
	}
	train, _, err := split(&c.Spec, r.in.set)
	if err != nil {
		return nil, err
	}
	names, counts := train.Classes(), data.ClassCounts(train)
	x, err := c.ClassWeights.of(names, counts, c.NumClasses)
	if err != nil || !byCount(c.ClassWeights[0]) {
		return x, err
	}
	lo, hi := slices.Index(x, slices.Min(x[:len(names)])), slices.Index(x, slices.Max(x[:len(names)]))
	c.note("class weights %s: from %.4g for %s, %s, to %.4g for %s, %s", c.ClassWeights[0], x[lo], names[lo],
		text.Count(counts[lo], "image"), x[hi], names[hi], text.Count(counts[hi], "image"))
	return x, nil
}

// weightsValue is the option of class weights: on the command line also a file.
type weightsValue struct{ w *ClassWeights }

func (v weightsValue) Set(list string) error {
	words := strings.Split(list, ",")
	if len(words) == 1 && checkWeight(list) != nil {
		b, err := files.ReadAtMost(list, maxFile)
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return checkWeight(list)
			}
			return err
		}
		if words, err = weightLines(b); err != nil {
			return err
		}
	}
	for _, word := range words {
		if err := checkWeight(word); err != nil {
			return err
		}
	}
	*v.w = words
	return nil
}

// weightLines reads a weight a line, behind the class if it is named: with a space, a tab, a comma or = between.
func weightLines(b []byte) (words []string, err error) {
	for i, line := range strings.Split(string(bytes.TrimPrefix(b, []byte("\ufeff"))), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		word := line
		if at := strings.LastIndexAny(line, " \t,="); at >= 0 {
			word = strings.TrimRight(line[:at], " \t,=") + "=" + line[at+1:]
		}
		if _, _, err := entry(word); err != nil {
			return nil, fmt.Errorf("line %d, %s: want a class and its number, not negative", i+1, line)
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return nil, errors.New("the file has no weights: want a class and its number a line")
	}
	return words, nil
}

func (v weightsValue) String() string        { return strings.Join(*v.w, ",") }
func (v weightsValue) Unset()                { *v.w = nil }
func (v weightsValue) List() []string        { return *v.w }
func (v weightsValue) SetList(list []string) { *v.w = list }
func (weightsValue) Type() string            { return "numbers" }
