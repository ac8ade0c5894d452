// Package measure computes measures of classifiers with standard errors: from counts of labels and predictions, and
// from the order in which scores put images.
//
// The influence of an image on a measure is the measure's derivative by the image's weight. The standard error of a
// measure is the root of the sum of the squared influences (the infinitesimal jackknife): for shares, such as recall,
// it is the binomial one, for F1 the delta method's, and for the area under the ROC curve DeLong's.
package measure

import (
	"encoding/json"
	"fmt"
	"math"
)

// Estimate is a measure from 0 to 1 with its standard error. Both are NaN if they are undefined.
type Estimate struct{ Value, Error float64 }

// undefined is the measure of nothing.
var undefined = Estimate{math.NaN(), math.NaN()}

// Defined reports whether there is a value.
func (e Estimate) Defined() bool { return !math.IsNaN(e.Value) }

// String is the value and its standard error in percent.
func (e Estimate) String() string {
	switch {
	case !e.Defined():
		return "-"
	case math.IsNaN(e.Error):
		return fmt.Sprintf("%.2f", 100*e.Value)
	}
	return fmt.Sprintf("%.2f ± %.2f", 100*e.Value, 100*e.Error)
}

// estimateJSON is an Estimate in JSON, which has no NaN.
type estimateJSON struct {
	Value *float64 `json:"value"`
	Error *float64 `json:"standard_error"`
}

// MarshalJSON writes undefined numbers as null.
func (e Estimate) MarshalJSON() ([]byte, error) {
	var j estimateJSON
	if e.Defined() {
		j.Value = &e.Value
	}
	if !math.IsNaN(e.Error) {
		j.Error = &e.Error
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads null as NaN.
func (e *Estimate) UnmarshalJSON(b []byte) error {
	*e = undefined
	j := estimateJSON{&e.Value, &e.Error}
	return json.Unmarshal(b, &j)
}

// share is k of n with the binomial standard error.
func share(k, n int) Estimate {
	if n == 0 {
		return undefined
	}
	p := float64(k) / float64(n)
	return Estimate{p, math.Sqrt(p * (1 - p) / float64(n))}
}
