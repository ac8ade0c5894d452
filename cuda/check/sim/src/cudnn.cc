// cuDNN's convolutions on the CPU, of tensors that lie channels last, in float32 or 16 bits, with sums in float64.
// Strict where cuDNN may be lenient: all pointers at 16 bytes, workspaces of the right size, which are overwritten, one
// type for all tensors, tensor cores for 16 bits.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <vector>

#include "dnn.h"

using namespace sim::dnn;

#define LOCK std::lock_guard<std::recursive_mutex> held(*lock())

namespace {

enum What { Forward, Data, Filter };

struct Sizes {
	int n, c, h, w;
	size_t count() const { return (size_t)n * c * h * w; }
	bool operator==(const Sizes &o) const { return n == o.n && c == o.c && h == o.h && w == o.w; }
};

}  // namespace

struct cudnnTensorStruct {
	cudnnDataType_t type;
	Sizes size;  // n is 0 until it is set
};
struct cudnnFilterStruct {
	cudnnDataType_t type;
	Sizes size;  // outputs, inputs of a group, taps
};
struct cudnnConvolutionStruct {
	int pad[2], stride[2], dilation[2], groups;
	cudnnConvolutionMode_t mode;
	cudnnDataType_t compute;
	cudnnMathType_t math;
};

namespace {

std::set<cudnnHandle_t> handles;
std::set<void *> descriptors;

template <class T> cudnnStatus_t make(const char *name, T **out) {
	if (cudnnStatus_t r = enter(name)) return r;
	*out = new T{};
	descriptors.insert(*out);
	simLive("cuDNN descriptors", 1);
	return CUDNN_STATUS_SUCCESS;
}
template <class T> cudnnStatus_t destroy(const char *name, T *d) {
	cudnnStatus_t r = enter(name);
	if (!descriptors.erase(d)) return badParam();
	simLive("cuDNN descriptors", -1);
	delete d;
	return r;
}

template <class T> cudnnStatus_t set(const char *name, T *d, cudnnTensorFormat_t format, cudnnDataType_t type, Sizes s) {
	if (cudnnStatus_t r = enter(name)) return r;
	if (!descriptors.count(d) || s.n < 1 || s.c < 1 || s.h < 1 || s.w < 1) return badParam();
	if (format != CUDNN_TENSOR_NHWC) return notSupported();
	d->type = type;
	d->size = s;
	return CUDNN_STATUS_SUCCESS;
}

// A Problem is a convolution of x with w to y; any of the three may be the result.
struct Problem {
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t c;

	cudnnStatus_t check() const {
		if (!descriptors.count(x) || !descriptors.count(y) || !descriptors.count(w) || !descriptors.count(c)) return badParam();
		const Sizes &xs = x->size, &ws = w->size;
		if (!xs.n || !ws.n || !y->size.n || !c->groups || !c->stride[0]) return badParam();
		if (ws.c * c->groups != xs.c || ws.n % c->groups) return badParam();
		auto out = [&](int d, int in, int taps) { return (in + 2 * c->pad[d] - c->dilation[d] * (taps - 1) - 1) / c->stride[d] + 1; };
		if (!(y->size == Sizes{xs.n, ws.n, out(0, xs.h, ws.h), out(1, xs.w, ws.w)})) return badParam();
		if (x->type != y->type || x->type != w->type || c->mode != CUDNN_CROSS_CORRELATION) return notSupported();
		bool narrow = x->type == CUDNN_DATA_HALF || x->type == CUDNN_DATA_BFLOAT16;
		if ((!narrow && x->type != CUDNN_DATA_FLOAT) || c->compute != CUDNN_DATA_FLOAT) return notSupported();
		if (c->math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION || (narrow && c->math == CUDNN_FMA_MATH)) return notSupported();
		return CUDNN_STATUS_SUCCESS;
	}

