package extrapolate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/rna"
	"onlinerna/train/ranks"
)

// Pair identifies the files of a residual x − y by their indices in the series.
type Pair struct{ Y, X int }

// Options are the parameters of a [Series].
type Options struct {
	// Pairs are the residuals. Nil makes one from each file and the previous one.
	Pairs []Pair

	// Workers is the number of goroutines, 0 for one per core. Results do not depend on it.
	Workers int

	// Loose leaves out tensors that some files lack, which are otherwise an error: see [Series.Left].
	Loose bool

	// Differing leaves out tensors of different shapes or types, too.
	Differing bool

	// Ranks share the work of [Series.Measure] and of verifying files; nil for a single process. All ranks must have the
	// same files, and call the same methods.
	Ranks *ranks.Group

	// Unverified files are not compared with their checksums, which reads them once more.
	Unverified bool

	// Start, if set, receives the next part of the work and its bytes.
	Start func(part string, bytes int64)

	// Progress, if set, receives the number of bytes read since its last call. It is called concurrently.
	Progress func(bytes int64)
}

// Series is an ordered list of checkpoints with the same tensors, oldest first.
type Series struct {
	files   []*Checkpoint
	opt     Options
	tensors []column // by name, so that sums have the same order for all files
	left    []string // with reasons, if files are compared loosely
	differ  bool     // some of them in shape or type
	space   *space
}

// column is one tensor in each file.
type column struct {
	Tensor
	in    []Tensor // by file
	scale *scaling // of eight-bit tensors with one
}

// A DifferenceError describes how files that should hold the same tensors differ.
type DifferenceError struct {
	Lines []string // one per difference
	More  int      // differences that are not listed
}

// maxLines is the maximum number of listed differences.
const maxLines = 20

func (e *DifferenceError) Error() string {
	s := "the files do not hold the same tensors:\n  " + strings.Join(e.Lines, "\n  ")
	if e.More > 0 {
		s += fmt.Sprintf("\n  and %d more differences", e.More)
	}
	return s
}

