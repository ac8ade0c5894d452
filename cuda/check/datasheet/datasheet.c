//go:build gpu

// Functions of the driver, cuBLAS, NVRTC and cuDNN that succeed and do nothing.
#include <cublas_v2.h>
#include <cuda.h>
#include <cudnn.h>
#include <cudnn_backend.h>
#include <nvrtc.h>
#include <stdint.h>
#include <string.h>

#include "datasheet.h"

static struct {
	char name[100];
	int major, minor, multiprocessors;
	size_t memory, used;
} card;
static double seconds;       // of the clock
static uintptr_t last = 1 << 20; // the last address that was given out
// The last handle that was given out. Handles stay below Go's heap, where Go would take them for pointers.
static uintptr_t last_handle = 1 << 20;

void paper_card(const char *name, int major, int minor, int multiprocessors, size_t memory) {
	strncpy(card.name, name, sizeof card.name - 1);
	card.major = major, card.minor = minor, card.multiprocessors = multiprocessors, card.memory = memory;
}

void paper_pass(double t) { seconds += t; }

static int ok(void) { return 0; }
static int handle(void **to) { return *to = (void *)(last_handle += 16), 0; }

static int driver_version(int *v) { return *v = 13000, 0; }
static int device_count(int *n) { return *n = 1, 0; }
static int device(int *d, int i) { return *d = i, i != 0; }
static int device_name(char *to, int n, int d) { return (void)d, strncpy(to, card.name, n), 0; }
static int device_memory(size_t *n, int d) { return (void)d, *n = card.memory, 0; }
static int device_attribute(int *v, int a, int d) {
	(void)d;
	*v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? card.major
	     : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? card.minor
	     : a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? card.multiprocessors
	                                                         : 0;
	return 0;
}
static int error_text(int code, const char **s) { return (void)code, *s = "an error of a card on paper", 0; }