	// each calls f for each tap and row of outputs that it meets: with the tap's number, the first of these outputs in y,
	// the first pixel that it meets in x, and the number of outputs. The others meet every stride-th pixel.
	template <class F> void each(F f) const {
		const Sizes &xs = x->size, &ws = w->size, &ys = y->size;
		for (int n = 0; n < ys.n; n++)
			for (int i = 0; i < ys.h; i++)
				for (int r = 0; r < ws.h; r++) {
					int h = i * c->stride[0] - c->pad[0] + r * c->dilation[0];
					if (h < 0 || h >= xs.h) continue;
					for (int s = 0; s < ws.w; s++) {
						int v = s * c->dilation[1] - c->pad[1], step = c->stride[1];
						int from = v < 0 ? (step - 1 - v) / step : 0, to = v < xs.w ? std::min(ys.w, (xs.w - 1 - v) / step + 1) : 0;
						if (from >= to) continue;
						f(r * ws.w + s, (((long)n * ys.h + i) * ys.w + from) * ys.c, (((long)n * xs.h + h) * xs.w + v + from * step) * xs.c, to - from);
					}
				}
	}
	long taps() const { return w->size.h * w->size.w; }
	int inputs() const { return w->size.c; }  // of a group
	int outputs() const { return w->size.n / c->groups; }
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
	int in = p.inputs(), out = p.outputs(), stride = p.c->stride[1], cs = p.x->size.c, os = p.y->size.c;
	std::vector<float> turned(p.w->size.count());  // taps, inputs, outputs
	for (int o = 0; o < os; o++)
		for (long t = 0; t < p.taps() * in; t++) turned[t * os + o] = w[o * p.taps() * in + t];
	Sums sums(p.y->size.count());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.c->groups; g++)
			product(n, out, in, {x + v + g * in, (long)stride * cs, 1}, &turned[(long)tap * in * os + g * out], os, &sums[y + g * out], os);
	});
	return sums;
}

Sums backwardData(const Problem &p, const float *w, const float *dy) {
	int in = p.inputs(), out = p.outputs(), stride = p.c->stride[1], cs = p.x->size.c, os = p.y->size.c;
	Sums sums(p.x->size.count());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.c->groups; g++)
			product(n, in, out, {dy + y + g * out, os, 1}, w + (g * out * p.taps() + tap) * in, p.taps() * in, &sums[v + g * in], (long)stride * cs);
	});
	return sums;
}

Sums backwardFilter(const Problem &p, const float *x, const float *dy) {
	int in = p.inputs(), out = p.outputs(), stride = p.c->stride[1], cs = p.x->size.c, os = p.y->size.c;
	Sums sums(p.w->size.count());
	p.each([&](int tap, long y, long v, int n) {
		for (int g = 0; g < p.c->groups; g++)
			product(out, in, n, {dy + y + g * out, 1, os}, x + v + g * in, (long)stride * cs, &sums[(g * out * p.taps() + tap) * in], p.taps() * in);
	});
	return sums;
}

// compute sets the result to alpha times the quantity, from its operands in the order of the function, plus beta times
// the old content.
void compute(What what, const Problem &p, const float *a, const float *b, float *to, float alpha, float beta) {
	Sums sums = what == Forward ? forward(p, a, b) : what == Data ? backwardData(p, a, b) : backwardFilter(p, a, b);
	for (size_t i = 0; i < sums.size(); i++) to[i] = beta == 0 ? (float)(alpha * sums[i]) : (float)(alpha * sums[i] + beta * to[i]);
}

// Floats are the elements of a tensor as float32: its own, or converted ones, which are rounded at the store.
struct Floats {
	cudnnDataType_t type;
	void *at;
	std::vector<float> own;
	float *p;
	// Of an operand of a product, which TensorFloat-32 rounds, or of a result, whose content may not matter.
	Floats(cudnnDataType_t type, const void *from, size_t n, bool tf32, bool read = true) : type(type), at((void *)from), p((float *)from) {
		if (type == CUDNN_DATA_FLOAT && !tf32) return;
		own.resize(n);
		p = own.data();
		for (size_t i = 0; read && i < n; i++) {
			if (type == CUDNN_DATA_FLOAT) p[i] = sim::tf32(((const float *)from)[i]);
			else p[i] = type == CUDNN_DATA_HALF ? sim::fromHalf(((const uint16_t *)from)[i]) : sim::fromBFloat16(((const uint16_t *)from)[i]);
		}
	}
	void store() {
		if (type == CUDNN_DATA_FLOAT) return;
		for (size_t i = 0; i < own.size(); i++) ((uint16_t *)at)[i] = type == CUDNN_DATA_HALF ? sim::toHalf(p[i]) : sim::toBFloat16(p[i]);
	}
};

