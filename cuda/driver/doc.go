// Package driver is CUDA's driver: GPUs, contexts, memory, streams, events, graphs and modules, over gorgonia.org/cu. It knows none of
// the libraries, no net and no vector of RNA; of this repository it uses package lazy alone, which loads the driver. Without the
// build tag gpu it has the types of errors and options and no more.
//
// # Ownership
//
// [Open] gives a [Context], which has one operating-system thread that makes all its CUDA calls; methods may be called
// from any goroutine and hand their work to it. [Context.Do] runs a function there, so that several calls cost one
// hand-over. Every handle (memory, stream, event, module, graph, a library's [Resource]) belongs to who made it, and is given back by
// Close. Closing a context closes what is left, and returns an error that counts it.
//
// # Order
//
// Work is put on a [Stream] and runs in its order, after the call returns; [Stream.Synchronize] waits for it. Streams
// are ordered among each other by events only. Closing memory waits for nothing: work that is under way keeps it, and an
// allocation that is given memory from the cache waits first, so that what it gets is nobody's.
//
// [Stream.Capture] keeps what a function puts on a stream as a [Graph], which one call launches. A graph that uses memory that was
// closed is not launched any more.
//
// # Errors
//
// A failed call is an [*Error] with the call, CUDA's name and code, and the sizes. A kernel's failure shows at a later
// call. When the GPU is lost with it, that and every later call of the process returns an error that is [ErrLost], and Close gives nothing
// back: the process is to end. Out of memory is a [*MemoryError].
package driver
