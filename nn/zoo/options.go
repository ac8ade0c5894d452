package zoo

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
)

// options checks the fields of a net's options. The first that is wrong is the Builder's error.
type options struct {
	b     layer
	name  string // the type's
	value reflect.Value
}

func (b layer) options(name string, o any) options { return options{b, name, reflect.ValueOf(o)} }

// ok reports whether the options and all that was built before are right.
func (o options) ok() bool { return o.b.Err() == nil }

// that fails unless ok: the field must be as the text says.
func (o options) that(ok bool, field, must string) options {
	if !ok {
		v := o.value.FieldByName(field)
		text := fmt.Sprint(v)
		if v.Kind() == reflect.String {
			text = strconv.Quote(text)
		}
		o.b.Fail(fmt.Errorf("zoo.%s.%s is %s: must be %s", o.name, field, text, must))
	}
	return o
}

// The most that a number may be: larger ones overflow, or make nets that no memory holds.
const (
	mostCount  = 1 << 20
	mostFactor = 1000
)

// least wants fields of at least n, and lists of such numbers, which must not be empty.
func (o options) least(n int, fields ...string) options {
	for _, f := range fields {
		v := o.value.FieldByName(f)
		most, must := mostCount, fmt.Sprintf("at least %d", n)
		switch v.Kind() {
		case reflect.Float64:
			most = mostFactor
		case reflect.Slice, reflect.Array:
			must = "numbers of " + must
		}
		if every(v, func(x float64) bool { return x > float64(most) }) {
			must = fmt.Sprintf("at most %d", most)
		}
		o.that(every(v, func(x float64) bool { return x >= float64(n) && x <= float64(most) }), f, must)
	}
	return o
}

// multiple wants a field, or each number of a list, that another divides.
func (o options) multiple(field, of string) options {
	n := o.value.FieldByName(of).Int()
	divides := func(x float64) bool { return math.Mod(x, float64(n)) == 0 }
	return o.that(every(o.value.FieldByName(field), divides), field, fmt.Sprintf("divisible by %s, which is %d", of, n))
}

// probability wants fields of [0,1).
func (o options) probability(fields ...string) options {
	for _, f := range fields {
		x := o.value.FieldByName(f).Float()
		o.that(x >= 0 && x < 1, f, "at least 0 and below 1")
	}
	return o
}

// every reports whether a number is right, or each of a list, which must not be empty.
func every(v reflect.Value, right func(float64) bool) bool {
	switch {
	case v.CanInt():
		return right(float64(v.Int()))
	case v.CanFloat():
		return right(v.Float())
	}
	for i := range v.Len() {
		if !every(v.Index(i), right) {
			return false
		}
	}
	return v.Len() > 0
}
