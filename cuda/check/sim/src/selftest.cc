// Tests of the stand-in itself, with calls as package cuda makes them.
#include "selftest.h"

int failures;

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
	if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = part[0];
	s = x[threadIdx.x];
	for (int d = 16; d > 0; d /= 2) s += __shfl_down_sync(0xffffffffu, s, d);
	if (threadIdx.x == 32 && blockIdx.x == 0) out[1] = s;
	__syncthreads();
	if (threadIdx.x == 0) atomicAdd(out + 2, 1.0);
}
extern "C" __global__ void unset(float *out) { __shared__ float s[8]; DYNAMIC_SHARED(float, d); out[0] = s[threadIdx.x]; out[1] = d[0]; }
extern "C" __global__ void past(float *d) { DYNAMIC_SHARED(float, s); s[4096] = 1; d[0] = s[0]; }
extern "C" __global__ void diverge(int k) { if (threadIdx.x < k) __syncthreads(); else __syncthreads(); }
extern "C" __global__ void stop(float *x) { if (x[0] == 1) __trap(); }
// The last block adds what each has written. Without a fence, or without a barrier before thread 0 counts, it may read too early.
extern "C" __global__ void last(float *x, unsigned *count, int fence, int wait) {
	__shared__ unsigned ticket;
	x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
	if (fence) __threadfence();
	if (wait) __syncthreads();
	if (threadIdx.x == 0) ticket = atomicAdd(count, 1u);
	__syncthreads();
	if (ticket != gridDim.x - 1) return;
	float s = 0;
	for (unsigned i = threadIdx.x; i < gridDim.x * blockDim.x; i += blockDim.x) s += x[i];
	if (threadIdx.x == 0) x[gridDim.x * blockDim.x] = s;
}
extern "C" __global__ void copy16(const float *x, float *y) { *(float4 *)y = *(const float4 *)x; }
extern "C" __global__ void next(float *x) { float v = x[threadIdx.x + 1]; x[threadIdx.x] = v; }
extern "C" __global__ void neighbour(float *y) {
	__shared__ float s[64];
	s[threadIdx.x] = threadIdx.x;
	if (y[0] == 0) __syncthreads();
	y[threadIdx.x + 1] = s[threadIdx.x ^ 32];
}
extern "C" __global__ void set(int n, float *x) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
)";

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

// wrong runs code that ends a context, and reports with which code.
static void wrong(const std::string &image, int want, void (*f)(Device &)) {
	apart([&] {
		Device d(image);
		f(d);
		IS(cuCtxSynchronize(), want);
		CUdeviceptr p;
		IS(cuMemAlloc(&p, 4), want);
		CUcontext again;
		IS(cuDevicePrimaryCtxRetain(&again, 0), want);
		IS(cuCtxCreate(&again, 0, 0), want);
		IS(simFault(""), 0);  // heals nothing
		IS(cuMemAlloc(&p, 4), want);
	});
}

static void blas() {
	CUcontext c;
	cublasHandle_t h;
	IS(cublasCreate_v2(&h), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cuCtxCreate(&c, 0, 0), 0);
	IS(cublasCreate_v2(&h), 0);
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
	for (int j = 0; j < n; j++) IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k * j, 1, &zero, (double *)dg + n * j, 1), 0);
	IS(cuMemcpyDtoH(got.data(), dg, n * n * 8), 0);
	CHECK(got == want);
	IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
	IS(cuMemcpyDtoH(got.data(), dg, n * n * 8), 0);
	for (int j = 0; j < n; j++) CHECK(got[j] == want[j] + want[n + j]);
	IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n, &one, (double *)da, k - 1, (double *)da, 1, &zero, (double *)dg, 1), CUBLAS_STATUS_INVALID_VALUE);
	simFault("cublasDgemv_v2@2=13");
	IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
	IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 13);
	simFault("");
	apart([&] {  // past the end
		IS(cublasDgemv_v2(h, CUBLAS_OP_T, k, n + 1, &one, (double *)da, k, (double *)da + k, 1, &one, (double *)dg, 1), 0);
		IS(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	});
	IS(cuMemFree(da), 0);
	IS(cuMemFree(dg), 0);
	IS(cublasDestroy_v2(h), 0);
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));
}

#ifdef SIM_CHECKED
// checks are the accesses that kernels compiled with SIM_CHECK are refused.
static void checks(const std::string &image) {
	auto function = [](Device &d, const char *name) {
		CUfunction f = nullptr;
		IS(cuModuleGetFunction(&f, d.module, name), 0);
		return f;
	};
	struct Case { const char *what; int want; std::function<void(Device &, CUdeviceptr)> run; };
	float host[64] = {};
	std::vector<Case> all = {
		{"fence and wait", 0, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "last"), nullptr, 4, 64, 0, p, p + 2048, 1, 1), 0); }},
		{"no fence", 719, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "last"), nullptr, 4, 64, 0, p, p + 2048, 0, 1), 0); }},
		{"no wait", 719, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "last"), nullptr, 4, 64, 0, p, p + 2048, 1, 0), 0); }},
		{"aligned", 0, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "copy16"), nullptr, 1, 1, 0, p, p + 16), 0); }},
		{"misaligned", 716, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "copy16"), nullptr, 1, 1, 0, p + 4, p + 32), 0); }},
		{"host memory", 700, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "copy16"), nullptr, 1, 1, 0, host, p), 0); }},
		{"reads what another thread writes", 719, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "next"), nullptr, 1, 32, 0, p), 0); }},
		{"shared memory behind a barrier", 0, [&](Device &d, CUdeviceptr p) { IS(launch(function(d, "neighbour"), nullptr, 1, 64, 0, p), 0); }},
		{"shared memory without one", 719, [&](Device &d, CUdeviceptr p) {
			IS(cuMemsetD32(p, 1, 1), 0);
			IS(launch(function(d, "neighbour"), nullptr, 1, 64, 0, p), 0);
		}},
	};
	for (Case &c : all)
		apart([&] {
			Device d(image);
			CUdeviceptr p = filled(std::vector<float>(1024));
			c.run(d, p);
			int got = cuCtxSynchronize();
			if (got != c.want) printf("%s: %d, want %d\n", c.what, got, c.want), failures++;
			IS(cuMemFree(p), c.want);
		});
}
#endif

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
	apart([&] {
		IS(simFault("cuMemsetD32_v2@1=719,later"), 0);
		IS(cuMemsetD32(p, 1, 1), 0);
		IS(cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
		IS(cuMemAlloc(&q, 4), CUDA_ERROR_LAUNCH_FAILED);
		IS(cuMemFree(p), CUDA_ERROR_LAUNCH_FAILED);
		CHECK(!strcmp(simLeaks(), ""));  // it was lost
	});
	apart([&] {
		IS(simFault("*@3=721,sticky"), 0);
		IS(cuMemAlloc(&q, 4), 0);
		IS(cuMemAlloc(&q, 4), 0);
		IS(cuMemAlloc(&q, 4), 721);
		IS(cuCtxSynchronize(), 721);
	});
	IS(cuMemFree(p), 0);
	IS(cuCtxDestroy(c), 0);
	IS(simFault(""), 0);
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
	precisions();
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
#ifdef SIM_CHECKED
	checks(image);
#endif
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
