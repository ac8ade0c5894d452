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

// run executes a kernel. It returns "" or what went wrong: an access that faulted, a barrier that some threads do
// not reach.
std::string run(const SimImage *image, const SimKernel *kernel, const Grid &grid, void **parameters);

// guarded calls f and returns "" or the fault that ended it.
std::string guarded(void (*f)(void *), void *argument);

// describe says what lies at an address that a kernel should not have touched.
std::string describe(const void *address);

extern const SimEngine engine;

}  // namespace sim
