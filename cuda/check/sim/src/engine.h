// The engine runs a kernel's grid on the calling thread.
#pragma once
#include <stddef.h>

#include <string>

#include "device.h"

namespace sim {

struct Grid {
	dim3 blocks, threads;
	size_t shared;  // bytes of dynamic shared memory
};

// run executes a kernel. It returns "" or the error: an access that faulted, a barrier that some threads do not reach.
std::string run(const SimImage *image, const SimKernel *kernel, const Grid &grid, void **parameters);

// recorded is run, but writes some of the launches to the folder RNA_SIM_RECORD if that is set: see record.cc.
std::string recorded(const std::string &source, const SimImage *image, const SimKernel *kernel, const Grid &grid, void **parameters);

// reopen opens device memory again after a signal, because a processor starts signal handlers with all keys closed.
void reopen();
// touch opens the allocation of p to running work where the processor has no keys. It returns false if that changes
// nothing.
bool touch(const void *p);
// guarded calls f and returns "" or the fault that ended it.
std::string guarded(void (*f)(void *), void *argument);

// describe describes the memory at an address that a kernel should not have touched.
std::string describe(const void *address);

// The place of a thread in the running grid. Its block's barriers are counted, and its warp's waits after the last of
// them.
struct Here {
	const SimImage *image;
	unsigned launch, block, thread, barriers, waits;
	const char *stack;  // of stackBytes
};
Here here();
constexpr size_t stackBytes = 64 << 10;
extern char *dynamicShared, *dynamicSharedEnd;

// imageHolds reports whether an address belongs to an image's own variables.
bool imageHolds(const SimImage *image, const void *p);

// refuse ends the grid because of an error of the running thread.
[[noreturn]] void refuse(const std::string &why);

// Checks of check.cc, for kernels that are compiled with them.
void checkAccess(const void *at, unsigned bytes, int what);
void checkAtomic(const void *at, unsigned bytes);
void checkFence();
void checkBarrier();  // of the running block, once all threads have come

extern const SimEngine engine;

}  // namespace sim
