// Tests of the stand-in's floats of 16 bits, and of the calls that cuBLAS refuses.
#include "selftest.h"

// Every half is exact as a float, and floats between two of them become the nearest, or the even one; bfloat16
// likewise.
static void halves() {
	int bad = 0;
	for (unsigned h = 0; h < 0x7c00; h++) {
		float f = sim::fromHalf(h), next = h < 0x7bff ? sim::fromHalf(h + 1) : 65536.f, middle = (f + next) / 2;
		double want = h < 0x400 ? ldexp(h, -24) : ldexp(1024 + (h & 0x3ff), (int)(h >> 10) - 25);
		bad += f != want || sim::fromHalf(h | 0x8000) != -want || sim::toHalf(f) != h || sim::toHalf(-f) != (h | 0x8000);
		bad += sim::toHalf(middle) != h + h % 2 || sim::toHalf(nextafterf(middle, 0)) != h || sim::toHalf(nextafterf(middle, next)) != h + 1;
	}
	for (unsigned h = 0; h < 0x7f80; h++) {
		float f = sim::fromBFloat16(h), middle = sim::bitsFloat(h << 16 | 0x8000);
		bad += sim::toBFloat16(f) != h || sim::toBFloat16(-f) != (h | 0x8000);
		bad += sim::toBFloat16(middle) != h + h % 2 || sim::toBFloat16(nextafterf(middle, 0)) != h;
	}
	CHECK(bad == 0);
	CHECK(sim::toHalf(INFINITY) == 0x7c00 && sim::toHalf(-1e9f) == 0xfc00 && isinf(sim::fromHalf(0xfc00)) && isnan(sim::fromHalf(sim::toHalf(NAN))));
	CHECK(sim::toBFloat16(INFINITY) == 0x7f80 && isnan(sim::fromBFloat16(sim::toBFloat16(NAN))));
	CHECK(sim::tf32(1 + 0x1p-11f) == 1 && sim::tf32(1 + 0x3p-11f) == 1 + 0x1p-9f && isnan(sim::tf32(NAN)) && isinf(sim::tf32(INFINITY)));
}

static void products() {
	cublasHandle_t h;
	IS(cublasCreate_v2(&h), 0);
	char *p = (char *)filled(std::vector<float>(64));
	float one = 1, zero = 0;
	auto multiply = [&](char *a, cudaDataType at, char *b, cudaDataType bt, char *c, cudaDataType ct, cublasComputeType_t compute) {
		return cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, at, 2, b, bt, 2, &zero, c, ct, 2, compute, CUBLAS_GEMM_DEFAULT);
	};
	const cublasComputeType_t plain = CUBLAS_COMPUTE_32F, tf32 = CUBLAS_COMPUTE_32F_FAST_TF32;
	IS(multiply(p, CUDA_R_16F, p, CUDA_R_16F, p + 64, CUDA_R_32F, plain), 0);
	IS(multiply(p, CUDA_R_16BF, p, CUDA_R_16BF, p + 64, CUDA_R_16BF, plain), 0);
	IS(multiply(p, CUDA_R_32F, p, CUDA_R_32F, p + 64, CUDA_R_32F, tf32), 0);
	IS(multiply(p, CUDA_R_16F, p, CUDA_R_16BF, p + 64, CUDA_R_32F, plain), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(multiply(p, CUDA_R_16F, p, CUDA_R_16F, p + 64, CUDA_R_16BF, plain), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(multiply(p, CUDA_R_32F, p, CUDA_R_32F, p + 64, CUDA_R_16F, plain), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(multiply(p, CUDA_R_16F, p, CUDA_R_16F, p + 64, CUDA_R_32F, tf32), CUBLAS_STATUS_NOT_SUPPORTED);
	IS(multiply(p + 1, CUDA_R_16F, p, CUDA_R_16F, p + 64, CUDA_R_32F, plain), CUBLAS_STATUS_INVALID_VALUE);
	IS(multiply(p, CUDA_R_16F, p, CUDA_R_16F, p + 66, CUDA_R_32F, plain), CUBLAS_STATUS_INVALID_VALUE);
	IS(cuCtxSynchronize(), 0);
	IS(cublasDestroy_v2(h), 0);
	IS(cuMemFree((CUdeviceptr)p), 0);
}

void precisions() {
	halves();
	CUcontext c;
	IS(cuCtxCreate(&c, 0, 0), 0);
	products();
	IS(cuCtxDestroy(c), 0);
	CHECK(!strcmp(simLeaks(), ""));
}
