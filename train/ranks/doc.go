// Package ranks makes many processes work as one: they train the same net, each on its own images, and add up their gradients.
//
// A [Group] is the processes of one start. Each has a rank, 0 to Size-1, and all call the same operations in the same order: sums and
// largest values of vectors, broadcasts, gathers, and decisions in common. A nil *Group is a single process, whose operations return at
// once: code that uses a group needs no other way for one process.
//
//	g, err := ranks.Join(engine, ranks.Options{World: world})
//	...
//	pending := g.Sum32(gradient) // of all ranks, in place
//	...                          // compute something else
//	err = pending.Wait()
//
// What moves the numbers is an [Engine]: package ranks/mpi has one, and package ranks/sockets one for small values, where gradients go over NCCL. [Detect] says what a launcher, such as mpirun or srun, has told
// this process by its environment.
//
// Ranks must agree about everything that decides which operations follow: an error or an interrupt of one rank alone would leave the
// others waiting. [Group.Any] and [Group.Together] make such a thing known to all; where that is too late, [Group.Abort] ends all ranks. An operation
// that the others don't join ends with a [*TimeoutError], which names who is missing.
package ranks
