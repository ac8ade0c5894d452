package extrapolate

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"onlinerna/internal/terminal"
	"onlinerna/internal/text"
	"onlinerna/rna"
)

// Report describes the making of an output.
type Report struct {
	Method    string         `json:"method"` // rna, average, ema or last
	Output    string         `json:"output"`
	Files     []FileWeight   `json:"files"`
	Residuals []Residual     `json:"residuals,omitempty"`
	Beta      float64        `json:"beta"`
	Lambda    *Number        `json:"lambda,omitempty"`
	Tau       *Number        `json:"tau,omitempty"`
	NormC     float64        `json:"norm_c,omitempty"`
	Condition *Number        `json:"condition,omitempty"`
	Rank      int            `json:"rank,omitempty"`
	Norm      float64        `json:"residual_norm,omitempty"` // ‖R‖₂
	Fit       *float64       `json:"fit,omitempty"`           // distance of an EMA's profile from the wanted one
	BatchNorm string         `json:"bn"`
	Tensors   map[string]int `json:"tensors"` // number of tensors by treatment
	Auto      []Candidate    `json:"candidates,omitempty"`
	// NoDifference means that a candidate has a lower loss than the chosen one, but not significantly by the test of
	// [rna.Choose].
	NoDifference bool     `json:"no_difference,omitempty"`
	Warnings     []string `json:"warnings,omitempty"`

	weights []float64
}

// FileWeight is the weight of a file in the output.
type FileWeight struct {
	Path   string  `json:"path"`
	Weight float64 `json:"weight"`
}

// Residual is x − y of two files, with its coefficient.
type Residual struct {
	X    string  `json:"x"`
	Y    string  `json:"y"`
	C    float64 `json:"c"`
	Norm float64 `json:"norm"`
}

// Number is a number that may be infinite, which JSON writes as a string.
type Number float64

// MarshalJSON writes infinities and NaN as strings.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsInf(v, 0) || math.IsNaN(v) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON is the inverse of MarshalJSON.
func (n *Number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	*n = Number(v)
	return err
}

func newReport(s *Series, o *Output) *Report {
	r := &Report{Output: o.Path, BatchNorm: o.BatchNorm, Beta: o.Beta, Tensors: map[string]int{}}
	for _, c := range s.Files() {
		r.Files = append(r.Files, FileWeight{Path: c.Path})
	}
	for _, t := range s.Tensors() {
		switch {
		case t.Role == Weight:
			r.Tensors["combined"]++
		case t.Role == Copied:
			r.Tensors["copied"]++
		case t.Role == Scale:
			r.Tensors["scales"]++
		default:
			r.Tensors["statistics"]++
		}
	}
	if r.Tensors["statistics"] == 0 {
		r.BatchNorm = ""
	}
	return r
}

// setWeights sets the weight of each file.
func (r *Report) setWeights(w []float64) {
	r.weights = w
	for i, v := range w {
		r.Files[i].Weight = v
	}
}

// setResult sets the coefficients of a solve.
func (r *Report) setResult(s *Series, res rna.Result, beta float64) {
	lambda, tau, condition := Number(res.Lambda), Number(res.Tau), Number(res.Condition)
	r.Lambda, r.Tau, r.Condition = &lambda, &tau, &condition
	r.NormC, r.Rank, r.Norm = res.NormC, res.Rank, res.Norm
	r.Residuals = nil
	for j, p := range s.Pairs() {
		r.Residuals = append(r.Residuals, Residual{s.Files()[p.X].Path, s.Files()[p.Y].Path, res.C[j], res.ResidualNorms[j]})
	}
	r.setWeights(s.Weights(res.C, beta))
}

// metadata describes the output, in addition to the metadata of the last file.
func (r *Report) metadata(s *Series) map[string]string {
	short := *r
	short.Output, short.Auto, short.Tensors, short.Warnings = "", nil, nil, nil
	short.Files = nil
	for _, f := range r.Files {
		short.Files = append(short.Files, FileWeight{filepath.Base(f.Path), f.Weight})
	}
	short.Residuals = nil
	for _, v := range r.Residuals {
		v.X, v.Y = filepath.Base(v.X), filepath.Base(v.Y)
		short.Residuals = append(short.Residuals, v)
	}
	b, err := json.Marshal(short)
	if err != nil {
		return nil
	}
	m := map[string]string{"extrapolation": string(b)}
	last := s.Files()[len(s.Files())-1].Metadata
	if _, ours := last["kind"]; ours {
		m["kind"] = map[string]string{"rna": "rna", "average": "average", "ema": "ema", "last": last["kind"]}[r.Method]
	}
	return m
}

