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
	*count = 40 + inits;
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

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) {
	*handle = (cublasHandle_t)&cublasCreate_v2;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
	return handle == (cublasHandle_t)&cublasCreate_v2 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
	const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
	int ok = handle == (cublasHandle_t)&cublasCreate_v2 && ta == CUBLAS_OP_T && tb == CUBLAS_OP_N && m == 1 && n == 2 &&
		k == 3 && *alpha == 4.5 && *a == 5 && lda == 6 && *b == 7 && ldb == 8 && *beta == 9.5 && *c == 10 && ldc == 11;
	return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

#endif
