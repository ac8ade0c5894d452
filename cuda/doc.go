// Package cuda is the GPU: devices, contexts, streams, events, memory, kernels and cuBLAS, over gorgonia.org/cu and
// the run-time loading of package cuda/lazy. The build tag gpu switches it on ("make gpu", which needs gcc and no
// CUDA toolkit); without it [Devices] and [Open] return [ErrNotBuilt] and [Look] says what the machine has.
//
// # Ownership
//
// [Open] gives a [Context], which has one operating-system thread that makes all its CUDA calls; methods may be called
// from any goroutine and hand their work to it. [Context.Do] runs a function there, so that several calls cost one
// hand-over. Every handle (memory, stream, event, module, BLAS, DNN) belongs to who made it, and is given back by Close.
// Closing a context closes what is left, and returns an error that counts it.
//
// # Order
//
// Work is put on a [Stream] and runs in its order, after the call returns; [Stream.Synchronize] waits for it. Streams
// are ordered among each other by events only. Closing memory waits for all work of the context, as the driver's
// own cuMemFree does, so memory that comes back from the cache is nobody's.
//
// [Stream.Capture] keeps what a function puts on a stream as a [Graph], which one call launches. A graph that uses memory that was
// closed is not launched any more.
//
// # Errors
//
// A failed call is an [*Error] with the call, CUDA's name and code, and the sizes. A kernel's failure shows at a later
// call. When the context is lost with it, that and every later call returns an error that is [ErrLost]; close the
// context and open another. Out of memory is a [*MemoryError].
//
// # RNA
//
// A [Space] keeps the vectors of a window in GPU memory, as far as there is some, and the rest in pinned host memory.
// It passes the conformance suite of package rna/spacetest. Only the N×N matrix leaves the GPU, when the vectors come
// from its memory too.
//
// # Nets
//
// [OpenNet] gives a device.Device on which nets train and run, in one of the precisions of [NetOptions]: with activations of float32, or of 16
// bits while weights, their gradients, statistics and the loss stay float32. Activations lie channels last and so do the weights of
// convolutions, as cuDNN likes them. A batch normalisation runs in one pass with an addition and a ReLU behind it, and its
// gradient's sums with theirs. All sums are in float64 and in one order, so that with [NetOptions].Deterministic results have equal
// bits in each run. It passes the conformance suite of package devicetest.
//
// The device is a device.Pipeline: a step of training is captured once for each batch size and launched as one graph. The rate, the
// momentum of statistics and the scale of the gradient come with the batch, which a stream of its own copies from pinned memory while the step
// before runs; the loss is read when the next step is under way. With [NetOptions].DebugSync nothing is captured, and each op waited for.
package cuda