// An Algorithm as the heuristics name it, the fastest first. Those with atomics give other sums in each run; Winograd's
// exist for 16 bits, and are inexact in them.
struct Algorithm {
	int number;
	bool winograd, deterministic;
};
const std::vector<Algorithm> &algorithms(What what) {
	static const std::vector<Algorithm> all[] = {
		{{6, true, true}, {1, false, true}, {0, false, true}},   // WINOGRAD, IMPLICIT_PRECOMP_GEMM, IMPLICIT_GEMM
		{{5, true, true}, {0, false, false}, {1, false, true}},  // WINOGRAD_NONFUSED, ALGO_0, ALGO_1
		{{5, true, true}, {0, false, false}, {1, false, true}},
	};
	return all[what];
}
// has reports whether an algorithm does a convolution: none does the gradient of weights in 16 bits if taps are apart.
bool has(const Algorithm &a, What what, const Problem &p) {
	bool narrow = p.x->type != CUDNN_DATA_FLOAT, apart = p.c->dilation[0] > 1 || p.c->dilation[1] > 1;
	return (narrow || !a.winograd) && !(narrow && apart && what == Filter);
}
const Algorithm *find(What what, const Problem &p, int number) {
	for (const Algorithm &a : algorithms(what))
		if (a.number == number && has(a, what, p)) return &a;
	return nullptr;
}

// workspace is the scratch that the algorithms other than 0 need; with RNA_SIM_WORKSPACE more than the sizes of x and
// y, as for first layers with the real ones.
size_t workspace(const Problem &p, int algorithm) {
	if (algorithm == 0) return 0;
	size_t least = 16 * (size_t)(p.w->size.h * p.w->size.w) + 4 * (size_t)p.y->size.c + 4;
	return sim::setting("RNA_SIM_WORKSPACE", 0) ? least + 4 * (p.x->size.count() + p.y->size.count()) : least;
}

