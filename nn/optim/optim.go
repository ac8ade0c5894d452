// Package optim has the optimisers, a file each: their definition, which every device compiles, the names and defaults
// of their hyperparameters, and the program that judges them.
package optim

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"onlinerna/nn/device"
)

// The names of hyperparameters. An optimiser takes some of them; each takes a learning rate and weight decay.
const (
	Momentum         = "momentum"
	Beta1            = "beta1"
	Beta2            = "beta2"
	Eps              = "eps"
	TrustCoefficient = "trust-coefficient"
	MaxGradNorm      = "max-grad-norm"
)

// Definition describes an optimiser for those who choose one by name.
type Definition struct {
	Name     string             // as users type it
	Title    string             // as it is written
	Takes    map[string]float64 // hyperparameters, with their defaults
	Nesterov bool               // there is Nesterov's form
	// Rate and Decay are the defaults of the learning rate and of weight decay; 0: defaults that depend on the data.
	Rate, Decay float64
	Constant    bool // the learning rate is to stay, unless the user asks for a schedule
	Make        func(Hyper) device.Optimizer
}

// Hyper are the hyperparameters of an optimiser.
type Hyper struct {
	Of       map[string]float64 // by name, all that Takes has
	Decay    float64            // weight decay
	Nesterov bool
}

var definitions []Definition

// register is called by the file of each optimiser.
func register(d Definition) { definitions = append(definitions, d) }

// All lists the optimisers, SGD first and the others by name.
func All() []Definition {
	list := slices.Clone(definitions)
	first := func(d Definition) int {
		if d.Name == "sgd" {
			return 0
		}
		return 1
	}
	slices.SortFunc(list, func(a, b Definition) int {
		return cmp.Or(cmp.Compare(first(a), first(b)),
			cmp.Compare(a.Name, b.Name))
	})
	return list
}

// inRange is an error for a hyperparameter that is not a number from lo to hi.
func inRange(name string, x, lo, hi float64) error {
	if x >= lo && x <= hi {
		return nil
	}
	switch {
	case hi < 1 && lo == 0:
		return fmt.Errorf("%s %g: want a number in [0, 1)", name, x)
	case hi < math.MaxFloat64:
		return fmt.Errorf("%s %g: want a number from %g to %g", name, x, lo, hi)
	case lo > 0:
		return fmt.Errorf("%s %g: want a finite number above 0", name, x)
	}
	return fmt.Errorf("%s %g: want a finite number, at least %g", name, x, lo)
}
