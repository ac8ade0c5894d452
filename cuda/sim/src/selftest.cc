// Tests of the stand-in itself, with calls as package cuda makes them.
#include <math.h>
#include <nvrtc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <thread>
#include <vector>

#include "engine.h"
#include "sim.h"
extern "C" {
#include <cublas_v2.h>
CUresult cuMemAllocHost_v2(void **p, size_t n);
}

static int failures;
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

static const char *source = R"(
// __global__ void none(): a comment
extern "C" __global__ void axpy(int n, float a, const float *x, float *y) {
	int i = blockIdx.x*blockDim.x + threadIdx.x;
	if (i < n) y[i] += a*x[i];
}
extern "C" __global__ void __launch_bounds__(64) sums(int n, const float *x, double *out) {
	__shared__ double part[64];
	double s = 0;
	for (int i = threadIdx.x; i < n; i += blockDim.x) s += x[i];
	part[threadIdx.x] = s;
	__syncthreads();
	for (int h = 32; h > 0; h /= 2) {
		if (threadIdx.x < h) part[threadIdx.x] += part[threadIdx.x + h];
		__syncthreads();
	}
	if (threadIdx.x == 0) out[0] = part[0];
	s = x[threadIdx.x];
	for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
	if (threadIdx.x == 32) out[1] = s;
	__syncthreads();
	if (threadIdx.x == 0) atomicAdd(out + 2, 1.0);
}
extern "C" __global__ void unset(float *out) { __shared__ float s[8]; DYNAMIC_SHARED(float, d); out[0] = s[threadIdx.x]; out[1] = d[0]; }
extern "C" __global__ void past(float *d) { DYNAMIC_SHARED(float, s); s[4096] = 1; d[0] = s[0]; }
extern "C" __global__ void diverge(int k) { if (threadIdx.x < k) __syncthreads(); else __syncthreads(); }
extern "C" __global__ void stop(float *x) { if (x[0] == 1) __trap(); }
extern "C" __global__ void set(int n, float *x) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
)";

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
	~Device() { IS(cuDevicePrimaryCtxRelease(0), 0); }
};

static std::string compile(const char *text, const char *arch, int want) {
	nvrtcProgram p;
	IS(nvrtcCreateProgram(&p, text, "test.cu", 0, nullptr, nullptr), 0);
	const char *options[] = {arch, "--std=c++17"};
	IS(nvrtcCompileProgram(p, 2, options), want);
	size_t n;
	IS(nvrtcGetProgramLogSize(p, &n), 0);
	std::string log(n, ' ');
	IS(nvrtcGetProgramLog(p, log.data()), 0);
	if (want == 0 && n > 1) printf("%s\n", log.c_str());
	if (want == NVRTC_ERROR_COMPILATION) CHECK(log.find("test.cu:2") != std::string::npos);
	IS(nvrtcGetCUBINSize(p, &n), 0);
	std::string image(n, ' ');
	IS(nvrtcGetCUBIN(p, image.data()), 0);
	IS(nvrtcDestroyProgram(&p), 0);
	return image;
}

template <class... A> static int launch(CUfunction f, CUstream s, unsigned blocks, unsigned threads, unsigned shared, A... a) {
	void *p[] = {(void *)&a...};
	return cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, s, p, nullptr);
}

static CUdeviceptr filled(const std::vector<float> &v) {
	CUdeviceptr p = 0;
	IS(cuMemAlloc(&p, v.size() * 4), 0);
	IS(cuMemcpyHtoD(p, v.data(), v.size() * 4), 0);
	return p;
}

