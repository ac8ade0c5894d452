// Package op says what each operation of a network is: its attributes, its shape rule, its gradients
// and a reference kernel in float32 and float64 that defines it. It knows neither Gorgonia nor any
// device: package nn puts ops on a Gorgonia graph, package device runs them, and the conformance suite
// compares every device with the kernels here.
//
// What an op is for others than its kernels say optional interfaces: View, InPlace, Overwriter, Elementwise, Weighted,
// Product, Sparing, Differentiable. An elementwise function needs no op of its own: Map applies any expression of
// package expr.
//
// Operands are row-major: activations NCHW, convolution weights OIHW, linear weights [out, in], as in
// PyTorch. How a device lays them out is its own business.
package op