// WriteTable writes the coefficients, the candidates and the treatment of the tensors.
func (r *Report) WriteTable(w io.Writer) error {
	page := terminal.NewPage(w)
	var rows [][]string
	if len(r.Residuals) > 0 {
		rows = [][]string{{"x", "y", "c", "‖x − y‖"}}
		for _, v := range r.Residuals {
			rows = append(rows, []string{v.X, v.Y, fmt.Sprintf("%.6f", v.C), fmt.Sprintf("%.4g", v.Norm)})
		}
	} else {
		rows = [][]string{{"file", "weight"}}
		for _, f := range r.Files {
			rows = append(rows, []string{f.Path, fmt.Sprintf("%.6f", f.Weight)})
		}
	}
	page.Table(rows)
	if r.Lambda != nil && len(r.Residuals) > 0 {
		fmt.Fprintf(page, "‖c‖ %.4g, lambda %.3g, tau %.4g, beta %g, condition %.3g, rank %d of %d\n",
			r.NormC, float64(*r.Lambda), float64(*r.Tau), r.Beta, float64(*r.Condition), r.Rank, len(r.Residuals))
	}
	if r.Fit != nil {
		fmt.Fprintf(page, "the fit is off by %.2g %% of the profile's norm\n", 100**r.Fit)
	}
	r.candidates(page)
	fmt.Fprintf(page, "%s: %s\n", r.Output, r.fates())
	return page.Flush(w)
}

// candidates adds the table of --auto.
func (r *Report) candidates(page *terminal.Page) {
	if r.Auto == nil {
		return
	}
	rows := [][]string{{"candidate", "lambda", "‖c‖", "loss", "to the last", ""}}
	for _, c := range r.Auto {
		lambda, norm, difference, note := "", "", "", c.Status
		if c.Lambda != nil {
			lambda, norm = fmt.Sprintf("%.0e", float64(*c.Lambda)), fmt.Sprintf("%.3g", c.NormC)
		}
		if c.ToLast != nil {
			difference = fmt.Sprintf("%+.4f ± %.4f", float64(*c.ToLast), float64(*c.Error))
		}
		if c.Chosen {
			note = "chosen"
		}
		rows = append(rows, []string{c.Kind, lambda, norm, fmt.Sprintf("%.4f", float64(c.Loss)), difference, note})
	}
	page.WriteString("\n")
	page.Table(rows)
	if r.NoDifference {
		page.WriteString("no difference: other candidates have a lower loss than the chosen one, but not " +
			"by a t test at 5 %\n")
	}
}

// fates describes the treatment of the tensors.
func (r *Report) fates() string {
	parts := []string{text.Count(r.Tensors["combined"], "tensor") + " combined"}
	if n := r.Tensors["scales"]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of them with new scales", n))
	}
	if n := r.Tensors["copied"]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d of integers copied from the last file", n))
	}
	if n := r.Tensors["statistics"]; n > 0 {
		fate := map[string]string{LastStats: "copied from the last file (see --bn)", Combine: "combined",
			Reestimate: "re-estimated"}[r.BatchNorm]
		parts = append(parts, fmt.Sprintf("%d of BatchNorm statistics %s", n, fate))
	}
	return strings.Join(parts, ", ")
}

// Candidate is a point that --auto considered.
type Candidate struct {
	Kind   string  `json:"kind"` // last, average or rna
	Lambda *Number `json:"lambda,omitempty"`
	NormC  float64 `json:"norm_c,omitempty"`
	Loss   Number  `json:"loss"`
	// ToLast is the loss minus that of the last file, and Error its standard error over the images.
	ToLast *Number `json:"to_last,omitempty"`
	Error  *Number `json:"error,omitempty"`
	Status string  `json:"status,omitempty"` // reason why it was not evaluated
	Chosen bool    `json:"chosen,omitempty"`
}