static void kernels(const std::string &image) {
	Device d(image);
	int n = 1000;
	std::vector<float> x(n), y(n, 1), got(n);
	double sum = 0, half = 0;
	for (int i = 0; i < n; i++) x[i] = i % 17 - 3.5f, sum += x[i];
	for (int i = 32; i < 64; i++) half += x[i];
	CUdeviceptr dx = filled(x), dy = filled(y), out;
	IS(cuMemAlloc(&out, 24), 0);
	IS(cuMemsetD8(out, 0, 24), 0);
	IS(launch(d.axpy, nullptr, 8, 128, 0, n, 2.f, dx, dy), 0);
	IS(launch(d.sums, nullptr, 3, 64, 0, n, dx, out), 0);
	IS(cuMemcpyDtoH(got.data(), dy, n * 4), 0);
	for (int i = 0; i < n; i++) CHECK(got[i] == 1 + 2 * x[i]);
	double s[3];
	IS(cuMemcpyDtoH(s, out, 24), 0);
	CHECK(s[0] == sum && s[1] == half && s[2] == 3);
	IS(launch(d.unset, nullptr, 1, 1, 64, out), 0);
	float u[2] = {0, 0};
	IS(cuMemcpyDtoH(u, out, 8), 0);
	CHECK(isnan(u[0]) && isnan(u[1]));
	IS(launch(d.axpy, nullptr, 1, 2048, 0, n, 2.f, dx, dy), CUDA_ERROR_INVALID_VALUE);
	IS(launch(d.axpy, nullptr, 0, 1, 0, n, 2.f, dx, dy), CUDA_ERROR_INVALID_VALUE);
	IS(launch(d.axpy, nullptr, 1, 1, 64 << 10, n, 2.f, dx, dy), CUDA_ERROR_INVALID_VALUE);
	CUfunction f;
	IS(cuModuleGetFunction(&f, d.module, "none"), CUDA_ERROR_NOT_FOUND);
	for (CUdeviceptr p : {dx, dy, out}) IS(cuMemFree(p), 0);
	IS(cuMemFree(dx), CUDA_ERROR_INVALID_VALUE);
	IS(cuModuleUnload(d.module), 0);
}

// memory is NaN before it is written, bounded, and gone once freed.
static void memory() {
	CUcontext c;
	IS(cuCtxCreate(&c, 0, 0), 0);
	float v[4] = {};
	CUdeviceptr p;
	IS(cuMemAlloc(&p, 12), 0);
	IS(cuMemcpyDtoH(v, p, 12), 0);
	CHECK(isnan(v[0]) && isnan(v[2]) && v[3] == 0);
	CHECK(!sim::guarded([](void *at) { *(volatile char *)at; }, (void *)p).empty());  // the host does not reach it
	IS(cuMemcpyDtoH(v, p, 16), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemcpyHtoD(p + 4, v, 12), CUDA_ERROR_INVALID_VALUE);
	IS(cuMemsetD32(p, 0, 4), CUDA_ERROR_INVALID_VALUE);
	size_t free, total;
	IS(cuMemGetInfo(&free, &total), 0);
	CHECK(free == total - 12);
	CUdeviceptr q;
	IS(cuMemAlloc(&q, total), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemFree(p), 0);
	IS(cuMemcpyDtoH(v, p, 4), CUDA_ERROR_INVALID_VALUE);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));
}

