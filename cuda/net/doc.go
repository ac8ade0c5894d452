// Package net is nn/device's Device for a GPU, on which nets train and run. It uses cuDNN, cuBLAS and NVRTC through the
// packages dnn, blas and nvrtc, and the GPU through package driver. It does not know RNA's vectors. Without the build
// tag gpu it has only its options.
//
// [Open] returns a [Device] in one of the precisions of [Options]: activations have 32 or 16 bits, while weights, their
// gradients, statistics and the loss are float32. Activations and the weights of convolutions are stored channels-last,
// as cuDNN prefers. A batch normalisation runs in one pass with the addition and the ReLU that follow it, and so do the
// sums of its gradient. All sums are taken in float64 and in a fixed order, so that with [Options].Deterministic
// results have the same bits in each run. The device passes the conformance suite of package devicetest.
//
// The device is a device.Pipeline: it captures a training step once for each batch size and launches it as one graph.
// The learning rate, the momentum of statistics and the gradient's scale arrive with the batch, which a separate stream
// copies from pinned memory during the previous step. The loss is read when the next step is under way. With
// [Options].DebugSync nothing is captured, and the device waits after each op.
package net
