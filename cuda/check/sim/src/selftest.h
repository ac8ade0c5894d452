// Shared by the tests of the stand-in.
#pragma once
#include <math.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "engine.h"
#include "sim.h"
extern "C" {
#include <cublas_v2.h>
CUresult cuMemAllocHost_v2(void **p, size_t n);
}

extern int failures;
#define CHECK(ok)                                                    \
	do {                                                             \
		if (!(ok)) {                                                 \
			printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #ok);  \
			failures++;                                              \
		}                                                            \
	} while (0)
#define IS(call, want)                                                                     \
	do {                                                                                   \
		int is_ = (int)(call);                                                             \
		if (is_ != (want)) {                                                               \
			printf("%s:%d: %s is %d, want %d\n", __FILE__, __LINE__, #call, is_, (want));  \
			failures++;                                                                    \
		}                                                                                  \
	} while (0)

// apart runs code that loses the GPU in a process of its own.
template <class F> void apart(F f) {
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		failures = 0;
		f();
		fflush(stdout);
		_exit(failures != 0);
	}
	int status = 1;
	waitpid(child, &status, 0);
	failures += status != 0;
}

struct Device {
	CUcontext context;
	CUmodule module;
	std::string image;
	CUfunction axpy, sums, unset, past, diverge, stop, set;
	Device(const std::string &compiled) : image(compiled) {
		IS(cuDevicePrimaryCtxRetain(&context, 0), 0);
		IS(cuCtxSetCurrent(context), 0);
		IS(cuModuleLoadData(&module, image.data()), 0);
		struct { CUfunction *f; const char *name; } all[] = {{&axpy, "axpy"}, {&sums, "sums"}, {&unset, "unset"}, {&past, "past"}, {&diverge, "diverge"}, {&stop, "stop"}, {&set, "set"}};
		for (auto &a : all) IS(cuModuleGetFunction(a.f, module, a.name), 0);
	}
	~Device() { IS(cuDevicePrimaryCtxRelease(0), simDead()); }
};

template <class... A> int launch(CUfunction f, CUstream s, unsigned blocks, unsigned threads, unsigned shared, A... a) {
	void *p[] = {(void *)&a...};
	return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, s, p, nullptr);
}

inline CUdeviceptr filled(const std::vector<float> &v) {
	CUdeviceptr p = 0;
	IS(cuMemAlloc(&p, v.size() * 4), 0);
	IS(cuMemcpyHtoD(p, v.data(), v.size() * 4), 0);
	return p;
}

// Of precision_selftest.cc.
void precisions();

// Of graph_selftest.cc.
void graphs(const std::string &image);
void captures();