// streams run when they are waited for, and no others with them.
static void streams() {
	CUcontext c;
	IS(cuCtxCreate(&c, 0, 0), 0);
	CUstream a, b;
	CUevent e, f;
	IS(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), 0);
	IS(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), 0);
	IS(cuEventCreate(&e, 0), 0);
	IS(cuEventCreate(&f, 0), 0);
	CUdeviceptr p;
	float *host;
	IS(cuMemAlloc(&p, 4), 0);
	IS(cuMemAllocHost_v2((void **)&host, 4), 0);
	IS(cuEventRecord(e, a), 0);
	IS(cuMemsetD32Async(p, 7, 1, a), 0);
	IS(cuEventRecord(f, a), 0);
	IS(cuMemcpyDtoHAsync(host, p, 4, b), 0);
	IS(cuStreamSynchronize(b), 0);
	CHECK(isnan(host[0]));  // b did not wait for a
	IS(cuStreamWaitEvent(b, f, 0), 0);
	IS(cuMemcpyDtoHAsync(host, p, 4, b), 0);
	CHECK(isnan(host[0]));
	IS(cuEventQuery(f), CUDA_ERROR_NOT_READY);
	IS(cuStreamSynchronize(b), 0);
	CHECK(*(int *)host == 7);
	float ms = -1;
	IS(cuEventElapsedTime(&ms, e, f), 0);
	CHECK(ms >= 0);
	// The null stream waits for the blocking ones only.
	CUstream d;
	IS(cuStreamCreate(&d, 0), 0);
	IS(cuMemsetD32Async(p, 8, 1, d), 0);
	IS(cuMemcpyDtoH(host, p, 4), 0);
	CHECK(*(int *)host == 8);
	IS(cuMemsetD32Async(p, 9, 1, a), 0);
	IS(cuMemcpyDtoH(host, p, 4), 0);
	CHECK(*(int *)host == 8);
	// Pinned memory is read when the copy runs.
	*(int *)host = 10;
	IS(cuMemcpyHtoDAsync(p, host, 4, b), 0);
	*(int *)host = 11;
	IS(cuStreamSynchronize(b), 0);
	IS(cuMemcpyDtoH(host, p, 4), 0);
	CHECK(*(int *)host == 11);
	for (CUstream s : {a, b, d}) IS(cuStreamDestroy(s), 0);
	IS(cuStreamSynchronize(a), CUDA_ERROR_INVALID_HANDLE);
	IS(cuEventDestroy(e), 0);
	IS(cuMemFree(p), 0);
	IS(cuMemFreeHost(host), 0);
	CHECK(!strcmp(simLeaks(), "1 contexts, 1 events"));
	IS(cuEventDestroy(f), 0);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));
}

// wrong runs what ends a context, and says with which code.
static void wrong(const std::string &image, int want, void (*f)(Device &)) {
	Device d(image);
	f(d);
	IS(cuCtxSynchronize(), want);
	CUdeviceptr p;
	IS(cuMemAlloc(&p, 4), want);
}

