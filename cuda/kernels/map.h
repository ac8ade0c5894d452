// Support for sources generated from expressions, after store.h: elements of operands, random numbers, and functions
// that treat NaN and zeros as package expr does.

// Place is the place of a result's element: sample, channel and pixel.
struct Place { unsigned n, c, p; };
// Extents are a tensor's channels and pixels, and which of them is last in memory.
struct Extents {
	unsigned channels, pixels;
	bool last;
};
__device__ Place placeOf(unsigned i, Extents e) {
	unsigned inner = e.last ? e.channels : e.pixels, a = i % inner, b = i / inner;
	unsigned outer = e.last ? e.pixels : e.channels, d = b % outer;
	return {b / outer, e.last ? a : d, e.last ? d : a};
}
// step advances to the next place in memory.
__device__ void step(Place &q, Extents e) {
	if (e.last) {
		if (++q.c < e.channels) return;
		q.c = 0;
		if (++q.p == e.pixels) q.p = 0, q.n++;
	} else {
		if (++q.p < e.pixels) return;
		q.p = 0;
		if (++q.c == e.channels) q.c = 0, q.n++;
	}
}

// Stride is an operand's strides along samples, channels and pixels, 0 along an axis where it is repeated.
struct Stride { unsigned n, c, p; };
__device__ unsigned offset(Stride s, Place q) { return s.n * q.n + s.c * q.c + s.p * q.p; }

struct alignas(16) Pack4 { float v[4]; };

// take reads N consecutive elements, by 16 bytes if N is more than 1.
template <int N> __device__ void take(const float *x, float (&a)[N]) {
	if constexpr (N == 1) {
		a[0] = x[0];
	} else {
#pragma unroll
		for (int j = 0; j < N; j += 4) {
			Pack4 k = *(const Pack4 *)(x + j);
#pragma unroll
			for (int i = 0; i < 4; i++) a[j + i] = k.v[i];
		}
	}
}
// give writes N consecutive elements in the same way.
template <int N> __device__ void give(float *y, const float (&a)[N]) {
	if constexpr (N == 1) {
		y[0] = a[0];
	} else {
#pragma unroll
		for (int j = 0; j < N; j += 4) *(Pack4 *)(y + j) = {{a[j], a[j + 1], a[j + 2], a[j + 3]}};
	}
}
#if STORE != 0
template <int N> __device__ void give(T *y, const float (&a)[N]) { store(y, a); }
template <int N> __device__ void take(const T *x, float (&a)[N]) { load(x, a); }
__device__ float wide(float x) { return x; }
#endif

// pick reads elements of a repeated operand. row: all N are channels of one pixel, at multiples of N.
template <int N, class X> __device__ void pick(const X *x, Stride s, Place q, Extents e, bool row, float (&a)[N]) {
	if (row && s.c == 1) return take(x + offset(s, q), a);
#pragma unroll
	for (int j = 0; j < N; j++) {
		a[j] = j > 0 && row ? a[0] : wide(x[offset(s, q)]);  // the same element for all channels
		step(q, e);
	}
}

// Random numbers: Philox-4x32-10, as in package expr. Four consecutive elements share one draw.
struct Random {
	unsigned w[4], block, sample;
	bool drawn;
};
__device__ float draw(Random &r, unsigned low, unsigned high, unsigned step, unsigned sample, unsigned element) {
	if (!r.drawn || r.block != element / 4 || r.sample != sample) {
		r.drawn = true, r.block = element / 4, r.sample = sample;
		unsigned c[4] = {r.block, sample, step, 0};
#pragma unroll
		for (int round = 0; round < 10; round++) {
			unsigned long long a = 0xd2511f53ull * c[0], b = 0xcd9e8d57ull * c[2];
			c[0] = (unsigned)(b >> 32) ^ c[1] ^ low;
			c[2] = (unsigned)(a >> 32) ^ c[3] ^ high;
			c[1] = (unsigned)b;
			c[3] = (unsigned)a;
			low += 0x9e3779b9u;
			high += 0xbb67ae85u;
		}
#pragma unroll
		for (int i = 0; i < 4; i++) r.w[i] = c[i];
	}
	unsigned e = element % 4;
	unsigned word = e == 0 ? r.w[0] : e == 1 ? r.w[1] : e == 2 ? r.w[2] : r.w[3];
	return (word >> 8) * 0x1p-24f;
}

__device__ float least(float a, float b) {
	if (a == b) return __uint_as_float(__float_as_uint(a) | __float_as_uint(b));
	return a < b ? a : b < a ? b : a + b;
}
__device__ float most(float a, float b) {
	if (a == b) return __uint_as_float(__float_as_uint(a) & __float_as_uint(b));
	return a > b ? a : b > a ? b : a + b;
}
__device__ float sigmoid(float a) { return 1 / (1 + expf(-a)); }
