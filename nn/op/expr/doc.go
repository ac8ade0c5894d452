// Package expr is the language of elementwise functions, which op.Map applies to each element of its operands.
//
// An Expr is a value that never changes. It is built from the operands, Arg(0), Arg(1), …, and constants:
//
//	x := expr.Arg(0)
//	hardswish := x.Mul(x.Shift(3).Clamp(0, 6)).Scale(1. / 6)
//
// Building simplifies: constants are folded, x·1, x+0, −(−x) and selections with a known outcome go, factors that are
// constants meet, and operands that may change places have a fixed order. A subexpression that appears twice is one:
// equal expressions are ==, and String writes equal ones alike and different ones differently, in every process.
//
// The meaning of an expression is defined in float64; devices approximate it in float32 or better. Numbers are those
// of IEEE 754, with two exceptions: simplification takes both zeros as one, and merges constant factors. NaN goes
// through everything but comparisons, which are false for it, and selections that do not take it. So the maximum and
// the minimum of a NaN and a number are NaN, and max(x, 0) is op.ReLU.
package expr
