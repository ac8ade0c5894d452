// cuDNN's handles, and its convolutions on the CPU, of tensors that lie channels last, with sums in float64.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dnn.h"

using namespace sim::dnn;

#define LOCK std::lock_guard<std::recursive_mutex> held(*lock())

namespace {

std::set<cudnnHandle_t> handles;

// A Problem is a convolution of x with w to y; any of the three may be the result.
struct Problem : Shape {
	int out(int d) const { return ((d ? w : h) + 2 * pad[d] - dilation[d] * ((d ? kw : kh) - 1) - 1) / stride[d] + 1; }
	size_t pixels() const { return (size_t)n * h * w * c; }
	size_t weights() const { return (size_t)o * taps() * inputs(); }
	size_t results() const { return (size_t)n * out(0) * out(1) * o; }

	// each calls f for each tap and row of outputs that it meets: with the tap's number, the first of these outputs in y,
	// the first pixel that it meets in x, and the number of outputs. The others meet every stride-th pixel.
	template <class F> void each(F f) const {
		int high = out(0), wide = out(1);
		for (int i = 0; i < n; i++)
			for (int j = 0; j < high; j++)
				for (int r = 0; r < kh; r++) {
					int row = j * stride[0] - pad[0] + r * dilation[0];
					if (row < 0 || row >= h) continue;
					for (int s = 0; s < kw; s++) {
						int v = s * dilation[1] - pad[1], step = stride[1];
						int from = v < 0 ? (step - 1 - v) / step : 0, to = v < w ? std::min(wide, (w - 1 - v) / step + 1) : 0;
						if (from >= to) continue;
						f(r * kw + s, (((long)i * high + j) * wide + from) * o, (((long)i * h + row) * w + v + from * step) * c, to - from);
					}
				}
	}
	long taps() const { return kh * kw; }
	int inputs() const { return c / groups; }  // of a group
	int outputs() const { return o / groups; }
};

// A Matrix lies in memory, with the steps from row to row and from column to column.
struct Matrix {
	const float *p;
	long row, column;
};

// Floats and doubles that lie side by side.
typedef float Float4 __attribute__((vector_size(16), aligned(4)));
typedef double Double4 __attribute__((vector_size(32), aligned(8)));

// block adds rows×4·columns elements of a product over k to c. Callers stay within the tensors, which lie between pages
// that cannot be touched.
template <int rows, int columns> __attribute__((always_inline, no_sanitize("address", "undefined"))) inline void block(int k, Matrix a, const float *b, long step, double *c, long row) {
	Double4 sums[rows][columns] = {};
	for (int i = 0; i < k; i++, b += step) {
		Double4 of[columns];
		for (int j = 0; j < columns; j++) of[j] = __builtin_convertvector(((const Float4 *)b)[j], Double4);
		for (int r = 0; r < rows; r++) {
			double f = a.p[r * a.row + i * a.column];
			for (int j = 0; j < columns; j++) sums[r][j] += f * of[j];
		}
	}
	for (int r = 0; r < rows; r++)
		for (int j = 0; j < columns; j++) ((Double4 *)(c + r * row))[j] += sums[r][j];
}

// product adds a·b, m×k and k×n, to c. The columns of b and of c lie side by side, their rows step and row apart.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
__attribute__((target_clones("avx2", "default")))
#endif
__attribute__((no_sanitize("address", "undefined")))
void product(int m, int n, int k, Matrix a, const float *b, long step, double *c, long row) {
	int j = 0;
	for (; j + 8 <= n; j += 8) {
		int i = 0;
		for (; i + 4 <= m; i += 4) block<4, 2>(k, {a.p + i * a.row, a.row, a.column}, b + j, step, c + i * row + j, row);
		for (; i < m; i++) block<1, 2>(k, {a.p + i * a.row, a.row, a.column}, b + j, step, c + i * row + j, row);
	}
	for (; j < n; j++)
		for (int i = 0; i < m; i++) {
			double sum = 0;
			for (int l = 0; l < k; l++) sum += (double)a.p[i * a.row + l * a.column] * b[l * step + j];
			c[i * row + j] += sum;
		}
}

using Sums = std::vector<double>;

Sums forward(const Problem &p, const float *x, const float *w) {
	int in = p.inputs(), out = p.outputs(), stride = p.stride[1], cs = p.c, os = p.o;
	std::vector<float> turned(p.weights());  // taps, inputs, outputs
	for (int o = 0; o < os; o++)
		for (long t = 0; t < p.taps() * in; t++) turned[t * os + o] = w[o * p.taps() * in + t];
	Sums sums(p.results());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.groups; g++)
			product(n, out, in, {x + v + g * in, (long)stride * cs, 1}, &turned[(long)tap * in * os + g * out], os, &sums[y + g * out], os);
	});
	return sums;
}

