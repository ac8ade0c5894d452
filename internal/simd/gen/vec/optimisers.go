package main

// update is an optimiser's kernel of package device: of parameters w, their gradient g and the state a and b. It
// changes them, or computes two quantities whose squares are summed.
type update[V any] struct {
	name         string
	coefficients int // elements of the argument c that it uses
	step         func(k lanes[V])
	measure      func(k lanes[V]) (x, y V)
}

// arguments are the arguments behind the slices, with the closing parenthesis.
func (u update[V]) arguments() string {
	if u.measure != nil {
		return "c *[8]float32, sums *[2][8]float64)"
	}
	return "c *[8]float32)"
}

func optimisers[V any]() (list []update[V]) {
	for _, nesterov := range []bool{false, true} {
		name := "momentum"
		if nesterov {
			name = "nesterov"
		}
		list = append(list, update[V]{name: name, coefficients: 4, step: func(k lanes[V]) {
			rate, momentum, decay, scale := k.coefficient(0), k.coefficient(1), k.coefficient(2), k.coefficient(3)
			w := k.in("w")
			d := k.add(k.mul(scale, k.in("g")), k.mul(decay, w))
			u := k.add(k.mul(momentum, k.in("a")), d)
			k.out("a", u)
			if nesterov {
				u = k.add(d, k.mul(momentum, u))
			}
			k.out("w", k.sub(w, k.mul(rate, u)))
		}})
	}
	return append(list,
		update[V]{name: "adamW", coefficients: 7, step: func(k lanes[V]) {
			m, v := moments(k)
			k.out("w", k.sub(k.mul(k.coefficient(6), k.in("w")), ratio(k, m, v)))
		}},
		update[V]{name: "larsNorms", measure: func(k lanes[V]) (x, y V) { return k.in("w"), k.in("g") }},
		update[V]{name: "lambNorms", coefficients: 7, measure: func(k lanes[V]) (x, y V) {
			m, v := moments(k)
			w := k.in("w")
			return w, k.some(lambStep(k, w, m, v))
		}},
		update[V]{name: "lamb", coefficients: 8, step: func(k lanes[V]) {
			w := k.in("w")
			k.out("w", k.sub(w, k.mul(k.coefficient(7), lambStep(k, w, k.in("a"), k.in("b")))))
		}})
}

// moments updates the averages of the gradient and of its square.
func moments[V any](k lanes[V]) (m, v V) {
	g := k.in("g")
	d := k.mul(k.coefficient(3), g)
	m = k.add(k.mul(k.coefficient(0), k.in("a")), k.mul(k.coefficient(1), g))
	v = k.add(k.mul(k.coefficient(2), k.in("b")), k.mul(d, d))
	k.out("a", m)
	k.out("b", v)
	return m, v
}

// ratio is Adam's step.
func ratio[V any](k lanes[V], m, v V) V {
	return k.div(k.mul(k.coefficient(5), m), k.add(k.sqrt(v), k.coefficient(4)))
}

func lambStep[V any](k lanes[V], w, m, v V) V {
	return k.add(ratio(k, m, v), k.mul(k.coefficient(6), w))
}
