package expr_test

import (
	"fmt"

	"onlinerna/nn/op/expr"
)

// Hardswish, its derivative, and its nodes as a device reads them.
func Example() {
	x, dy := expr.Arg(0), expr.Arg(1)
	hardswish := x.Mul(x.Shift(3).Clamp(0, 6)).Scale(1. / 8)
	fmt.Println(hardswish)
	fmt.Println(hardswish.Gradient(dy)[0])
	for i, n := range hardswish.Nodes() {
		fmt.Println(i, n.Kind, n.In)
	}
	// Output:
	// ((x0 * min(max((x0 + 3), 0), 6)) * 0.125)
	// t0 = (x0 + 3); t1 = max(t0, 0); (((x1 * min(t1, 6)) * 0.125) + if((t0 <= 0), 0, if((6 <= t1), 0, ((x0 * x1) * 0.125))))
	// 0 arg []
	// 1 const []
	// 2 + [0 1]
	// 3 const []
	// 4 max [2 3]
	// 5 const []
	// 6 min [4 5]
	// 7 * [0 6]
	// 8 const []
	// 9 * [7 8]
}

// Dropout: a quarter of the elements become 0, the others grow. Operand 1 counts the steps.
func ExampleRandom() {
	x, u := expr.Arg(0), expr.Random(0x1234, 1, false)
	dropout := expr.If(expr.Chance(u, .25), expr.Const(0), x.Scale(1/(1-.25)))
	fmt.Println(dropout)
	fmt.Println(dropout.Gradient(expr.Arg(2))[0])
	// Output:
	// if((random(0x1234, x1, element) < 0.25), 0, (x0 * 1.3333333333333333))
	// if((random(0x1234, x1, element) < 0.25), 0, (x2 * 1.3333333333333333))
}