// Sizes of allocations are stored under their addresses, which are far apart.
enum { places = 1 << 16 };
static struct {
	uintptr_t at;
	size_t n;
} held[places];
static int alloc(uintptr_t *to, size_t n) {
	if (card.used + n > card.memory) return CUDA_ERROR_OUT_OF_MEMORY;
	for (int i = 0; i < places; i++)
		if (!held[i].at) {
			*to = held[i].at = last = (last + 0xfff) & ~(uintptr_t)0xfff;
			last += held[i].n = n;
			return card.used += n, 0;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}
static int release(uintptr_t at) {
	for (int i = 0; i < places; i++)
		if (held[i].at == at) {
			held[i].at = 0;
			return card.used -= held[i].n, 0;
		}
	return CUDA_ERROR_INVALID_VALUE;
}
static int memory(size_t *free, size_t *total) { return *free = card.memory - card.used, *total = card.memory, 0; }
static int host_alloc(void **to, size_t n) { return *to = calloc(n, 1), *to ? 0 : CUDA_ERROR_OUT_OF_MEMORY; }
static int host_free(void *p) { return free(p), 0; }
static int event(double **to) { return *to = calloc(1, sizeof **to), 0; }
static int event_destroy(double *e) { return free(e), 0; }
static int event_record(double *e) { return *e = seconds, 0; }
static int event_elapsed(float *ms, const double *from, const double *to) { return *ms = 1e3 * (*to - *from), 0; }
static int second_handle(void *of, void **to) { return (void)of, handle(to); }
static int graph_instantiate(void **to) { return handle(to); }

static int nvrtc_version(int *major, int *minor) { return *major = 13, *minor = 0; }
static int nvrtc_count(int *n) { return *n = 1, 0; }
static int nvrtc_archs(int *a) { return *a = 10 * card.major + card.minor, 0; }
static int nvrtc_size(void *p, size_t *n) { return (void)p, *n = 1, 0; }
static int nvrtc_log_size(void *p, size_t *n) { return (void)p, *n = 0; }
static int nvrtc_code(void *p, char *to) { return (void)p, *to = 0; }

static size_t cudnn_version(void) { return 92800; }
static size_t cudnn_cudart(void) { return 13000; }
static void cudnn_error(char *s, size_t n) { if (n) *s = 0; }

// Each graph has one engine, without a workspace.
static int cudnn_get(void *d, int name, int type, int64_t asked, int64_t *n, void *to) {
	(void)d, (void)type;
	int one = name == CUDNN_ATTR_ENGINEHEUR_RESULTS || name == CUDNN_ATTR_ENGINECFG_ENGINE;
	int number = name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX || name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE ||
		name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE;
	if (n) *n = one || number;
	if (number && asked > 0) *(int64_t *)to = 0;
	return 0;
}
static int blas_property(int what, int *v) { return (void)what, *v = 13, 0; }

#define IS(name, f) {#name, (void *)f}
static const struct {
	const char *name;
	void *f;
} functions[] = {
	IS(cuInit, ok), IS(cuDriverGetVersion, driver_version), IS(cuGetErrorName, error_text),
		IS(cuGetErrorString, error_text),
	IS(cuDeviceGetCount, device_count), IS(cuDeviceGet, device), IS(cuDeviceGetName, device_name),
		IS(cuDeviceTotalMem_v2, device_memory),
	IS(cuDeviceGetAttribute, device_attribute), IS(cuDevicePrimaryCtxRetain, handle),
		IS(cuDevicePrimaryCtxRelease_v2, ok),
	IS(cuCtxSetCurrent, ok), IS(cuCtxSynchronize, ok), IS(cuStreamCreate, handle), IS(cuStreamDestroy_v2, ok),
		IS(cuStreamSynchronize, ok),
	IS(cuStreamWaitEvent, ok), IS(cuMemAlloc_v2, alloc), IS(cuMemFree_v2, release), IS(cuMemGetInfo_v2, memory),
	IS(cuMemHostAlloc, host_alloc), IS(cuMemFreeHost, host_free), IS(cuMemcpyHtoDAsync_v2, ok),
		IS(cuMemcpyDtoHAsync_v2, ok),
	IS(cuMemcpyDtoDAsync_v2, ok), IS(cuMemsetD8Async, ok), IS(cuEventCreate, event),
		IS(cuEventDestroy_v2, event_destroy),
	IS(cuEventRecord, event_record), IS(cuEventSynchronize, ok), IS(cuEventElapsedTime, event_elapsed),
		IS(cuModuleLoadData, handle),
	IS(cuModuleUnload, ok), IS(cuModuleGetFunction, handle), IS(cuFuncLoad, ok), IS(cuLaunchKernel, ok),
	IS(cuStreamBeginCapture_v2, ok), IS(cuStreamEndCapture, second_handle),
		IS(cuGraphInstantiateWithFlags, graph_instantiate),
	IS(cuGraphDestroy, ok), IS(cuGraphExecDestroy, ok), IS(cuGraphLaunch, ok),
	IS(nvrtcVersion, nvrtc_version), IS(nvrtcGetNumSupportedArchs, nvrtc_count),
		IS(nvrtcGetSupportedArchs, nvrtc_archs),
	IS(nvrtcCreateProgram, handle), IS(nvrtcDestroyProgram, ok), IS(nvrtcCompileProgram, ok),
		IS(nvrtcGetCUBINSize, nvrtc_size),
	IS(nvrtcGetCUBIN, nvrtc_code), IS(nvrtcGetProgramLogSize, nvrtc_log_size),
	IS(cublasCreate_v2, handle), IS(cublasDestroy_v2, ok), IS(cublasSetStream_v2, ok), IS(cublasSetWorkspace_v2, ok),
	IS(cublasSgemm_v2, ok), IS(cublasGemmEx, ok), IS(cublasGemmStridedBatchedEx, ok),
		IS(cublasGetProperty, blas_property),
	IS(cudnnGetVersion, cudnn_version), IS(cudnnGetCudartVersion, cudnn_cudart),
		IS(cudnnGetLastErrorString, cudnn_error),
	IS(cudnnCreate, handle), IS(cudnnDestroy, ok), IS(cudnnSetStream, ok), IS(cudnnBackendCreateDescriptor, second_handle),
	IS(cudnnBackendDestroyDescriptor, ok), IS(cudnnBackendSetAttribute, ok),
		IS(cudnnBackendGetAttribute, cudnn_get),
	IS(cudnnBackendFinalize, ok), IS(cudnnBackendExecute, ok),
};

void *paper_lookup(const char *name) {
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name)) return functions[i].f;
	return NULL;
}