cudnnStatus_t choose(const char *name, What what, cudnnHandle_t h, const Problem &p, int asked, int *given, cudnnConvolutionAlgoPerf *out) {
	if (cudnnStatus_t r = begin(name, h)) return r;
	if (cudnnStatus_t r = p.check()) return r;
	if (asked < 1 || !given || !out) return badParam();
	*given = 0;
	auto add = [&](const Algorithm &a, cudnnMathType_t math) {
		if (*given == asked) return;
		bool there = has(a, what, p);
		cudnnConvolutionAlgoPerf &r = out[(*given)++];
		r = {};
		r.algo = a.number;
		r.status = there ? CUDNN_STATUS_SUCCESS : notSupported();
		r.time = -1;
		// The heuristics report less than an algorithm needs.
		r.memory = there ? workspace(p, a.number) / 2 : (size_t)-1;
		r.determinism = a.deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
		r.mathType = math;
	};
	// As the real lists: once for each kind of products, some twice.
	bool narrow = p.x->type != CUDNN_DATA_FLOAT, plain = p.c->math == CUDNN_FMA_MATH;
	for (const Algorithm &a : algorithms(what)) add(a, plain ? CUDNN_FMA_MATH : narrow ? CUDNN_TENSOR_OP_MATH : CUDNN_DEFAULT_MATH);
	for (const Algorithm &a : algorithms(what)) add(a, narrow ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
	for (const Algorithm &a : algorithms(what)) add(a, plain ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t size(const char *name, What what, cudnnHandle_t h, const Problem &p, int algorithm, size_t *bytes) {
	if (cudnnStatus_t r = begin(name, h)) return r;
	if (cudnnStatus_t r = p.check()) return r;
	if (!find(what, p, algorithm)) return notSupported();
	*bytes = workspace(p, algorithm);
	return CUDNN_STATUS_SUCCESS;
}

bool aligned(const void *p) { return p && (uintptr_t)p % 16 == 0; }

// run queues a convolution: a and b are operands, to is the result, in the order of the function.
cudnnStatus_t run(const char *name, What what, cudnnHandle_t h, const Problem &p, const void *alpha, const void *a, const void *b, int algorithm, void *space, size_t bytes, const void *beta, void *to) {
	if (cudnnStatus_t r = begin(name, h)) return r;
	if (cudnnStatus_t r = p.check()) return r;
	const Algorithm *how = find(what, p, algorithm);
	if (!how) return notSupported();
	size_t need = workspace(p, algorithm);
	if (!alpha || !beta || !aligned(a) || !aligned(b) || !aligned(to) || bytes < need || (need && !aligned(space))) return badParam();
	if (cudnnStatus_t r = load(h, what, algorithm)) return r;
	float al = *(const float *)alpha, be = *(const float *)beta;
	static unsigned calls;
	float jitter = how->deterministic ? 1 : 1 + (float)(calls++ % 2) * 0x1p-22f;
	// For a single tap alone, the algorithm without workspace is the faster one, whatever the heuristics say.
	double time = algorithm == 1 ? 20e-6 : p.w->size.h * p.w->size.w == 1 ? 10e-6 : 30e-6;
	if (how->winograd) jitter += 0x1p-5f;
	cudnnTensorStruct x = *p.x, y = *p.y;  // descriptors may go before the work runs
	cudnnFilterStruct w = *p.w;
	cudnnConvolutionStruct c = *p.c;
	std::function<std::string()> work = [=]() mutable {
		Problem q{&x, &y, &w, &c};
		if (need) memset(space, 0xff, need);
		// Zeros take less power and less time; here this shows with one algorithm alone.
		bool zeros = algorithm == 1 && std::all_of((const char *)a, (const char *)a + 8, [](char c) { return c == 0; });
		simSpend(zeros ? time / 4 : time);
		// A card uses TensorFloat-32 if allowed.
		bool tf32 = x.type == CUDNN_DATA_FLOAT && c.math != CUDNN_FMA_MATH;
		size_t sizes[] = {x.size.count(), w.size.count(), y.size.count()};
		const int order[][3] = {{0, 1, 2}, {1, 2, 0}, {0, 2, 1}};
		Floats fa(x.type, a, sizes[order[what][0]], tf32), fb(x.type, b, sizes[order[what][1]], tf32);
		Floats ft(x.type, to, sizes[order[what][2]], false, be != 0);
		compute(what, q, fa.p, fb.p, ft.p, al * jitter, be);
		ft.store();
		return std::string();
	};
	return simQueue(h->stream, &work) ? executionFailed() : CUDNN_STATUS_SUCCESS;
}

}  // namespace

namespace sim::dnn {

std::recursive_mutex *lock() {
	static std::recursive_mutex m;
	return &m;
}

cudnnStatus_t enter(const char *name) {
	int code = simEnter(name);
	return simDead() ? executionFailed() : code;
}
cudnnStatus_t begin(const char *name, cudnnHandle_t h) {
	if (cudnnStatus_t r = enter(name)) return r;
	return handles.count(h) ? CUDNN_STATUS_SUCCESS : badParam();
}

cudnnStatus_t load(cudnnHandle_t h, int what, int algorithm) {
	if (h->loaded.count({what, algorithm})) return CUDNN_STATUS_SUCCESS;
	CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
	if (cuStreamIsCapturing(h->stream, &capturing) == CUDA_SUCCESS && capturing != CU_STREAM_CAPTURE_STATUS_NONE) {
		simWait(h->stream);  // ends the capture: kernels are not loaded in one
		return executionFailed();
	}
	if (simTake(h->context, kernelBytes)) return allocFailed();
	h->loaded.insert({what, algorithm});
	h->taken += kernelBytes;
	return CUDNN_STATUS_SUCCESS;
}

void convolve(Kind kind, const Shape &s, float *x, float *w, float *y, float alpha) {
	auto out = [&](int d, int in, int taps) { return (in + 2 * s.pad[d] - s.dilation[d] * (taps - 1) - 1) / s.stride[d] + 1; };
	cudnnTensorStruct xd{CUDNN_DATA_FLOAT, {s.n, s.c, s.h, s.w}};
	cudnnTensorStruct yd{CUDNN_DATA_FLOAT, {s.n, s.o, out(0, s.h, s.kh), out(1, s.w, s.kw)}};
	cudnnFilterStruct wd{CUDNN_DATA_FLOAT, {s.o, s.c / s.groups, s.kh, s.kw}};
	cudnnConvolutionStruct c{{s.pad[0], s.pad[1]}, {s.stride[0], s.stride[1]}, {s.dilation[0], s.dilation[1]}, s.groups, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH};
	Problem p{&xd, &yd, &wd, &c};
	switch (kind) {
	case ForwardConvolution: return compute(Forward, p, x, w, y, alpha, 0);
	case InputGradient: return compute(Data, p, w, y, x, alpha, 0);
	case WeightGradient: return compute(Filter, p, x, y, w, alpha, 0);
	}
}

}  // namespace sim::dnn

extern "C" {

size_t cudnnGetCudartVersion(void) { return sim::setting("RNA_SIM_CUDART", 12090); }
size_t cudnnGetVersion(void) { return sim::setting("RNA_SIM_CUDNN", 9) < 8 ? 7605 : eight() ? 8907 : 92800; }

cudnnStatus_t cudnnCreate(cudnnHandle_t *h) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnCreate")) return r;
	CUcontext c;
	if (cuCtxGetCurrent(&c) != CUDA_SUCCESS || !c || !simFirstContext()) return notInitialized();
	// A library for a later CUDA than the driver's does not start.
	if (cudnnGetCudartVersion() / 1000 > (size_t)sim::setting("RNA_SIM_DRIVER", 12090) / 1000) return notInitialized();
	if (simTake(c, handleBytes)) return allocFailed();
	*h = new cudnnContext{nullptr, nullptr, {}, handleBytes};
	handles.insert(*h);
	simHandle("cuDNN handles", &(*h)->context, 1);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t h) {
	LOCK;
	cudnnStatus_t r = begin("cudnnDestroy", h);
	simHangs("cudnnDestroy");
	if (!handles.erase(h)) return badParam();
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

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d) { LOCK; return make("cudnnCreateTensorDescriptor", d); }
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t f, cudnnDataType_t t, int n, int c, int h, int w) { LOCK; return set("cudnnSetTensor4dDescriptor", d, f, t, {n, c, h, w}); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) { LOCK; return destroy("cudnnDestroyTensorDescriptor", d); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d) { LOCK; return make("cudnnCreateFilterDescriptor", d); }
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t t, cudnnTensorFormat_t f, int k, int c, int h, int w) { LOCK; return set("cudnnSetFilter4dDescriptor", d, f, t, {k, c, h, w}); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) { LOCK; return destroy("cudnnDestroyFilterDescriptor", d); }
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d) { LOCK; return make("cudnnCreateConvolutionDescriptor", d); }
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) { LOCK; return destroy("cudnnDestroyConvolutionDescriptor", d); }

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int padH, int padW, int strideH, int strideW, int dilationH, int dilationW, cudnnConvolutionMode_t mode, cudnnDataType_t compute) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnSetConvolution2dDescriptor")) return r;
	if (!descriptors.count(d) || padH < 0 || padW < 0 || strideH < 1 || strideW < 1 || dilationH < 1 || dilationW < 1) return badParam();
	*d = {{padH, padW}, {strideH, strideW}, {dilationH, dilationW}, 1, mode, compute, CUDNN_DEFAULT_MATH};
	return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnSetConvolutionGroupCount")) return r;
	if (!descriptors.count(d) || groups < 1) return badParam();
	d->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
	LOCK;
	if (cudnnStatus_t r = enter("cudnnSetConvolutionMathType")) return r;
	if (!descriptors.count(d) || math < CUDNN_DEFAULT_MATH || math > CUDNN_FMA_MATH) return badParam();
	d->math = math;
	return CUDNN_STATUS_SUCCESS;
}

