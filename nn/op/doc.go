// Package op defines each operation of a network: its attributes, its shape rule, its gradients and a reference
// kernel in float32 and float64. It knows neither Gorgonia nor any device: package nn puts ops on a Gorgonia graph,
// package device runs them, and the conformance suite compares every device with the kernels here.
//
// Optional interfaces describe further properties of an op: View, Mover, InPlace, Overwriter, Elementwise, Weighted,
// Product, Sparing, Differentiable, Composite. An elementwise function needs no op of its own: Map applies any
// expression of package expr. A composite op, as LayerNorm, has a formula of primitive ones besides its definition:
// Map, Reduce, MatMul, Reshape, Permute, Slice, Concat, Pad, Expand and Gather go over values of any rank.
//
// Operands are row-major: activations NCHW, convolution weights OIHW, linear weights [out, in], as in PyTorch.
// Devices choose their own layouts.
package op
