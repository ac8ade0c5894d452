// Package driver wraps CUDA's driver: GPUs, contexts, memory, streams, events, graphs and modules, over
// gorgonia.org/cu. It knows nothing of the libraries, nets or RNA; of this repository it imports only package lazy,
// which loads the driver. Without the build tag gpu it has only the types of errors and options.
//
// # Ownership
//
// [Open] returns a [Context]. One operating-system thread makes all its CUDA calls; any goroutine may call its methods,
// which hand their work to that thread. [Context.Do] runs a function there, so that several calls cost one hand-over.
// Every handle (memory, stream, event, module, graph, a library's [Resource]) belongs to its maker, who frees it with
// Close. Closing a context closes the remaining handles and returns an error that counts them.
//
// # Order
//
// A [Stream] runs its work in order, after the call that queued it has returned; [Stream.Synchronize] waits for it.
// Only events order streams among each other. Closing memory does not wait: running work keeps it, and an allocation
// that takes memory from the cache waits until no work uses it.
//
// [Stream.Capture] records the work that a function puts on a stream as a [Graph], which one call launches. A graph
// whose memory was closed can no longer be launched.
//
// # Errors
//
// A failed call is an [*Error] with the call, CUDA's name and code, and the sizes. A kernel's failure shows at a later
// call. If it loses the GPU, that call and every later one of the process return an error that matches [ErrLost], and
// Close frees nothing: end the process. Out of memory is a [*MemoryError].
package driver