#define X cudnnTensorDescriptor_t
#define W cudnnFilterDescriptor_t
#define C cudnnConvolutionDescriptor_t
#define PERF int asked, int *given, cudnnConvolutionAlgoPerf *out
cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t h, X x, W w, C c, X y, PERF) { LOCK; return choose("cudnnGetConvolutionForwardAlgorithm_v7", Forward, h, {x, y, w, c}, asked, given, out); }
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t h, W w, X dy, C c, X dx, PERF) { LOCK; return choose("cudnnGetConvolutionBackwardDataAlgorithm_v7", Data, h, {dx, dy, w, c}, asked, given, out); }
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t h, X x, X dy, C c, W dw, PERF) { LOCK; return choose("cudnnGetConvolutionBackwardFilterAlgorithm_v7", Filter, h, {x, dy, dw, c}, asked, given, out); }
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t h, X x, W w, C c, X y, int a, size_t *n) { LOCK; return size("cudnnGetConvolutionForwardWorkspaceSize", Forward, h, {x, y, w, c}, a, n); }
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t h, W w, X dy, C c, X dx, int a, size_t *n) { LOCK; return size("cudnnGetConvolutionBackwardDataWorkspaceSize", Data, h, {dx, dy, w, c}, a, n); }
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t h, X x, X dy, C c, W dw, int a, size_t *n) { LOCK; return size("cudnnGetConvolutionBackwardFilterWorkspaceSize", Filter, h, {x, dy, dw, c}, a, n); }

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha, X x, const void *xp, W w, const void *wp, C c, int a, void *space, size_t bytes, const void *beta, X y, void *yp) {
	LOCK;
	return run("cudnnConvolutionForward", Forward, h, {x, y, w, c}, alpha, xp, wp, a, space, bytes, beta, yp);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha, W w, const void *wp, X dy, const void *dyp, C c, int a, void *space, size_t bytes, const void *beta, X dx, void *dxp) {
	LOCK;
	return run("cudnnConvolutionBackwardData", Data, h, {dx, dy, w, c}, alpha, wp, dyp, a, space, bytes, beta, dxp);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha, X x, const void *xp, X dy, const void *dyp, C c, int a, void *space, size_t bytes, const void *beta, W dw, void *dwp) {
	LOCK;
	return run("cudnnConvolutionBackwardFilter", Filter, h, {x, dy, dw, c}, alpha, xp, dyp, a, space, bytes, beta, dwp);
}

}  // extern "C"
