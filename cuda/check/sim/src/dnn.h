// Shared by the two parts of the stand-in for cuDNN: its handles and convolutions (cudnn.cc) and its graph API
// (cudnn_graph.cc).
#pragma once
#include <mutex>

#include "device.h"
#include "sim.h"

extern "C" {
#include <cudnn.h>
#include <cudnn_backend.h>
}

struct cudnnContext {
	CUstream stream;
	CUcontext context;
	std::set<std::pair<int, int>> loaded;  // kernels, by computed quantity and engine
	long taken;                            // of the device's memory
};

namespace sim::dnn {

constexpr cudnnStatus_t notInitialized = 1001, badParam = 2000, notSupported = 3000, notCompiled = 4001, allocFailed = 4004, executionFailed = 5000;

// A handle takes memory, and so does each kernel when it first runs.
constexpr long handleBytes = 128 << 10, kernelBytes = 8 << 10;

std::recursive_mutex *lock();
cudnnStatus_t enter(const char *name);
cudnnStatus_t begin(const char *name, cudnnHandle_t h);  // of a function that takes a handle

cudnnStatus_t load(cudnnHandle_t h, int what, int engine);  // the kernel that runs, when it first does

enum Kind { ForwardConvolution, InputGradient, WeightGradient };

// A Shape is a convolution's: x is n×h×w×c, w o×kh×kw×c/groups.
struct Shape {
	int n, c, h, w, o, kh, kw, pad[2], stride[2], dilation[2], groups;
};

// convolve computes one of x, w and y, stored channels last, from the others, times alpha.
void convolve(Kind kind, const Shape &s, float *x, float *w, float *y, float alpha);

}  // namespace sim::dnn
