package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/nn/device"
	"onlinerna/nn/optim"
	"onlinerna/train/option"
)

// Optimizers lists the names that Spec.Optimizer accepts.
func Optimizers() []string {
	var names []string
	for _, o := range optim.All() {
		names = append(names, o.Name)
	}
	return names
}

// Hyperparameter is a numeric parameter of some optimisers.
type Hyperparameter struct {
	Name  string // name of the option
	Help  string
	Field func(*Spec) **float64
}

// Hyperparameters lists those of all optimisers, except the weight decay, which every optimiser has.
func Hyperparameters() []Hyperparameter {
	list := []Hyperparameter{
		{optim.Momentum, "momentum", func(c *Spec) **float64 { return &c.Momentum }},
		{optim.Beta1, "decay of the gradient's average", func(c *Spec) **float64 { return &c.Beta1 }},
		{optim.Beta2, "decay of the second average, of the gradient's square but for lion",
			func(c *Spec) **float64 { return &c.Beta2 }},
		{optim.Eps, "added to the denominator", func(c *Spec) **float64 { return &c.Eps }},
		{optim.TrustCoefficient, "rate of a tensor by the ratio of its norm to its gradient's",
			func(c *Spec) **float64 { return &c.TrustCoefficient }},
		{optim.MaxGradNorm, "norm to which a longer gradient is scaled down; 0: none",
			func(c *Spec) **float64 { return &c.MaxGradNorm }},
	}
	for i, h := range list {
		by := map[float64][]string{}
		var values []float64
		for _, o := range optim.All() {
			if x, ok := o.Takes[h.Name]; ok {
				if by[x] == nil {
					values = append(values, x)
				}
				by[x] = append(by[x], o.Name)
			}
		}
		var defaults []string
		for _, x := range values {
			defaults = append(defaults, fmt.Sprintf("%s: %g", strings.Join(by[x], ", "), x))
		}
		list[i].Help = fmt.Sprintf("%s (default for %s)", h.Help, strings.Join(defaults, "; "))
	}
	return list
}

// RateDefaults lists the optimisers whose learning rate does not depend on the data, as "adamw: 0.001".
func RateDefaults() string { return ownDefaults(func(o optim.Definition) float64 { return o.Rate }) }

// DecayDefaults lists the optimisers whose weight decay does not depend on the data, as RateDefaults does.
func DecayDefaults() string { return ownDefaults(func(o optim.Definition) float64 { return o.Decay }) }

func ownDefaults(of func(optim.Definition) float64) string {
	var list []string
	for _, o := range optim.All() {
		if x := of(o); x > 0 {
			list = append(list, fmt.Sprintf("%s: %g", o.Name, x))
		}
	}
	return strings.Join(list, ", ")
}

// rule finds the optimiser of c.
func (c *Spec) rule() (o optim.Definition, err error) {
	list := optim.All()
	i := slices.IndexFunc(list, func(o optim.Definition) bool { return o.Name == c.Optimizer })
	if i < 0 {
		return o, fmt.Errorf("unknown optimizer %q: use one of %s", c.Optimizer, strings.Join(Optimizers(), ", "))
	}
	return list[i], nil
}

// optimizer returns the optimiser of a resolved Spec.
func (c *Spec) optimizer(o optim.Definition) device.Optimizer {
	h := optim.Hyper{Of: map[string]float64{}, Decay: *c.WeightDecay, Nesterov: c.Nesterov}
	for _, p := range Hyperparameters() {
		if x := *p.Field(c); x != nil {
			h.Of[p.Name] = *x
		}
	}
	return o.Make(h)
}

// resolveOptimizer fills in hyperparameters, and the defaults of the learning rate and the weight decay. A
// hyperparameter that the optimiser lacks is an error.
func (c *Spec) resolveOptimizer(pre *preset) error {
	option.Default(&c.Optimizer, optim.All()[0].Name)
	o, err := c.rule()
	if err != nil {
		return err
	}
	for _, h := range Hyperparameters() {
		x, ok := o.Takes[h.Name]
		if f := h.Field(c); ok {
			option.DefaultPointer(f, x)
		} else if *f != nil {
			return fmt.Errorf("optimizer %s does not take %s", o.Name, h.Name)
		}
	}
	if c.Nesterov && !o.Nesterov {
		return fmt.Errorf("optimizer %s does not take nesterov", o.Name)
	}
	if o.Rate > 0 {
		pre.rate = o.Rate
	}
	if o.Decay > 0 {
		pre.decay = o.Decay
	}
	option.DefaultPointer(&c.WeightDecay, pre.decay)
	return nil
}

// checkOptimizer finds hyperparameters outside their range.
func (c *Spec) checkOptimizer() error {
	o, err := c.rule()
	if err != nil {
		return err
	}
	if m := c.Momentum; m != nil {
		switch {
		case *m < 0 || *m >= 1 || math.IsNaN(*m):
			return fmt.Errorf("momentum %g: must lie in [0, 1)", *m)
		case *m == 0 && c.Nesterov:
			return fmt.Errorf("nesterov needs a momentum above 0")
		}
	}
	return c.optimizer(o).Check()
}

// DefaultOptimizer returns an optimiser with its default hyperparameters and learning rate. SGD's rate and decay depend
// on the data; here they are 0.1 and 1e-4.
func DefaultOptimizer(name string) (o device.Optimizer, rate float64, err error) {
	c := Spec{Optimizer: name}
	pre := preset{rate: 0.1, decay: 1e-4}
	if err := c.resolveOptimizer(&pre); err != nil {
		return nil, 0, err
	}
	o, err = c.newOptimizer()
	return o, pre.rate, err
}

// OptimizerName returns the optimiser's name in its usual spelling, such as AdamW.
func (c *Spec) OptimizerName() string {
	if o, err := c.rule(); err == nil {
		return o.Title
	}
	return optim.All()[0].Title
}

// OptimizerLine describes the optimiser: its name unless it is SGD, its learning rate and its hyperparameters.
func (c *Spec) OptimizerLine() string {
	var b strings.Builder
	if c.Optimizer != optim.All()[0].Name {
		fmt.Fprintf(&b, "%s, ", c.Optimizer)
	}
	fmt.Fprintf(&b, "rate %s", c.Schedule)
	if c.HeadRate > 0 {
		fmt.Fprintf(&b, ", the last layer's %.6g", c.HeadRate)
	}
	for _, h := range Hyperparameters() {
		if x := *h.Field(c); x != nil {
			fmt.Fprintf(&b, ", %s %g", h.Name, *x)
		}
	}
	if c.WeightDecay != nil { // as in each resolved Spec
		fmt.Fprintf(&b, ", weight decay %g", *c.WeightDecay)
	}
	return b.String()
}

// newOptimizer returns the optimiser of a resolved Spec.
func (c *Spec) newOptimizer() (device.Optimizer, error) {
	o, err := c.rule()
	if err != nil {
		return nil, err
	}
	return c.optimizer(o), nil
}