static void blas() {
	CUcontext c;
	cublasHandle_t h;
	IS(cublasCreate(&h), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(cublasCreate(&h), 0);
	int n = 3, k = 1001;
	std::vector<double> a(n * k), want(n * n), got(n * n);
	for (int i = 0; i < n * k; i++) a[i] = i % 31 - 11;
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			for (int l = 0; l < k; l++) want[j * n + i] += a[i * k + l] * a[j * k + l];
	CUdeviceptr da, dg;
	IS(cuMemAlloc(&da, n * k * 8), 0);
	IS(cuMemAlloc(&dg, n * n * 8), 0);
	IS(cuMemcpyHtoD(da, a.data(), n * k * 8), 0);
	double one = 1, zero = 0;
	IS(cublasDgemm(h, CUBLAS_OP_T, CUBLAS_OP_N, n, n, k, &one, (double *)da, k, (double *)da, k, &zero, (double *)dg, n), 0);
	IS(cuMemcpyDtoH(got.data(), dg, n * n * 8), 0);
	CHECK(got == want);
	IS(cublasDgemv(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
	IS(cuMemcpyDtoH(got.data(), dg, n * n * 8), 0);
	for (int j = 0; j < n; j++) CHECK(got[j] == want[j] + want[n + j]);
	IS(cublasDgemm(h, CUBLAS_OP_T, CUBLAS_OP_N, n, n, k, &one, (double *)da, k - 1, (double *)da, k, &zero, (double *)dg, n), CUBLAS_STATUS_INVALID_VALUE);
	simFault("cublasDgemv_v2@2=13");
	IS(cublasDgemv(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
	IS(cublasDgemv(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 13);
	simFault("");
	// Past the end.
	IS(cublasDgemv(h, CUBLAS_OP_T, k, n + 1, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
	IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	IS(cublasDestroy(h), 0);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));
}

// A Capturing has a context with two streams and memory, and a capture on the first stream.
struct Capturing {
	CUcontext c;
	CUstream a, b;
	CUevent e;
	CUdeviceptr p;
	int *host;
	Capturing(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
		IS(cuCtxCreate(&c, 0, 0), 0);
		IS(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), 0);
		IS(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), 0);
		IS(cuEventCreate(&e, 0), 0);
		IS(cuMemAlloc(&p, 16), 0);
		IS(cuMemAllocHost_v2((void **)&host, 16), 0);
		memset(host, 0, 16);
		IS(cuMemcpyHtoD(p, host, 16), 0);
		IS(cuStreamBeginCapture(a, mode), 0);
	}
	int end(CUgraph *g) { return cuStreamEndCapture(a, g); }
	~Capturing() {
		IS(cuMemFree(p), 0);
		IS(cuMemFreeHost(host), 0);
		IS(cuEventDestroy(e), 0);
		IS(cuStreamDestroy(a), 0);
		IS(cuStreamDestroy(b), 0);
		CHECK(!strcmp(simLeaks(), "1 contexts"));
		IS(cuCtxDestroy(c), 0);
	}
};

// What is captured runs when the graph is launched, as often as that is done, with what memory holds then.
static void graphs(const std::string &image) {
	Capturing t;
	CUmodule m;
	CUfunction set;
	CUgraph g;
	CUgraphExec x;
	CUstreamCaptureStatus status;
	IS(cuStreamIsCapturing(t.a, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	IS(cuMemcpyHtoDAsync(t.p, t.host, 16, t.a), 0);
	IS(cuMemcpyDtoHAsync(t.host + 2, t.p, 4, t.a), 0);
	IS(cuEventRecord(t.e, t.a), 0);
	IS(cuStreamWaitEvent(t.b, t.e, 0), 0);  // b is in it, too
	IS(cuStreamIsCapturing(t.b, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	IS(cuMemcpyDtoHAsync(t.host + 3, t.p + 4, 4, t.b), 0);
	IS(cuEventRecord(t.e, t.b), 0);
	IS(cuStreamWaitEvent(t.a, t.e, 0), 0);
	IS(cuMemsetD32Async(t.p, 5, 1, t.a), 0);
	IS(t.end(&g), 0);
	IS(cuStreamIsCapturing(t.b, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	IS(cuGraphInstantiateWithFlags(&x, g, 0), 0);
	CHECK(strstr(simLeaks(), "1 graphs") && strstr(simLeaks(), "1 executable graphs"));
	IS(cuGraphDestroy(g), 0);
	IS(cuGraphDestroy(g), CUDA_ERROR_INVALID_HANDLE);
	IS(cuCtxSynchronize(), 0);
	CHECK(t.host[2] == 0 && t.host[3] == 0);  // nothing ran yet
	for (int i = 1; i < 3; i++) {
		t.host[0] = 10 * i;
		t.host[1] = 20 * i;
		IS(cuGraphLaunch(x, t.b), 0);
		IS(cuStreamSynchronize(t.b), 0);
		CHECK(t.host[2] == 10 * i && t.host[3] == 20 * i);
		IS(cuMemcpyDtoH(t.host, t.p, 4), 0);
		CHECK(t.host[0] == 5);
	}
	IS(cuGraphExecDestroy(x), 0);
	IS(cuGraphLaunch(x, t.b), CUDA_ERROR_INVALID_HANDLE);
	// A kernel that fails ends the context when the graph runs.
	{
		Device d(image);
		CUstream s;
		CUdeviceptr one = filled({1});
		IS(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
		IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
		IS(cuModuleLoadData(&m, image.data()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
		IS(cuModuleGetFunction(&set, d.module, "stop"), 0);
		IS(launch(set, s, 1, 1, 0, one), 0);
		IS(cuStreamEndCapture(s, &g), 0);
		IS(cuGraphInstantiateWithFlags(&x, g, 0), 0);
		IS(cuStreamSynchronize(s), 0);
		IS(cuGraphLaunch(x, s), 0);
		IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
		IS(cuGraphLaunch(x, s), CUDA_ERROR_LAUNCH_FAILED);
	}
	IS(cuCtxSetCurrent(t.c), 0);
}

// refused makes a call that a capture does not allow: it ends that.
static void refused(int want, int (*call)(Capturing &), CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
	Capturing t(mode);
	CUgraph g = (CUgraph)1;
	CUstreamCaptureStatus status;
	IS(cuMemsetD32Async(t.p, 1, 1, t.a), 0);
	IS(call(t), want);
	IS(cuStreamIsCapturing(t.a, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	IS(cuMemsetD32Async(t.p, 2, 1, t.a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(g == nullptr);
	IS(cuMemcpyDtoH(t.host, t.p, 4), 0);
	CHECK(t.host[0] == 0);
	IS(cuMemsetD32Async(t.p, 3, 1, t.a), 0);  // the stream is none the worse
	IS(cuStreamSynchronize(t.a), 0);
}

static void captures() {
	constexpr int unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	constexpr CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
	static CUdeviceptr q;
	static float pageable[4];
	static void *h;
	refused(unsupported, [](Capturing &) { return (int)cuMemAlloc(&q, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemFree(t.p); });
	refused(unsupported, [](Capturing &) { return (int)cuMemAllocHost_v2(&h, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemFreeHost(t.host); });
	refused(unsupported, [](Capturing &t) { return (int)cuStreamSynchronize(t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuStreamQuery(t.a); });
	refused(unsupported, [](Capturing &) { return (int)cuCtxSynchronize(); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoD(t.p, t.host, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoDAsync(t.p, pageable, 16, t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyDtoHAsync(pageable, t.p, 16, t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoDAsync(t.p, pageable, 16, t.a); }, global);
	refused(CUDA_ERROR_CAPTURED_EVENT, [](Capturing &t) { IS(cuEventRecord(t.e, t.a), 0); return (int)cuEventSynchronize(t.e); });
	refused(CUDA_ERROR_CAPTURED_EVENT, [](Capturing &t) { IS(cuEventRecord(t.e, t.a), 0); return (int)cuEventQuery(t.e); });
	refused(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [](Capturing &t) { IS(cuEventRecord(t.e, t.b), 0); return (int)cuStreamWaitEvent(t.a, t.e, 0); });
	refused(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, [](Capturing &t) {
		CUgraph g;
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), 0);
		return (int)cuStreamEndCapture(t.b, &g);
	});
	// Another thread may do what a global capture alone forbids, and only the one that began a capture may end it.
	int results[3];
	CUgraph g;
	for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, global}) {
		Capturing t(mode);
		std::thread([&] {
			IS(cuCtxSetCurrent(t.c), 0);
			results[0] = cuMemAlloc(&q, 4);
			results[1] = results[0] ? 0 : cuMemFree(q);
			results[2] = t.end(&g);
		}).join();
		IS(results[0], mode == global ? unsupported : 0);
		IS(results[1], 0);
		IS(results[2], CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
		IS(t.end(&g), mode == global ? (int)CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0);
		if (g) IS(cuGraphDestroy(g), 0);
	}
	{
		Capturing t(CU_STREAM_CAPTURE_MODE_RELAXED);
		IS(cuMemAlloc(&q, 4), 0);
		IS(cuMemFree(q), 0);
		IS(cuStreamBeginCapture(t.a, global), CUDA_ERROR_ILLEGAL_STATE);
		IS(cuStreamBeginCapture(nullptr, global), unsupported);
		IS(cuMemsetD32(t.p, 1, 1), 0);  // the stream does not wait for the null stream, nor that for it
		IS(cuStreamBeginCapture(t.b, global), 0);
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
		IS(cuStreamEndCapture(t.b, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(t.end(&g), CUDA_ERROR_ILLEGAL_STATE);
		// Work of another stream that nobody waits for.
		IS(cuStreamBeginCapture(t.a, global), 0);
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), 0);
		IS(cuMemsetD32Async(t.p, 1, 1, t.b), 0);
		IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
		// The null stream waits for streams that block.
		CUstream d;
		IS(cuStreamCreate(&d, 0), 0);
		IS(cuStreamBeginCapture(d, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
		IS(cuMemsetD32Async(t.p, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		IS(cuStreamEndCapture(d, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(cuStreamDestroy(d), 0);
		// A fault ends a capture all the same.
		IS(cuStreamBeginCapture(t.a, global), 0);
		simFault("cuStreamEndCapture@1=400");
		IS(t.end(&g), CUDA_ERROR_INVALID_HANDLE);
		simFault("");
		CHECK(!g);
		IS(cuStreamSynchronize(t.a), 0);
	}
}

static void faults() {
	CUcontext c;
	CUdeviceptr p, q;
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(simFault("nonsense"), 1);
	IS(simFault("cuMemAlloc_v2@2=2"), 0);
	IS(cuMemAlloc(&p, 4), 0);
	IS(cuMemAlloc(&q, 4), CUDA_ERROR_OUT_OF_MEMORY);
	IS(cuMemAlloc(&q, 4), 0);
	IS(cuMemFree(q), 0);
	IS(simFault("cuMemsetD32_v2@1=719,later"), 0);
	IS(cuMemsetD32(p, 1, 1), 0);
	IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuMemAlloc(&q, 4), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuMemFree(p), CUDA_ERROR_LAUNCH_FAILED);
	IS(cuCtxDestroy(c), 0);
	IS(simFault("*@3=999,sticky"), 0);
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(cuMemAlloc(&p, 4), 0);
	IS(cuMemAlloc(&p, 4), 999);
	IS(cuCtxSynchronize(), 999);
	IS(simFault(""), 0);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));  // it was lost
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(cuMemAlloc(&p, 4), 0);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), "1 device allocations"));
}

int main() {
	int n;
	IS(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	IS(cuInit(0), 0);
	IS(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	memory();
	streams();
	blas();
	std::string image = compile(source, "-arch=sm_90", 0);
	compile("\nextern \"C\" __global__ void k(int *p) { *p = q; }", "-arch=sm_90", NVRTC_ERROR_COMPILATION);
	compile(source, "-arch=sm_12", NVRTC_ERROR_INVALID_OPTION);
	kernels(image);
	// Each with its memory as a leak-free context would have it.
	wrong(image, CUDA_ERROR_ILLEGAL_ADDRESS, [](Device &d) { CUdeviceptr x = filled({1, 2, 3}); IS(launch(d.axpy, nullptr, 1, 32, 0, 20, 1.f, x, x), 0); });
	wrong(image, CUDA_ERROR_ILLEGAL_ADDRESS, [](Device &d) {
		CUdeviceptr x = filled({1, 2, 3});
		IS(cuMemFree(x), 0);
		IS(launch(d.axpy, nullptr, 1, 32, 0, 3, 1.f, x, x), 0);
	});
	wrong(image, CUDA_ERROR_ILLEGAL_ADDRESS, [](Device &d) { IS(launch(d.axpy, nullptr, 1, 32, 0, 3, 1.f, (CUdeviceptr)0, (CUdeviceptr)0), 0); });
	wrong(image, CUDA_ERROR_ILLEGAL_ADDRESS, [](Device &d) { CUdeviceptr x = filled({1}); IS(launch(d.past, nullptr, 1, 1, 16384, x), 0); });
	wrong(image, CUDA_ERROR_LAUNCH_FAILED, [](Device &d) { IS(launch(d.diverge, nullptr, 1, 64, 0, 7), 0); });
	wrong(image, CUDA_ERROR_LAUNCH_FAILED, [](Device &d) { CUdeviceptr x = filled({1}); IS(launch(d.stop, nullptr, 1, 1, 0, x), 0); });
	wrong(image, CUDA_ERROR_ILLEGAL_ADDRESS, [](Device &d) {
		// One element past the end, within the alignment: found when the memory is freed.
		CUdeviceptr x = filled({1, 2, 3});
		IS(launch(d.set, nullptr, 1, 32, 0, 4, x), 0);
		IS(cuMemFree(x), CUDA_ERROR_ILLEGAL_ADDRESS);
	});
	CHECK(!strcmp(simLeaks(), ""));
	graphs(image);
	captures();
	CHECK(!strcmp(simLeaks(), ""));
	image[9] ^= 1;
	CUcontext c;
	CUmodule m;
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(cuModuleLoadData(&m, image.data()), CUDA_ERROR_NO_BINARY_FOR_GPU);
	IS(cuModuleLoadData(&m, "not an image, but long enough"), CUDA_ERROR_INVALID_IMAGE);
	IS(cuCtxDestroy(c), 0);
	faults();
	printf(failures ? "%d failures\n" : "the stand-in works\n", failures);
	return failures != 0;
}
