// RNA's work on float32 vectors: differences and sums in float64; each vector is read once. Vectors consist of pieces
// in GPU memory or in pinned host memory; tables hold their addresses.

typedef unsigned long long u64;

// A residual 2^-exp (x - y), or 2^-exp x when y is null.
struct Residual {
	const float *x, *y;
	long long exp;
};

struct Term {
	const float *vector;
	double coefficient;
};

// residual is element i of r. before caches the element of beforeX that the caller read last.
__device__ double residual(const Residual &r, long long i, const float *&beforeX, double &before) {
	double x = r.x[i], d = x;
	if (r.y) d -= r.y == beforeX ? before : (double)r.y[i];
	beforeX = r.x;
	before = x;
	return r.exp ? scalbn(d, (int)-r.exp) : d;
}

// rna_products multiplies the first of count residuals with each, by spans of n elements: out is [spans, count]. A
// block has one span and reads it for several columns at a time, whose loads overlap.
constexpr int columns = 10, threads = 256;

// Column is a residual. In a chain of iterates its y is the previous column's x.
struct Column {
	const float *x, *y;
	double scale;
	int chained;
};

extern "C" __global__ void __launch_bounds__(256, 4) rna_products(const Residual *residuals, int count, long long n,
	long long span, double *out) {
	__shared__ double cells[columns * threads];
	volatile Column *all = (Column *)cells;  // until the sums replace them; volatile keeps them out of registers
	int lo = blockIdx.y * columns, k = count - lo < columns ? count - lo : columns, self = threadIdx.x;
	if (self <= k) {
		Residual r = residuals[self == 0 ? 0 : lo + self - 1];
		all[self].x = r.x;
		all[self].y = r.y;
		all[self].scale = scalbn(1., (int)-r.exp);
		all[self].chained = self > 1 && r.y && r.y == residuals[lo + self - 2].x;
	}
	__syncthreads();
	double sum[columns] = {};
	long long from = blockIdx.x * span, to = from + span < n ? from + span : n;
#pragma unroll 1
	for (long long i = from + self; i < to; i += threads) {
		float x[columns];
#pragma unroll
		for (int j = 0; j < columns; j++) x[j] = j < k ? all[j + 1].x[i] : 0;
		double own = all[0].x[i];
		if (all[0].y) own -= all[0].y[i];
		own *= all[0].scale;
#pragma unroll
		for (int j = 0; j < columns; j++)
			if (j < k) {
				double d = x[j];
				if (j > 0 && all[j + 1].chained) d -= x[j - 1];
				else if (all[j + 1].y) d -= all[j + 1].y[i];
				sum[j] += own * (d * all[j + 1].scale);
			}
	}
	__syncthreads();
#pragma unroll
	for (int j = 0; j < columns; j++) cells[j * threads + self] = sum[j];
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (self < half)
			for (int j = 0; j < k; j++) cells[j * threads + self] += cells[j * threads + self + half];
		__syncthreads();
	}
	if (self < k) out[(long long)blockIdx.x * count + lo + self] = cells[self * threads];
}

// rna_combine writes elements [from, from + n) of a linear combination to out, rounded once.
extern "C" __global__ void __launch_bounds__(256, 4) rna_combine(const Term *terms, int count, long long from,
	long long n, float *out) {
	long long step = (long long)gridDim.x * blockDim.x;
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		// Adding to zero would lose the sign of -0.
		double sum = count ? terms[0].coefficient * terms[0].vector[from + i] : 0.;
		for (int k = 1; k < count; k++) sum += terms[k].coefficient * terms[k].vector[from + i];
		out[i] = (float)sum;
	}
}

// largest returns the largest value of a block's threads to thread 0. It uses 32 cells of shared memory.
__device__ u64 largest(u64 v, u64 *cells) {
	for (int d = 16; d > 0; d /= 2) {
		u64 other = __shfl_down_sync(0xffffffffu, v, d);
		v = other > v ? other : v;
	}
	int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
	if (lane == 0) cells[warp] = v;
	__syncthreads();
	if (warp == 0) {
		v = lane < (int)(blockDim.x >> 5) ? cells[lane] : 0;
		for (int d = 16; d > 0; d /= 2) {
			u64 other = __shfl_down_sync(0xffffffffu, v, d);
			v = other > v ? other : v;
		}
	}
	return v;
}

// Result of rna_check. The bits of non-negative floats sort like their values, with NaN above infinity.
struct Found {
	u64 first;  // index of the first element that is not finite, all ones without one
	u64 most;   // bits of the largest absolute value
};

// rna_check checks n elements; the first of them is element from of the vector.
extern "C" __global__ void __launch_bounds__(256, 4) rna_check(const float *x, long long from, long long n,
	Found *found) {
	__shared__ u64 cells[32];
	long long step = (long long)gridDim.x * blockDim.x;
	unsigned most = 0;
	u64 first = ~0ull;
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		unsigned bits = __float_as_uint(x[i]) & 0x7fffffffu;
		most = bits > most ? bits : most;
		if (bits >= 0x7f800000u && first == ~0ull) first = (u64)(from + i);
	}
	if (first != ~0ull) atomicMin(&found->first, first);
	u64 m = largest(most, cells);
	if (threadIdx.x == 0) atomicMax(&found->most, m);
}

// rna_max finds the bits of the largest absolute value of n elements of a residual, starting at from.
extern "C" __global__ void __launch_bounds__(256, 4) rna_max(const Residual *r, long long from, long long n,
	Found *found) {
	__shared__ u64 cells[32];
	long long step = (long long)gridDim.x * blockDim.x;
	u64 most = 0;
#pragma unroll 1
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
		const float *beforeX = nullptr;
		double before = 0;
		u64 bits = (u64)__double_as_longlong(residual(*r, from + i, beforeX, before)) & 0x7fffffffffffffffull;
		most = bits > most ? bits : most;
	}
	most = largest(most, cells);
	if (threadIdx.x == 0) atomicMax(&found->most, most);
}
