// A libcuda and libcublas for the tests of the trampolines: they succeed when every argument arrives as it was passed.
// Built twice, as libcuda.so.1 and, with -DCUBLAS, as libcublas.so.12.
#include <cublas_v2.h>
#include <stdlib.h>
#include <string.h>

#ifndef CUBLAS

static int number(const char *variable, int otherwise) {
	const char *s = getenv(variable);
	return s ? atoi(s) : otherwise;
}

static int inits;

CUresult cuInit(unsigned int flags) {
	inits++;
	return flags ? CUDA_ERROR_INVALID_VALUE : (CUresult)number("FAKE_INIT", 0);
}

CUresult cuDriverGetVersion(int *version) {
	*version = number("FAKE_VERSION", 12090);
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
	*name = error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE" : NULL;
	return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
	const char *loading = getenv("CUDA_MODULE_LOADING");
	*count = 40 + inits + (loading && !strcmp(loading, "LAZY") ? 0 : 100);
	return CUDA_SUCCESS;
}

// Floating-point arguments.
CUresult cuTexRefSetMipmapLevelClamp(CUtexref ref, float low, float high) {
	return !ref && low == 1.5f && high == -2.25f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// More arguments than registers.
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
	unsigned shared, CUstream stream, void **params, void **extra) {
	int ok = !f && gx == 1 && gy == 2 && gz == 3 && bx == 4 && by == 5 && bz == 6 && shared == 7 && !stream &&
		*(int *)params[0] == 8 && *(double *)params[1] == 9.5 && !extra;
	return ok ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

#else

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value) {
	*value = 40 + type;
	return CUBLAS_STATUS_SUCCESS;
}

#endif
