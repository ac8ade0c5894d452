// cuBLAS on the CPU: column-major, products of long columns summed by blocks. Operands of 16-bit products, and of
// products that allow TensorFloat-32, are converted first.
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "device.h"
#include "sim.h"

extern "C" {
#include <cublas_v2.h>
}

struct cublasContext {
	CUstream stream;
	CUcontext context;
	void *space;  // scratch of the caller's
	size_t bytes;
	long taken;  // of the device's memory
};

// A handle takes memory, as do products whose scratch is not the caller's.
constexpr long handleBytes = 64 << 10, scratchBytes = 4 << 20;

namespace {

std::set<cublasHandle_t> handles;

// A Matrix is column-major, op applied: element (i, j) is at i·row + j·column.
template <class T> struct Matrix {
	T *p;
	long row, column;
	T &at(long i, long j) const { return p[i * row + j * column]; }
};

template <class T> Matrix<const T> op(const T *p, cublasOperation_t o, int ld) {
	return o == CUBLAS_OP_N ? Matrix<const T>{p, 1, ld} : Matrix<const T>{p, ld, 1};
}

// dot sums n products by blocks, in double.
template <class T> double dot(const T *a, long da, const T *b, long db, long n) {
	if (n <= 64) {
		double s[4] = {};
		for (long i = 0; i < n; i++) s[i % 4] += (double)a[i * da] * b[i * db];
		return (s[0] + s[1]) + (s[2] + s[3]);
	}
	long half = (n / 2 + 63) / 64 * 64;
	return dot(a, da, b, db, half) + dot(a + half * da, da, b + half * db, db, n - half);
}

template <class T> void product(int m, int n, int k, T alpha, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c) {
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double s = dot(a.p + i * a.row, a.column, b.p + j * b.column, b.row, k);
			T &to = c.at(i, j);
			to = beta == 0 ? (T)(alpha * s) : (T)(alpha * s + beta * to);  // with β = 0, C is not read
		}
}

cublasStatus_t status(int code) { return code == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED; }

