// Package ranks makes many processes work as one: they train the same net, each on its own images, and sum their
// gradients.
//
// A [Group] is the processes of one start. Each has a rank, 0 to Size-1, and all call the same operations in the same
// order: sums and maxima of vectors, broadcasts, gathers, and joint decisions. A nil *Group is a single process, whose
// operations return at once, so code that uses a group needs no special case for one process.
//
//	g, err := ranks.Join(engine, ranks.Options{World: world})
//	...
//	pending := g.Sum32(gradient) // of all ranks, in place
//	...                          // compute something else
//	err = pending.Wait()
//
// An [Engine] moves the numbers: package ranks/mpi has one, and package ranks/sockets has one for small values when
// NCCL sums the gradients. [Detect] reads the launcher's settings, such as those of mpirun or srun, from the
// environment.
//
// Ranks must agree about everything that decides the next operations: an error or an interrupt of one rank alone would
// leave the others waiting. [Group.Any] and [Group.Together] make it known to all; when it is too late for that,
// [Group.Abort] ends all ranks. If some ranks don't join an operation, it ends with a [*TimeoutError], which names
// them.
package ranks
