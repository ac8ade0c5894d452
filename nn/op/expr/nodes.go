package expr

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Node is a step of the computation of an expression. Which fields matter depends on the kind.
type Node struct {
	Kind      Kind
	In        []int   // the nodes that it reads, by number, all before it
	Index     int     // KindArg: the operand; KindRandom: the operand that counts
	Value     float64 // KindConst
	Key       uint64  // KindRandom
	PerSample bool    // KindRandom
}

// Nodes lists the steps that compute e, each once and after those that it reads. The last gives the result.
func (e Expr) Nodes() []Node {
	nodes, _ := Together(e)
	return nodes
}

// Together lists the steps that compute several expressions, each once and after those that it reads, and the step that
// gives the result of each expression.
func Together(list ...Expr) (nodes []Node, results []int) {
	order := sorted(list...)
	at := make(map[Expr]int, len(order))
	nodes = make([]Node, len(order))
	for i, x := range order {
		at[x] = i
		n := x.node()
		nodes[i] = Node{Kind: n.kind}
		for _, a := range n.args[:n.kind.Arity()] {
			nodes[i].In = append(nodes[i].In, at[a])
		}
		switch n.kind {
		case KindArg:
			nodes[i].Index = n.index
		case KindConst:
			nodes[i].Value, _ = x.constant()
		case KindRandom:
			nodes[i].Index, nodes[i].Key, nodes[i].PerSample = n.index, n.bits, n.whole
		}
	}
	for _, e := range list {
		results = append(results, at[e])
	}
	return nodes, results
}

// sorted lists the subexpressions of some expressions, each once and after its own.
func sorted(list ...Expr) []Expr {
	var order []Expr
	seen := make(map[Expr]bool)
	var visit func(x Expr)
	visit = func(x Expr) {
		if seen[x] {
			return
		}
		seen[x] = true
		n := x.node()
		for _, a := range n.args[:n.kind.Arity()] {
			visit(a)
		}
		order = append(order, x)
	}
	for _, e := range list {
		visit(e)
	}
	return order
}

// Args is the number of operands: 1 more than the largest Index.
func (e Expr) Args() int {
	n := 0
	for _, x := range e.Nodes() {
		if x.Kind == KindArg || x.Kind == KindRandom {
			n = max(n, x.Index+1)
		}
	}
	return n
}

// Reads reports how e reads operand i: as numbers, as the counter of random numbers, both or not at all.
func (e Expr) Reads(i int) (numbers, counter bool) {
	for _, x := range e.Nodes() {
		if x.Index == i {
			numbers = numbers || x.Kind == KindArg
			counter = counter || x.Kind == KindRandom
		}
	}
	return numbers, counter
}

// ReadsAll reports whether e reads each of n operands, and no others.
func (e Expr) ReadsAll(n int) bool {
	for i := range n {
		if numbers, counter := e.Reads(i); !numbers && !counter {
			return false
		}
	}
	return e.Args() == n
}

// IsArg reports whether e is an operand as it is, and which.
func (e Expr) IsArg() (i int, ok bool) {
	n := e.node()
	return n.index, n.kind == KindArg
}

// Substitute puts arg(i) in the place of each operand i. It has to be an operand for the counters of random numbers.
func (e Expr) Substitute(arg func(i int) Expr) Expr {
	return e.rebuild(func(x Expr) Expr {
		n := x.node()
		switch n.kind {
		case KindArg:
			return arg(n.index)
		case KindRandom:
			i, ok := arg(n.index).IsArg()
			if !ok {
				panic(fmt.Sprintf("expr: operand %d counts random numbers and cannot become %v", n.index, arg(n.index)))
			}
			return Random(n.bits, i, n.whole)
		}
		return Expr{}
	})
}

// Replace puts by in the place of each subexpression that is old.
func (e Expr) Replace(old, by Expr) Expr {
	return e.rebuild(func(x Expr) Expr {
		if x == old {
			return by
		}
		return Expr{}
	})
}

// rebuild rebuilds e with the subexpressions replaced for which by returns an expression.
func (e Expr) rebuild(by func(Expr) Expr) Expr {
	made := make(map[Expr]Expr)
	var visit func(x Expr) Expr
	visit = func(x Expr) Expr {
		if y, ok := made[x]; ok {
			return y
		}
		y := by(x)
		if !y.Valid() {
			n := x.node()
			var args [3]Expr
			for i, a := range n.args[:n.kind.Arity()] {
				args[i] = visit(a)
			}
			y = build(x, args)
		}
		made[x] = y
		return y
	}
	return visit(e)
}

// build is x with other arguments, simplified.
func build(x Expr, args [3]Expr) Expr {
	a, b := args[0], args[1]
	switch k := x.kind(); k {
	case KindArg, KindConst, KindRandom:
		return x
	case KindNeg:
		return a.Neg()
	case KindAdd:
		return a.Add(b)
	case KindSub:
		return a.Sub(b)
	case KindMul:
		return a.Mul(b)
	case KindDiv:
		return a.Div(b)
	case KindMin, KindMax:
		return a.extreme(k, b)
	case KindLess, KindLessEqual, KindEqual:
		return a.compare(k, b).e
	case KindIf:
		return If(Cond{a}, b, args[2])
	default:
		return a.function(k)
	}
}

// String writes e with x0, x1, … for its operands and t0, t1, … for repeated subexpressions:
//
//	t0 = sigmoid(x0); (t0 * x1)
func (e Expr) String() string {
	if !e.Valid() {
		return "none"
	}
	nodes := e.Nodes()
	uses := make([]int, len(nodes))
	for _, n := range nodes {
		for _, i := range n.In {
			uses[i]++
		}
	}
	text := make([]string, len(nodes))
	var lets []string
	for i, n := range nodes {
		in := make([]string, len(n.In))
		for j, a := range n.In {
			in[j] = text[a]
		}
		switch {
		case n.Kind == KindArg:
			text[i] = fmt.Sprintf("x%d", n.Index)
		case n.Kind == KindConst:
			text[i] = strconv.FormatFloat(n.Value, 'g', -1, 64)
		case n.Kind == KindRandom:
			each := "element"
			if n.PerSample {
				each = "sample"
			}
			text[i] = fmt.Sprintf("random(%#x, x%d, %s)", n.Key, n.Index, each)
		case n.Kind == KindNeg:
			text[i] = "-" + in[0]
		case slices.Contains([]Kind{KindMin, KindMax, KindIf}, n.Kind) || len(in) == 1:
			text[i] = n.Kind.String() + "(" + strings.Join(in, ", ") + ")"
		default:
			text[i] = "(" + in[0] + " " + n.Kind.String() + " " + in[1] + ")"
		}
		if uses[i] > 1 && n.Kind.Arity() > 0 {
			name := fmt.Sprintf("t%d", len(lets))
			lets = append(lets, name+" = "+text[i]+"; ")
			text[i] = name
		}
	}
	return strings.Join(lets, "") + text[len(text)-1]
}
