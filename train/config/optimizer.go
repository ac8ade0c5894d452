package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"onlinerna/nn/device"
)

// Optimizers are the names that Config.Optimizer takes.
func Optimizers() []string {
	names := make([]string, len(optimizers))
	for i, o := range optimizers {
		names[i] = o.name
	}
	return names
}

// optimizer is one of the optimisers.
type optimizer struct {
	name  string
	takes map[string]float64 // hyperparameters, with their defaults
	rate  float64            // the default, 0: the data's; the same for the weight decay
	decay float64
	// nesterov says whether there is Nesterov's form.
	nesterov bool
	make     func(c *Config) device.Optimizer
}

var optimizers = []optimizer{
	{name: "sgd", takes: map[string]float64{"momentum": .9}, nesterov: true,
		make: func(c *Config) device.Optimizer {
			return device.SGD{Momentum: *c.Momentum, Decay: *c.WeightDecay, Nesterov: c.Nesterov}
		}},
	{name: "adamw", takes: map[string]float64{"beta1": .9, "beta2": .999, "eps": 1e-8}, rate: 1e-3, decay: 1e-2,
		make: func(c *Config) device.Optimizer {
			return device.AdamW{Beta1: *c.Beta1, Beta2: *c.Beta2, Eps: *c.Eps, Decay: *c.WeightDecay}
		}},
	{name: "lars", takes: map[string]float64{"momentum": .9, "trust-coefficient": 1e-3, "eps": 1e-8}, rate: 1, decay: 5e-5, nesterov: true,
		make: func(c *Config) device.Optimizer {
			return device.LARS{Momentum: *c.Momentum, Decay: *c.WeightDecay, Trust: *c.TrustCoefficient, Eps: *c.Eps, Nesterov: c.Nesterov}
		}},
	{name: "lamb", takes: map[string]float64{"beta1": .9, "beta2": .999, "eps": 1e-6, "max-grad-norm": 1}, rate: 1e-2, decay: 1e-2,
		make: func(c *Config) device.Optimizer {
			return device.LAMB{Beta1: *c.Beta1, Beta2: *c.Beta2, Eps: *c.Eps, Decay: *c.WeightDecay, ClipNorm: *c.MaxGradNorm}
		}},
}

// Hyperparameter is a number that some optimisers take.
type Hyperparameter struct {
	Name  string // as an option
	Help  string
	Field func(*Config) **float64
}

// Hyperparameters lists those of all optimisers but the weight decay, which each takes.
func Hyperparameters() []Hyperparameter {
	list := []Hyperparameter{
		{"momentum", "momentum", func(c *Config) **float64 { return &c.Momentum }},
		{"beta1", "decay of the gradient's average", func(c *Config) **float64 { return &c.Beta1 }},
		{"beta2", "decay of the squared gradient's average", func(c *Config) **float64 { return &c.Beta2 }},
		{"eps", "added to the denominator", func(c *Config) **float64 { return &c.Eps }},
		{"trust-coefficient", "rate of a tensor by the ratio of its norm to its gradient's", func(c *Config) **float64 { return &c.TrustCoefficient }},
		{"max-grad-norm", "norm to which a longer gradient is scaled down; 0: none", func(c *Config) **float64 { return &c.MaxGradNorm }},
	}
	for i, h := range list {
		by := map[float64][]string{}
		var values []float64
		for _, o := range optimizers {
			if x, ok := o.takes[h.Name]; ok {
				if by[x] == nil {
					values = append(values, x)
				}
				by[x] = append(by[x], o.name)
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

// RateDefaults and DecayDefaults list the optimisers whose rate and weight decay do not go by the data, as "adamw: 0.001".
func RateDefaults() string { return ownDefaults(func(o optimizer) float64 { return o.rate }) }

// DecayDefaults is described with RateDefaults.
func DecayDefaults() string { return ownDefaults(func(o optimizer) float64 { return o.decay }) }

func ownDefaults(of func(optimizer) float64) string {
	var list []string
	for _, o := range optimizers {
		if x := of(o); x > 0 {
			list = append(list, fmt.Sprintf("%s: %g", o.name, x))
		}
	}
	return strings.Join(list, ", ")
}

// rule finds the optimiser of c.
func (c *Config) rule() (*optimizer, error) {
	i := slices.IndexFunc(optimizers, func(o optimizer) bool { return o.name == c.Optimizer })
	if i < 0 {
		return nil, fmt.Errorf("unknown optimizer %q: use one of %s", c.Optimizer, strings.Join(Optimizers(), ", "))
	}
	return &optimizers[i], nil
}

// resolveOptimizer fills in hyperparameters, and the defaults of the rate and the weight decay. What the optimiser does not take is an
// error.
func (c *Config) resolveOptimizer(pre *preset) error {
	def(&c.Optimizer, optimizers[0].name)
	o, err := c.rule()
	if err != nil {
		return err
	}
	for _, h := range Hyperparameters() {
		x, ok := o.takes[h.Name]
		if f := h.Field(c); ok {
			defPtr(f, x)
		} else if *f != nil {
			return fmt.Errorf("optimizer %s does not take %s", o.name, h.Name)
		}
	}
	if c.Nesterov && !o.nesterov {
		return fmt.Errorf("optimizer %s does not take nesterov", o.name)
	}
	if o.rate > 0 {
		pre.rate = o.rate
	}
	if o.decay > 0 {
		pre.decay = o.decay
	}
	defPtr(&c.WeightDecay, pre.decay)
	return nil
}

// checkOptimizer finds hyperparameters out of their range.
func (c *Config) checkOptimizer() error {
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
	return o.make(c).Check()
}

// DefaultOptimizer is an optimiser with the defaults of its hyperparameters and their rate: for SGD, where rate and decay go by the data, 0.1
// and 1e-4.
func DefaultOptimizer(name string) (o device.Optimizer, rate float64, err error) {
	c := Config{Optimizer: name}
	pre := preset{rate: 0.1, decay: 1e-4}
	if err := c.resolveOptimizer(&pre); err != nil {
		return nil, 0, err
	}
	o, err = c.NewOptimizer()
	return o, pre.rate, err
}

// OptimizerName is the optimiser's name as it is written: SGD, AdamW, LARS, LAMB.
func (c *Config) OptimizerName() string {
	if c.Optimizer == "adamw" {
		return "AdamW"
	}
	if c.Optimizer == "" {
		return "SGD"
	}
	return strings.ToUpper(c.Optimizer)
}

// OptimizerLine tells the optimiser with its hyperparameters, the rate after its name.
func (c *Config) OptimizerLine() string {
	var b strings.Builder
	if c.Optimizer != optimizers[0].name {
		fmt.Fprintf(&b, "%s, ", c.Optimizer)
	}
	fmt.Fprintf(&b, "rate %s", c.Schedule)
	if c.HeadRate > 0 {
		fmt.Fprintf(&b, ", the last layer's %g", c.HeadRate)
	}
	for _, h := range Hyperparameters() {
		if x := *h.Field(c); x != nil {
			fmt.Fprintf(&b, ", %s %g", h.Name, *x)
		}
	}
	fmt.Fprintf(&b, ", weight decay %g", *c.WeightDecay)
	return b.String()
}

// NewOptimizer is the optimiser that a resolved config says.
func (c *Config) NewOptimizer() (device.Optimizer, error) {
	o, err := c.rule()
	if err != nil {
		return nil, err
	}
	return o.make(c), nil
}
