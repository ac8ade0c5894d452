package extrapolate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"onlinerna/rna"
)

// Pair names the files of a residual x − y by their places in the series.
type Pair struct{ Y, X int }

// Options are the parameters of a [Series].
type Options struct {
	// Pairs are the residuals. Nil makes one of each file and the one before it.
	Pairs []Pair

	// Workers is the number of goroutines, 0 for one a core. Results do not depend on it.
	Workers int

	// Progress, if set, is told how many bytes more were read. It is called concurrently.
	Progress func(bytes int64)
}

// Series is a row of checkpoints that hold the same tensors, oldest first.
type Series struct {
	files   []*Checkpoint
	opt     Options
	tensors []column // by name, so that sums have one order whatever the files'
	space   *space
}

// column is one tensor in each file.
type column struct {
	Tensor
	in []Tensor // by file
}

// A DifferenceError says how files that should hold the same tensors differ.
type DifferenceError struct {
	Lines []string // one a difference
	More  int      // differences that are not listed
}

// maxLines is how many differences are listed.
const maxLines = 20

func (e *DifferenceError) Error() string {
	s := "the files do not hold the same tensors:\n  " + strings.Join(e.Lines, "\n  ")
	if e.More > 0 {
		s += fmt.Sprintf("\n  and %d more differences", e.More)
	}
	return s
}

// NewSeries makes a series of files, which remain the caller's to close. Files that differ in names, shapes or types
// give a [*DifferenceError].
func NewSeries(files []*Checkpoint, opt Options) (*Series, error) {
	if len(files) == 0 {
		return nil, errors.New("no checkpoint")
	}
	if opt.Pairs == nil {
		for i := 1; i < len(files); i++ {
			opt.Pairs = append(opt.Pairs, Pair{i - 1, i})
		}
	}
	if len(opt.Pairs) > rna.MaxColumns {
		return nil, fmt.Errorf("%d residuals: at most %d are solved for", len(opt.Pairs), rna.MaxColumns)
	}
	for _, p := range opt.Pairs {
		if min(p.X, p.Y) < 0 || max(p.X, p.Y) >= len(files) {
			return nil, fmt.Errorf("residual of files %d and %d of %d", p.X, p.Y, len(files))
		}
	}
	s := &Series{files: files, opt: opt}
	last := files[len(files)-1]
	if err := compare(files); err != nil {
		return nil, err
	}
	weights := 0
	for _, t := range last.Tensors {
		c := column{Tensor: t}
		for _, f := range files {
			own, _ := f.Lookup(t.Name)
			c.in = append(c.in, own)
		}
		s.tensors = append(s.tensors, c)
		if t.Role == Weight {
			weights += t.n
		}
	}
	slices.SortFunc(s.tensors, func(a, b column) int { return strings.Compare(a.Name, b.Name) })
	if weights == 0 {
		return nil, fmt.Errorf("%s: no floating-point tensor to extrapolate", last.Path)
	}
	return s, nil
}

// compare lists how files differ from the last one.
func compare(files []*Checkpoint) error {
	last := files[len(files)-1]
	diff := &DifferenceError{}
	note := func(format string, args ...any) {
		if len(diff.Lines) == maxLines {
			diff.More++
			return
		}
		diff.Lines = append(diff.Lines, fmt.Sprintf(format, args...))
	}
	for _, f := range files[:len(files)-1] {
		for _, t := range last.Tensors {
			switch own, ok := f.Lookup(t.Name); {
			case !ok:
				note("%s lacks %s %s%v of %s", f.Path, t.Name, t.DType, t.Shape, last.Path)
			case own.DType != t.DType || !slices.Equal(own.Shape, t.Shape):
				note("%s has %s %s%v, %s has %s%v", f.Path, t.Name, own.DType, own.Shape, last.Path, t.DType, t.Shape)
			}
		}
		for _, t := range f.Tensors {
			if _, ok := last.Lookup(t.Name); !ok {
				note("%s has %s %s%v, which %s lacks", f.Path, t.Name, t.DType, t.Shape, last.Path)
			}
		}
	}
	if diff.Lines == nil {
		return nil
	}
	return diff
}

// Files returns the checkpoints.
func (s *Series) Files() []*Checkpoint { return s.files }

// Pairs returns the residuals.
func (s *Series) Pairs() []Pair { return s.opt.Pairs }

// Tensors returns the tensors of the last file.
func (s *Series) Tensors() []Tensor { return s.files[len(s.files)-1].Tensors }

// Bytes returns how many bytes of so many files hold tensors that are combined.
func (s *Series) Bytes(files int, stats Stats) int64 {
	sum := int64(0)
	for _, c := range s.tensors {
		if stats.combines(c.Role) {
			sum += c.Bytes()
		}
	}
	return sum * int64(files)
}

// Last returns the weights that give back the last file.
func (s *Series) Last() []float64 {
	w := make([]float64, len(s.files))
	w[len(w)-1] = 1
	return w
}

// Average returns the weights of the uniform average over all files.
func (s *Series) Average() []float64 {
	w := make([]float64, len(s.files))
	for i := range w {
		w[i] = 1 / float64(len(w))
	}
	return w
}

// Weights turns coefficients of residuals into weights of files: y⁺ = Y c + β R c = Σ w_k file_k.
func (s *Series) Weights(c []float64, beta float64) []float64 {
	w := make([]float64, len(s.files))
	for j, p := range s.opt.Pairs {
		w[p.Y] += (1 - beta) * c[j]
		w[p.X] += beta * c[j]
	}
	return w
}

// Solve returns the coefficients for the residuals, one each in their order. [Series.Measure] must come before. For
// λ = 0, and where the residuals are so dependent that the Gram matrix lacks digits, the files are read once more.
func (s *Series) Solve(opt rna.Options) (rna.Result, error) {
	if s.space == nil {
		return rna.Result{}, errors.New("coefficients of a series that was not measured")
	}
	w, err := s.space.window()
	if err != nil {
		return rna.Result{}, err
	}
	return w.Solve(opt)
}

// Candidates are those of a search for λ, not evaluated: see [rna.Window.Candidates]. [Series.Measure] must come before.
func (s *Series) Candidates(opt rna.SearchOptions) ([]rna.Candidate, error) {
	if s.space == nil {
		return nil, errors.New("candidates of a series that was not measured")
	}
	w, err := s.space.window()
	if err != nil {
		return nil, err
	}
	return w.Candidates(opt)
}
