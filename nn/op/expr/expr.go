package expr

import (
	"cmp"
	"fmt"
	"math"
	"unique"
)

// Kind is the function of a node of an expression.
type Kind uint8

// The kinds of nodes. Comparisons give a truth value, which only KindIf reads; all others give a number.
const (
	KindArg       Kind = iota + 1 // operand number Index
	KindRandom                    // a random number in [0,1): see Random
	KindNeg                       // −a
	KindAdd                       // a + b
	KindSub                       // a − b
	KindMul                       // a · b
	KindDiv                       // a / b
	KindMin                       // the smaller, NaN if one is NaN; −0 is below 0
	KindMax                       // the larger, NaN if one is NaN; −0 is below 0
	KindExp                       // eᵃ
	KindLog                       // ln a
	KindSqrt                      // √a
	KindTanh                      // tanh a
	KindErf                       // erf a = 2/√π ∫₀ᵃ exp(−t²) dt
	KindSigmoid                   // 1/(1 + e⁻ᵃ)
	KindLess                      // a < b
	KindLessEqual                 // a ≤ b
	KindEqual                     // a = b
	KindIf                        // b if a is true, else c
	KindConst                     // the number Value
)

var kinds = [...]struct {
	name string
	args int
}{
	KindArg: {"arg", 0}, KindRandom: {"random", 0}, KindNeg: {"-", 1}, KindAdd: {"+", 2}, KindSub: {"-", 2},
	KindMul: {"*", 2},
	KindDiv: {"/", 2}, KindMin: {"min", 2}, KindMax: {"max", 2}, KindExp: {"exp", 1}, KindLog: {"log", 1},
	KindSqrt: {"sqrt", 1},
	KindTanh: {"tanh", 1}, KindErf: {"erf", 1}, KindSigmoid: {"sigmoid", 1}, KindLess: {"<", 2},
	KindLessEqual: {"<=", 2},
	KindEqual:     {"==", 2}, KindIf: {"if", 3}, KindConst: {"const", 0},
}

// String is the name of the function, or the sign.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kinds) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kinds[k].name
}

// Arity is the number of values that a node of the kind reads.
func (k Kind) Arity() int { return kinds[k].args }

// Truth reports whether a node of the kind gives a truth value.
func (k Kind) Truth() bool { return k == KindLess || k == KindLessEqual || k == KindEqual }

// Expr is a function of the operands that gives a number. Equal expressions are ==. The zero Expr is none: see Valid.
type Expr struct{ h unique.Handle[node] }

// Cond is a function of the operands that gives a truth value.
type Cond struct{ e Expr }

// node is the root of an expression.
type node struct {
	kind  Kind
	args  [3]Expr
	bits  uint64 // of a constant; the key of random numbers
	index int    // of an operand; of the one that counts random numbers
	whole bool   // random numbers are the same for all elements of a sample
}

func intern(n node) Expr { return Expr{unique.Make(n)} }

func apply(k Kind, args ...Expr) Expr {
	n := node{kind: k}
	copy(n.args[:], args)
	return intern(n)
}

// Valid reports whether e is an expression: made by the functions of this package.
func (e Expr) Valid() bool { return e != Expr{} }

func (e Expr) node() node { return e.h.Value() }
func (e Expr) kind() Kind { return e.node().kind }

// Arg is operand i.
func Arg(i int) Expr {
	if i < 0 {
		panic(fmt.Sprintf("expr: there is no operand %d", i))
	}
	return intern(node{kind: KindArg, index: i})
}

// Const is the constant c.
func Const(c float64) Expr {
	if c != c {
		c = math.NaN() // one of them
	}
	return intern(node{kind: KindConst, bits: math.Float64bits(c)})
}

// constant is the value of e if it is a constant.
func (e Expr) constant() (float64, bool) {
	n := e.node()
	return math.Float64frombits(n.bits), n.kind == KindConst
}

// is reports whether e is the constant c, of either sign if it is 0.
func (e Expr) is(c float64) bool {
	v, ok := e.constant()
	return ok && v == c
}

// compare orders expressions: operands first, constants last. It follows one path of each.
func compare(a, b Expr) int {
	if a == b {
		return 0
	}
	x, y := a.node(), b.node()
	if c := cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.index, y.index), cmp.Compare(x.bits, y.bits)); c != 0 {
		return c
	}
	if x.whole != y.whole {
		if y.whole {
			return -1
		}
		return 1
	}
	for i := range x.kind.Arity() {
		if x.args[i] != y.args[i] {
			return compare(x.args[i], y.args[i])
		}
	}
	return 0
}

// commute applies a function of two arguments that may change places.
func commute(k Kind, a, b Expr) Expr {
	if compare(a, b) > 0 {
		a, b = b, a
	}
	return apply(k, a, b)
}