// NewSeries returns a series of files, which the caller must close. Files that differ in names, shapes or types give a
// [*DifferenceError].
func NewSeries(files []*Checkpoint, opt Options) (*Series, error) {
	if len(files) == 0 {
		return nil, errors.New("no checkpoint")
	}
	if opt.Pairs == nil {
		for i := 1; i < len(files); i++ {
			opt.Pairs = append(opt.Pairs, Pair{i - 1, i})
		}
	}
	for _, p := range opt.Pairs {
		if min(p.X, p.Y) < 0 || max(p.X, p.Y) >= len(files) {
			return nil, fmt.Errorf("residual of files %d and %d of %d", p.X, p.Y, len(files))
		}
	}
	s := &Series{files: files, opt: opt}
	last := files[len(files)-1]
	left, differ, err := compare(files, opt.Loose, opt.Differing)
	if err != nil {
		return nil, err
	}
	for name, why := range left {
		s.left = append(s.left, name+": "+why)
	}
	slices.Sort(s.left)
	s.differ = differ
	weights := 0
	for _, t := range last.Tensors {
		if left[t.Name] != "" {
			continue
		}
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
	if name, scale := quantised(last); name != "" {
		return nil, fmt.Errorf("%s: %s is quantised, with the scales %s: only eight-bit floating-point numbers are combined "+
			"by their scales: convert the checkpoints to BF16 first", last.Path, name, scale)
	}
	slices.SortFunc(s.tensors, func(a, b column) int { return strings.Compare(a.Name, b.Name) })
	if weights == 0 && len(left) > 0 {
		if _, _, err := compare(files, false, false); err != nil {
			return nil, err
		}
	}
	if weights == 0 {
		return nil, fmt.Errorf("%s: no floating-point tensor to extrapolate", last.Path)
	}
	return s, s.pairScales()
}

// compare lists how files differ from the last one. In a loose comparison, tensors missing from a file are left out,
// each with the reason; differing leaves out those of other shapes or types, too, and reports whether there are any.
func compare(files []*Checkpoint, loose, differing bool) (left map[string]string, differ bool, err error) {
	last := files[len(files)-1]
	diff := &DifferenceError{}
	left = map[string]string{}
	note := func(missing, format string, args ...any) {
		switch {
		case loose && missing != "":
			left[missing] = fmt.Sprintf(format, args...)
		case len(diff.Lines) == maxLines:
			diff.More++
		default:
			diff.Lines = append(diff.Lines, fmt.Sprintf(format, args...))
		}
	}
	for _, f := range files[:len(files)-1] {
		for _, t := range last.Tensors {
			switch own, ok := f.Lookup(t.Name); {
			case !ok:
				note(t.Name, "%s lacks %s %s%v of %s", f.Path, t.Name, t.DType, t.Shape, last.Path)
			case own.DType != t.DType || !slices.Equal(own.Shape, t.Shape):
				name := ""
				if differing {
					name = t.Name
					differ = true
				}
				note(name, "%s has %s %s%v, %s has %s%v%s", f.Path, t.Name, own.DType, own.Shape, last.Path, t.DType, t.Shape,
					vocabularies(own, t))
			}
		}
		for _, t := range f.Tensors {
			if _, ok := last.Lookup(t.Name); !ok {
				note(t.Name, "%s has %s %s%v, which %s lacks", f.Path, t.Name, t.DType, t.Shape, last.Path)
			}
		}
	}
	if diff.Lines == nil {
		return left, differ, nil
	}
	return nil, false, diff
}

// vocabularies explains a difference in the rows of a table alone by different vocabularies.
func vocabularies(a, b Tensor) string {
	if len(a.Shape) != 2 || len(b.Shape) != 2 || a.Shape[1] != b.Shape[1] || a.DType != b.DType {
		return ""
	}
	for _, name := range []string{"embed", "wte", "lm_head", "output.weight"} {
		if strings.Contains(a.Name, name) {
			return fmt.Sprintf(": vocabularies of %d and %d words; bring the models to one first", a.Shape[0], b.Shape[0])
		}
	}
	return ""
}

// Left lists the tensors that were left out, each with the reason.
func (s *Series) Left() []string { return s.left }

// Differ reports whether tensors were left out because they differ in shape or type.
func (s *Series) Differ() bool { return s.differ }

// Of returns the series of some of the tensors, which shares the files.
func (s *Series) Of(want func(Tensor) bool) *Series {
	part := &Series{files: s.files, opt: s.opt}
	for _, c := range s.tensors {
		if want(c.Tensor) {
			part.tensors = append(part.tensors, c)
		}
	}
	return part
}

// Files returns the checkpoints.
func (s *Series) Files() []*Checkpoint { return s.files }

// Pairs returns the residuals.
func (s *Series) Pairs() []Pair { return s.opt.Pairs }

// Tensors returns the tensors that all files have, in the order of the last one, each followed by its scale.
func (s *Series) Tensors() []Tensor {
	by := map[string]*column{}
	for i := range s.tensors {
		by[s.tensors[i].Name] = &s.tensors[i]
	}
	var list []Tensor
	for _, t := range s.files[len(s.files)-1].Tensors {
		c := by[t.Name]
		if c == nil || c.Role == Scale {
			continue
		}
		list = append(list, c.Tensor)
		if c.scale != nil {
			list = append(list, by[c.scale.Name].Tensor)
		}
	}
	return list
}

// WithWorkers returns the series with at most n goroutines.
func (s *Series) WithWorkers(n int) *Series {
	other := *s
	other.opt.Workers = max(min(s.workers(), n), 1)
	return &other
}

// Alike reports whether all residuals of a measured series are zero.
func (s *Series) Alike() bool {
	n := len(s.opt.Pairs)
	for j := range n {
		if s.space.sum.gram[j*n+j] != 0 {
			return false
		}
	}
	return true
}

// Distances returns the distances of Σ weights[k] file_k; nil for unmeasured files, for files that form no chain, and
// for weights that do not sum to 1.
func (s *Series) Distances(weights []float64) *Distances {
	n := len(s.opt.Pairs)
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if s.space == nil || n != len(s.files)-1 || math.Abs(sum-1) > 1e-6 {
		return nil
	}
	for j, p := range s.opt.Pairs {
		if p.Y != j || p.X != j+1 {
			return nil
		}
	}
	gram := func(i, j int) float64 {
		return math.Ldexp(s.space.sum.gram[i*n+j], s.space.exps[i]+s.space.exps[j])
	}
	length := func(c []float64) float64 {
		square := 0.0
		for i := range n {
			for j := range n {
				square += c[i] * c[j] * gram(i, j)
			}
		}
		return math.Sqrt(max(square, 0))
	}
	last, first := make([]float64, n), make([]float64, n) // the point minus the last and the first file, as sums of steps
	rest := sum
	for j := range n {
		rest -= weights[j]
		last[j], first[j] = rest-sum, rest
	}
	return &Distances{length(first), length(last), diameter(n, gram)}
}

// Bytes returns the bytes of combined tensors in the given number of files.
func (s *Series) Bytes(files int, stats Stats) int64 {
	sum := int64(0)
	for _, c := range s.tensors {
		if stats.combines(c.Role) {
			sum += c.Bytes()
		}
	}
	return sum * int64(files)
}

// Last returns the weights that reproduce the last file.
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

// Weights converts coefficients of residuals to weights of files: y⁺ = Y c + β R c = Σ w_k file_k.
func (s *Series) Weights(c []float64, beta float64) []float64 {
	w := make([]float64, len(s.files))
	for j, p := range s.opt.Pairs {
		w[p.Y] += (1 - beta) * c[j]
		w[p.X] += beta * c[j]
	}
	return w
}

// Solve returns the coefficients of the residuals, one each in their order. [Series.Measure] must come before. For λ =
// 0, and if the residuals are so dependent that the Gram matrix lacks digits, the files are read once more.
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

// Candidates returns the candidates of a search for λ, not evaluated: see [rna.Window.Candidates]. [Series.Measure]
// must come before.
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