Sums backwardData(const Problem &p, const float *w, const float *dy) {
	int in = p.inputs(), out = p.outputs(), stride = p.stride[1], cs = p.c, os = p.o;
	Sums sums(p.pixels());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.groups; g++)
			product(n, in, out, {dy + y + g * out, os, 1}, w + (g * out * p.taps() + tap) * in, p.taps() * in, &sums[v + g * in], (long)stride * cs);
	});
	return sums;
}

Sums backwardFilter(const Problem &p, const float *x, const float *dy) {
	int in = p.inputs(), out = p.outputs(), stride = p.stride[1], cs = p.c, os = p.o;
	Sums sums(p.weights());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.groups; g++)
			product(out, in, n, {dy + y + g * out, 1, os}, x + v + g * in, (long)stride * cs, &sums[(g * out * p.taps() + tap) * in], p.taps() * in);
	});
	return sums;
}

}  // namespace

namespace sim::dnn {

std::recursive_mutex *lock() {
	static std::recursive_mutex m;
	return &m;
}

cudnnStatus_t enter(const char *name) {
	int code = simEnter(name);
	return simDead() ? executionFailed : code;
}
cudnnStatus_t begin(const char *name, cudnnHandle_t h) {
	if (cudnnStatus_t r = enter(name)) return r;
	return handles.count(h) ? CUDNN_STATUS_SUCCESS : badParam;
}

cudnnStatus_t load(cudnnHandle_t h, int what, int engine) {
	if (h->loaded.count({what, engine})) return CUDNN_STATUS_SUCCESS;
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	if (cuStreamIsCapturing(h->stream, &capturing) == CUDA_SUCCESS && capturing != CU_STREAM_CAPTURE_STATUS_NONE) {
		simWait(h->stream);  // ends the capture: kernels are not loaded in one
		return executionFailed;
	}
	if (simTake(h->context, kernelBytes)) return allocFailed;
	h->loaded.insert({what, engine});
	h->taken += kernelBytes;
	return CUDNN_STATUS_SUCCESS;
}

void convolve(Kind kind, const Shape &s, float *x, float *w, float *y, float alpha) {
	Problem p{s};
	float *to = kind == ForwardConvolution ? y : kind == InputGradient ? x : w;
	Sums sums = kind == ForwardConvolution ? forward(p, x, w) : kind == InputGradient ? backwardData(p, w, y) : backwardFilter(p, x, y);
	for (size_t i = 0; i < sums.size(); i++) to[i] = (float)(alpha * sums[i]);
}

}  // namespace sim::dnn

extern "C" {

size_t cudnnGetCudartVersion(void) { return sim::setting("RNA_SIM_CUDART", 12090); }
size_t cudnnGetVersion(void) { return sim::setting("RNA_SIM_CUDNN", 9) == 9 ? 92800 : 8907; }

cudnnStatus_t cudnnCreate(cudnnHandle_t *h) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnCreate")) return r;
	CUcontext c;
	if (cuCtxGetCurrent(&c) != CUDA_SUCCESS || !c || !simFirstContext()) return notInitialized;
	// A library for a later CUDA than the driver's does not start.
	if (cudnnGetCudartVersion() / 1000 > (size_t)sim::setting("RNA_SIM_DRIVER", 12090) / 1000) return notInitialized;
	if (simTake(c, handleBytes)) return allocFailed;
	*h = new cudnnContext{nullptr, nullptr, {}, handleBytes};
	handles.insert(*h);
	simHandle("cuDNN handles", &(*h)->context, 1);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
	LOCK;
	cudnnStatus_t r = begin("cudnnDestroy", h);
	simHangs("cudnnDestroy");
	if (!handles.erase(h)) return badParam;
	simHandle("cuDNN handles", &h->context, -1);
	simTake(h->context, -h->taken);
	delete h;
	return r;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t h, CUstream s) {
	LOCK;
	if (cudnnStatus_t r = begin("cudnnSetStream", h)) return r;
	h->stream = s;
	return CUDNN_STATUS_SUCCESS;
}

}  // extern "C"
