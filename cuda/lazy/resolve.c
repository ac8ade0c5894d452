//go:build gpu

// Support for the trampolines: opens libraries and finds a function at its first call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include "_cgo_export.h"
#include "lazy.h"

enum { DRIVER, CUBLAS, NVRTC, CUDNN, NCCL, NVML, LIBRARIES }; // as in library.go

static const struct {
	const char *name;
	int library;
} symbols[] = {
#define F(library, name) {#name, library},
#include "symbols.h"
#undef F
};

extern void *lazy_slots[] __attribute__((visibility("hidden")));
static void *handles[LIBRARIES];
static void *(*provided)(const char *name); // replaces all libraries

void *lazy_open(const char *path, char *why, size_t n) {
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		const char *e = dlerror();
		snprintf(why, n, "%s", e ? e : "unknown");
	}
	return handle;
}

const char *lazy_path(void *handle) {
	struct link_map *map;
	return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "";
}

int lazy_init(void *handle, int *version) {
	int (*get)(int *) = (int (*)(int *))dlsym(handle, "cuDriverGetVersion");
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(handle, "cuInit");
	*version = 0;
	if (!get || !init)
		return 500; // CUDA_ERROR_NOT_FOUND
	get(version);
	return init(0);
}

// lazy_oldest returns 10 times the lowest compute capability of the GPUs, 0 if it is unknown.
int lazy_oldest(void *handle) {
	int (*count)(int *) = (int (*)(int *))dlsym(handle, "cuDeviceGetCount");
	int (*attribute)(int *, int, int) = (int (*)(int *, int, int))dlsym(handle, "cuDeviceGetAttribute");
	int n = 0, oldest = 0;
	if (!count || !attribute || count(&n) != 0)
		return 0;
	for (int i = 0; i < n; i++) {
		int major, minor; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
		if (attribute(&major, 75, i) == 0 && attribute(&minor, 76, i) == 0 && (!oldest || 10 * major + minor < oldest))
			oldest = 10 * major + minor;
	}
	return oldest;
}

const char *lazy_error_name(void *handle, int code) {
	int (*get)(int, const char **) = (int (*)(int, const char **))dlsym(handle, "cuGetErrorName");
	const char *name;
	return get && get(code, &name) == 0 && name ? name : "an error";
}

size_t lazy_cudart(void *cudnn) {
	size_t (*get)(void) = (size_t (*)(void))dlsym(cudnn, "cudnnGetCudartVersion");
	return get ? get() : 0;
}

void lazy_publish(int library, void *handle) {
	__atomic_store_n(&handles[library], handle, __ATOMIC_RELEASE);
}

int lazy_provide(void *lookup) {
	for (int i = 0; i < LIBRARIES; i++)
		if (handles[i] && handles[i] != lookup)
			return 0;
	provided = (void *(*)(const char *))lookup;
	for (int i = 0; i < LIBRARIES; i++)
		lazy_publish(i, lookup);
	return 1;
}

// Functions that are called if a library or one of its functions is missing.
static int driver_missing(void) { return 100; }     // CUDA_ERROR_NO_DEVICE
static int driver_lacks(void) { return 500; }       // CUDA_ERROR_NOT_FOUND
static int cublas_missing(void) { return 1; }       // CUBLAS_STATUS_NOT_INITIALIZED
static int cublas_lacks(void) { return 15; }        // CUBLAS_STATUS_NOT_SUPPORTED
static int nvrtc_missing(void) { return 11; }       // NVRTC_ERROR_INTERNAL_ERROR
static int cudnn_missing(void) { return 1001; }     // CUDNN_STATUS_NOT_INITIALIZED
static size_t cudnn_no_version(void) { return 0; }  // cudnnGetVersion, cudnnGetCudartVersion

static int nccl_missing(void) { return 2; }         // ncclSystemError
static int nccl_lacks(void) { return 3; }           // ncclInternalError
static int nvml_missing(void) { return 12; }        // NVML_ERROR_LIBRARY_NOT_FOUND
static int nvml_lacks(void) { return 13; }          // NVML_ERROR_FUNCTION_NOT_FOUND
static const char *nccl_no_text(void) { return ""; } // ncclGetErrorString, ncclGetLastError, nvmlErrorString
static void *const missing[] = {driver_missing, cublas_missing, nvrtc_missing, cudnn_missing, nccl_missing,
	nvml_missing};
static void *const lacks[] = {driver_lacks, cublas_lacks, nvrtc_missing, cudnn_missing, nccl_lacks,
	nvml_lacks};

// fallback is the replacement of symbol i.
static void *fallback(long i, void *const *of) {
	const char *name = symbols[i].name;
	if (strcmp(name, "cudnnGetVersion") == 0 || strcmp(name, "cudnnGetCudartVersion") == 0)
		return (void *)cudnn_no_version;
	if (strcmp(name, "ncclGetErrorString") == 0 || strcmp(name, "ncclGetLastError") == 0 ||
		strcmp(name, "nvmlErrorString") == 0)
		return (void *)nccl_no_text;
	return of[symbols[i].library];
}

// lazy_resolve returns the address of symbol i. Only a function that was found is cached: the library may appear later.
__attribute__((visibility("hidden"))) void *lazy_resolve(long i) {
	int library = symbols[i].library;
	void *handle = __atomic_load_n(&handles[library], __ATOMIC_ACQUIRE);
	if (!handle) {
		lazyLoad(library);
		handle = __atomic_load_n(&handles[library], __ATOMIC_ACQUIRE);
	}
	if (!handle)
		return fallback(i, missing);
	void *f = provided ? provided(symbols[i].name) : dlsym(handle, symbols[i].name);
	if (!f)
		return fallback(i, lacks);
	__atomic_store_n(&lazy_slots[i], f, __ATOMIC_RELEASE);
	return f;
}

// gorgonia.org/cu calls this in its init and exits when it fails. The driver's cuInit runs when the driver is loaded.
__attribute__((visibility("hidden"))) int cuInit(unsigned flags) {
	(void)flags;
	return 0;
}
