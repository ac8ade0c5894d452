// Package net is the GPU as a device on which nets train and run: nn/device's Device. It touches cuDNN, cuBLAS and NVRTC by the packages
// dnn, blas and nvrtc, and the GPU by package driver; it knows no vector of RNA. Without the build tag gpu it has its options and no more.
//
// [Open] gives a [Device] in one of the precisions of [Options]: with activations of float32, or of 16
// bits while weights, their gradients, statistics and the loss stay float32. Activations lie channels last and so do the weights of
// convolutions, as cuDNN likes them. A batch normalisation runs in one pass with an addition and a ReLU behind it, and its
// gradient's sums with theirs. All sums are in float64 and in one order, so that with [Options].Deterministic results have equal
// bits in each run. It passes the conformance suite of package devicetest.
//
// The device is a device.Pipeline: a step of training is captured once for each batch size and launched as one graph. The rate, the
// momentum of statistics and the scale of the gradient come with the batch, which a stream of its own copies from pinned memory while the step
// before runs; the loss is read when the next step is under way. With [Options].DebugSync nothing is captured, and each op waited for.
package net
