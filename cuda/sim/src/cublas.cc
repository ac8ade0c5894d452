// cuBLAS on the CPU: column-major, products of long columns summed by blocks.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim.h"

extern "C" {
#include <cublas_v2.h>
}

struct cublasContext {
	CUstream stream;
	CUcontext context;
};

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
	std::function<std::string()> work = [f = std::move(f)] {
		f();
		return std::string();
	};
	return status(simQueue(h->stream, &work));
}

bool bad(cublasOperation_t o) { return o != CUBLAS_OP_N && o != CUBLAS_OP_T && o != CUBLAS_OP_C; }

template <class T>
cublasStatus_t gemm(const char *name, cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c, int ldc) {
	if (cublasStatus_t r = begin(name, h)) return r;
	if (bad(ta) || bad(tb) || m < 0 || n < 0 || k < 0) return CUBLAS_STATUS_INVALID_VALUE;
	if (lda < std::max(1, ta ? k : m) || ldb < std::max(1, tb ? n : k) || ldc < std::max(1, m)) return CUBLAS_STATUS_INVALID_VALUE;
	T al = *alpha, be = *beta;
	return queue(h, [=] { product<T>(m, n, k, al, op(a, ta, lda), op(b, tb, ldb), be, {c, 1, ldc}); });
}

template <class T>
cublasStatus_t gemv(const char *name, cublasHandle_t h, cublasOperation_t t, int m, int n, const T *alpha, const T *a, int lda, const T *x, int dx, const T *beta, T *y, int dy) {
	if (cublasStatus_t r = begin(name, h)) return r;
	if (bad(t) || m < 0 || n < 0 || lda < std::max(1, m) || dx < 1 || dy < 1) return CUBLAS_STATUS_INVALID_VALUE;
	T al = *alpha, be = *beta;
	int rows = t ? n : m, inner = t ? m : n;
	return queue(h, [=] { product<T>(rows, 1, inner, al, op(a, t, lda), {x, dx, 0}, be, {y, dy, 0}); });
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
	if (cuCtxGetCurrent(&c) != CUDA_SUCCESS || !c) return CUBLAS_STATUS_NOT_INITIALIZED;
	*h = new cublasContext{nullptr, nullptr};
	handles.insert(*h);
	simHandle("cuBLAS handles", &(*h)->context, 1);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
	LOCK;
	cublasStatus_t r = begin("cublasDestroy_v2", h);
	if (!handles.count(h)) return CUBLAS_STATUS_NOT_INITIALIZED;
	handles.erase(h);
	simHandle("cuBLAS handles", &h->context, -1);
	delete h;
	return r;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t h, int *v) {
	LOCK;
	if (cublasStatus_t r = begin("cublasGetVersion_v2", h)) return r;
	*v = 120900;
	return CUBLAS_STATUS_SUCCESS;
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
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
	LOCK;
	return gemm("cublasDgemm_v2", h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
cublasStatus_t cublasSgemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
	LOCK;
	return gemm("cublasSgemm_v2", h, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
cublasStatus_t cublasDgemv_v2(cublasHandle_t h, cublasOperation_t t, int m, int n, const double *alpha, const double *a, int lda, const double *x, int dx, const double *beta, double *y, int dy) {
	LOCK;
	return gemv("cublasDgemv_v2", h, t, m, n, alpha, a, lda, x, dx, beta, y, dy);
}

}  // extern "C"