// begin counts a call and checks its handle.
cublasStatus_t begin(const char *name, cublasHandle_t h) {
	int code = simEnter(name);
	if (simDead()) return CUBLAS_STATUS_EXECUTION_FAILED;
	if (code) return (cublasStatus_t)code;
	return handles.count(h) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t queue(cublasHandle_t h, std::function<void()> f) {
	if (!h->space && h->taken == handleBytes) {
		if (simTake(h->context, scratchBytes)) return CUBLAS_STATUS_ALLOC_FAILED;
		h->taken += scratchBytes;
	}
	void *space = h->space;
	size_t lost = std::min<size_t>(h->bytes, 4096);
	std::function<std::string()> work = [f = std::move(f), space, lost] {
		if (space) memset(space, 0xff, lost);
		f();
		return std::string();
	};
	return status(simQueue(h->stream, &work));
}

bool bad(cublasOperation_t o) { return o != CUBLAS_OP_N && o != CUBLAS_OP_T && o != CUBLAS_OP_C; }

// moves counts the bytes of a product of elements, and of its result.
void moves(size_t element, size_t to, size_t m, size_t n, size_t k, bool adds, size_t batch = 1) { simMove(batch * (element * k * (m + n) + (adds ? to * m * n : 0)), batch * to * m * n); }

template <class T>
cublasStatus_t gemm(const char *name, cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {
	if (cublasStatus_t r = begin(name, h)) return r;
	if (bad(ta) || bad(tb) || m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
	if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
	T al = *alpha, be = *beta;
	return queue(h, [=] {
		moves(sizeof(T), sizeof(T), m, n, k, be != 0);
		product<T>(m, n, k, al, op(a, ta, lda), op(b, tb, ldb), be, {c, 1, ldc});
	});
}

template <class T>
cublasStatus_t gemv(const char *name, cublasHandle_t h, cublasOperation_t t, int m, int n, const T *alpha, const T *a, int lda, const T *x, int dx, const T *beta, T *y, int dy) {
	if (cublasStatus_t r = begin(name, h)) return r;
	if (bad(t) || m < 0 || n < 0 || lda < std::max(1, m) || dx < 1 || dy < 1) return CUBLAS_STATUS_INVALID_VALUE;
	T al = *alpha, be = *beta;
	int rows = t ? n : m, inner = t ? m : n;
	return queue(h, [=] { product<T>(rows, 1, inner, al, op(a, t, lda), {x, dx, 0}, be, {y, dy, 0}); });
}

// widen reads a rows×columns matrix as float32, without the gaps between its columns.
std::vector<float> widen(const void *p, cudaDataType type, int rows, int columns, int ld, bool tf32) {
	std::vector<float> out((size_t)rows * columns);
	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++) {
			size_t at = (size_t)j * ld + i;
			float f = type == CUDA_R_32F ? ((const float *)p)[at] : type == CUDA_R_16F ? sim::fromHalf(((const uint16_t *)p)[at]) : sim::fromBFloat16(((const uint16_t *)p)[at]);
			out[(size_t)j * rows + i] = tf32 ? sim::tf32(f) : f;
		}
	return out;
}

bool narrow(cudaDataType t) { return t == CUDA_R_16F || t == CUDA_R_16BF; }

cublasStatus_t gemmEx(const char *name, cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb, const void *beta, void *c, cudaDataType ct, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo, int batch = 1, long long sa = 0, long long sb = 0, long long sc = 0) {
	if (cublasStatus_t r = begin(name, h)) return r;
	if (batch < 0 || sc < 0 || (batch > 1 && sc < (long long)ldc * n)) return CUBLAS_STATUS_INVALID_VALUE;
	if (bad(ta) || bad(tb) || m < 0 || n < 0 || k < 0 || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
	if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
	bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
	if (at != bt || (at != CUDA_R_32F && !narrow(at)) || (ct != CUDA_R_32F && ct != at) || (compute != CUBLAS_COMPUTE_32F && !tf32) || (tf32 && at != CUDA_R_32F))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (algo != CUBLAS_GEMM_DEFAULT) return CUBLAS_STATUS_NOT_SUPPORTED;
	uintptr_t in = narrow(at) ? 2 : 4, out = narrow(ct) ? 2 : 4;
	if ((uintptr_t)a % in || (uintptr_t)b % in || (uintptr_t)c % out) return CUBLAS_STATUS_INVALID_VALUE;
	float al = *(const float *)alpha, be = *(const float *)beta;
	return queue(h, [=] {
		moves(in, out, m, n, k, be != 0, batch);
		for (int l = 0; l < batch; l++) {
			const char *pa = (const char *)a + l * sa * (long long)in, *pb = (const char *)b + l * sb * (long long)in;
			char *pc = (char *)c + l * sc * (long long)out;
			std::vector<float> x = widen(pa, at, ta ? k : m, ta ? m : k, lda, tf32), y = widen(pb, bt, tb ? n : k, tb ? k : n, ldb, tf32);
			std::vector<float> to = be == 0 ? std::vector<float>((size_t)m * n) : widen(pc, ct, m, n, ldc, false);
			product<float>(m, n, k, al, op(x.data(), ta, std::max(1, ta ? k : m)), op(y.data(), tb, std::max(1, tb ? n : k)), be, {to.data(), 1, m});
			for (int j = 0; j < n; j++)
				for (int i = 0; i < m; i++) {
					float f = to[(size_t)j * m + i];
					size_t w = (size_t)j * ldc + i;
					if (ct == CUDA_R_32F) ((float *)pc)[w] = f;
					else ((uint16_t *)pc)[w] = ct == CUDA_R_16F ? sim::toHalf(f) : sim::toBFloat16(f);
				}
		}
	});
}

}  // namespace

#define LOCK std::lock_guard<std::recursive_mutex> held(*lock())
static std::recursive_mutex *lock() {
	static std::recursive_mutex m;
	return &m;
}

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t *h) {
	LOCK;
	if (int code = simEnter("cublasCreate_v2")) return simDead() ? CUBLAS_STATUS_NOT_INITIALIZED : (cublasStatus_t)code;
	CUcontext c;
	if (cuCtxGetCurrent(&c) != CUDA_SUCCESS || !c || !simFirstContext()) return CUBLAS_STATUS_NOT_INITIALIZED;
	if (simTake(c, handleBytes)) return CUBLAS_STATUS_ALLOC_FAILED;
	*h = new cublasContext{nullptr, nullptr, nullptr, 0, handleBytes};
	handles.insert(*h);
	simHandle("cuBLAS handles", &(*h)->context, 1);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
	LOCK;
	cublasStatus_t r = begin("cublasDestroy_v2", h);
	simHangs("cublasDestroy_v2");
	if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
	handles.erase(h);
	simHandle("cuBLAS handles", &h->context, -1);
	simTake(h->context, -h->taken);
	delete h;
	return r;
}

cublasStatus_t cublasGetProperty(libraryPropertyType what, int *v) {
	LOCK;
	if (simEnter("cublasGetProperty")) return CUBLAS_STATUS_INVALID_VALUE;
	const int version[] = {12, 9, 0};
	if (what < 0 || what > 2) return CUBLAS_STATUS_INVALID_VALUE;
	*v = version[what];
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t h, CUstream s) {
	LOCK;
	if (cublasStatus_t r = begin("cublasSetStream_v2", h)) return r;
	h->stream = s;
	h->space = nullptr;  // the real one goes back to its own memory, too
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *space, size_t bytes) {
	LOCK;
	if (cublasStatus_t r = begin("cublasSetWorkspace_v2", h)) return r;
	if ((uintptr_t)space % 256) return CUBLAS_STATUS_INVALID_VALUE;
	h->space = bytes ? space : nullptr;
	h->bytes = bytes;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
	LOCK;
	return gemm("cublasSgemm_v2", h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType at, int lda, const void *b, cudaDataType bt, int ldb, const void *beta, void *c, cudaDataType ct, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
	LOCK;
	return gemmEx("cublasGemmEx", h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, algo);
}
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void *alpha, const void *a, cudaDataType at, int lda, long long sa, const void *b, cudaDataType bt, int ldb, long long sb, const void *beta, void *c, cudaDataType ct, int ldc, long long sc, int batch, cublasComputeType_t compute, cublasGemmAlgo_t algo) {
	LOCK;
	return gemmEx("cublasGemmStridedBatchedEx", h, ta, tb, m, n, k, alpha, a, at, lda, b, bt, ldb, beta, c, ct, ldc, compute, algo, batch, sa, sb, sc);
}
cublasStatus_t cublasDgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const double *alpha, const double *a, int lda, const double *x, int dx, const double *beta, double *y, int dy) {
	LOCK;
	return gemv("cublasDgemv_v2", h, t, m, n, alpha, a, lda, x, dx, beta, y, dy);
}

}  // extern "C"
