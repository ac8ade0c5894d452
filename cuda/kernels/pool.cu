// Pools of channels-last activations. Gradients are gathered: each element of the input reads the windows that contain
// it, so that sums have a fixed order.

// Windows of kh×kw elements over [N,h,w,c], with strides sh and sw and paddings ph and pw; there are oh×ow windows.
struct Windows { int h, w, oh, ow, c, kh, kw, sh, sw, ph, pw; };
#define WINDOWS int h, int w, int oh, int ow, int c, int kh, int kw, int sh, int sw, int ph, int pw
#define THESE {h, w, oh, ow, c, kh, kw, sh, sw, ph, pw}

// within calls f for the elements of window (i, j) of a plane inside the image, in row-major order, with their place in
// the window.
template <class F> __device__ void within(const T *plane, int i, int j, const Windows &a, F f) {
	int top = i * a.sh - a.ph, left = j * a.sw - a.pw;
	int from = left < 0 ? -left : 0, to = a.w - left < a.kw ? a.w - left : a.kw;
	int row = top < 0 ? -top : 0, last = a.h - top < a.kh ? a.h - top : a.kh;
	plane += ((top + row) * a.w + left + from) * a.c;
#pragma unroll 1
	for (int place = row * a.kw; row < last; row++, place += a.kw, plane += a.w * a.c) {
		const T *x = plane;
#pragma unroll 1
		for (int p = place + from; p < place + to; p++, x += a.c) f(p, x);
	}
}

// channelwise calls f for the n elements, fewer than 2³¹, of [image, row, column, c], V channels at a time if possible,
// with the number of channels, the index and place of the first, and the strides.
struct Strides { Divisor h, w; };
template <class F> __device__ void channelwise(long long n, int height, int width, int c, bool possible,
	const Windows &a, F f) {
	Divisor byC = divisor(c), byW = divisor(width), byH = divisor(height);
	Strides strides = {divisor(a.sh), divisor(a.sw)};
	elements(n, possible && c % V == 0, [=](auto size, long long at) {
		unsigned k = at, col = split(k, byC), row = split(col, byW), image = split(row, byH);
		f(size, (unsigned)at, image, (int)row, (int)col, (int)k, strides);
	});
}

// seen calls f for the windows that contain element (row, col), with the index of the window's first channel and the
// element's place in it.
template <class F> __device__ void seen(unsigned image, int row, int col, const Windows &a, Strides s, F f) {
	int i0 = row + a.ph - a.kh + 1, j0 = col + a.pw - a.kw + 1;
	i0 = i0 <= 0 ? 0 : divided(i0 + a.sh - 1, s.h);
	j0 = j0 <= 0 ? 0 : divided(j0 + a.sw - 1, s.w);
	int i1 = divided(row + a.ph, s.h), j1 = divided(col + a.pw, s.w);
	i1 = i1 < a.oh ? i1 : a.oh - 1;
	j1 = j1 < a.ow ? j1 : a.ow - 1;
	unsigned at = ((image * a.oh + i0) * a.ow + j0) * a.c;
	int place = (row + a.ph - i0 * a.sh) * a.kw + col + a.pw - j0 * a.sw;
#pragma unroll 1
	for (int i = i0; i <= i1; i++, at += a.ow * a.c, place -= a.sh * a.kw) {
		unsigned from = at;
#pragma unroll 1
		for (int j = j0, p = place; j <= j1; j++, p -= a.sw, from += a.c) f(from, p);
	}
}

// Places in windows of at most 256 elements are bytes, otherwise int.
template <int N> struct alignas(N) Bytes { unsigned char v[N]; };
template <int N> __device__ void places(unsigned char *to, const unsigned (&p)[N]) {
	Bytes<N> k;
#pragma unroll
	for (int j = 0; j < N; j++) k.v[j] = p[j];
	*(Bytes<N> *)to = k;
}
template <int N> __device__ void places(int *to, const unsigned (&p)[N]) {
	for (int j = 0; j < N; j++) to[j] = p[j];
}
// take reads N places.
template <int N> __device__ void take(const unsigned char *from, unsigned (&p)[N]) {
	Bytes<N> k = *(const Bytes<N> *)from;
#pragma unroll
	for (int j = 0; j < N; j++) p[j] = k.v[j];
}
#if !defined SIM_SOURCE
__device__ void take(const unsigned char *from, unsigned (&p)[8]) {
	unsigned w[2];
	asm("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(w[0]), "=r"(w[1]) : "l"(from));
#pragma unroll
	for (int j = 0; j < 8; j++) p[j] = __byte_perm(w[j / 4], 0, 0x4440 + j % 4);
}
#endif
template <int N> __device__ void take(const int *from, unsigned (&p)[N]) {
	for (int j = 0; j < N; j++) p[j] = from[j];
}

// addIf adds d to sum if p is q.
__device__ void addIf(float &sum, unsigned p, unsigned q, float d) {
#if defined SIM_SOURCE
	if (p == q) sum += d;
#else
	asm("{\n.reg .pred is;\nsetp.eq.u32 is, %1, %2;\n@is add.f32 %0, %0, %3;\n}" : "+f"(sum) : "r"(p), "r"(q), "f"(d));
#endif
}

// maxPool writes the maximum of each window and, unless place is null, its first place in the window. NaN counts as
// the largest. y may be null.
template <class P> __device__ void maxPool(const T *x, T *y, P *place, const Windows &a, long long n) {
	channelwise(n, a.oh, a.ow, a.c, packed(x) && packed(y), a,
		[=](auto size, unsigned at, unsigned image, int row, int col, int k, Strides) {
		WIDTH(size);
		float best[N], sum = 0;
		unsigned first[N];
		const T *plane = x + image * a.h * a.w * a.c + k;
#pragma unroll
		for (int m = 0; m < N; m++) best[m] = __uint_as_float(0xff800000), first[m] = ~0u;
		within(plane, row, col, a, [&](int p, const T *from) {
			float v[N];
			load(from, v);
#pragma unroll
			for (int m = 0; m < N; m++) {
				bool more = v[m] > best[m];
				first[m] = more ? p : first[m];
				best[m] = more ? v[m] : best[m];
				sum += v[m];
			}
		});
		bool rare = sum != sum;  // with a NaN, or without a number above -∞
#pragma unroll
		for (int m = 0; m < N; m++) rare |= first[m] == ~0u;
		if (rare) {
			bool any = false;
			within(plane, row, col, a, [&](int p, const T *from) {
				float v[N];
				load(from, v);
				for (int m = 0; m < N; m++)
					if (!any || v[m] > best[m] || (v[m] != v[m] && best[m] == best[m])) best[m] = v[m], first[m] = p;
				any = true;
			});
		}
		if (y) store(y + at, best);
		if (place) places(place + at, first);
	});
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool(const T *x, T *y, unsigned char *place, WINDOWS,
	long long n) {
	maxPool(x, y, place, THESE, n);
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool_wide(const T *x, T *y, int *place, WINDOWS,
	long long n) {
	maxPool(x, y, place, THESE, n);
}

// maxPoolGrad gives each window's gradient to the place of its maximum.
template <class P> __device__ void maxPoolGrad(const P *place, const T *dy, T *dx, const Windows &a, long long n) {
	channelwise(n, a.h, a.w, a.c, packed(dy) && packed(dx), a,
		[=](auto size, unsigned at, unsigned image, int row, int col, int k, Strides strides) {
		WIDTH(size);
		float sum[N] = {};
		const P *places = place + k;
		const T *gradients = dy + k;
		seen(image, row, col, a, strides, [&](unsigned from, int p) {
			float d[N];
			load(gradients + from, d);
			unsigned q[N];
			take(places + from, q);
#pragma unroll
			for (int m = 0; m < N; m++) addIf(sum[m], q[m], p, d[m]);
		});
		store(dx + at, sum);
	});
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool_grad(const unsigned char *place, const T *dy, T *dx,
	WINDOWS, long long n) {
	maxPoolGrad(place, dy, dx, THESE, n);
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool_grad_wide(const int *place, const T *dy, T *dx,
	WINDOWS, long long n) {
	maxPoolGrad(place, dy, dx, THESE, n);
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_avg_pool(const T *x, T *y, WINDOWS, long long n) {
	Windows a = THESE;
	channelwise(n, oh, ow, c, packed(x) && packed(y), a,
		[=](auto size, unsigned at, unsigned image, int row, int col, int k, Strides) {
		WIDTH(size);
		float sum[N] = {};
		const T *plane = x + image * a.h * a.w * a.c + k;
		within(plane, row, col, a, [&](int, const T *from) {
			float v[N];
			load(from, v);
			for (int m = 0; m < N; m++) sum[m] += v[m];
		});
		for (int m = 0; m < N; m++) sum[m] /= a.kh * a.kw;
		store(y + at, sum);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_avg_pool_grad(const T *dy, T *dx, WINDOWS, long long n) {
	Windows a = THESE;
	channelwise(n, h, w, c, packed(dy) && packed(dx), a,
		[=](auto size, unsigned at, unsigned image, int row, int col, int k, Strides strides) {
		WIDTH(size);
		float sum[N] = {};
		seen(image, row, col, a, strides, [&](unsigned from, int) {
			float d[N];
			load(dy + k + from, d);
			for (int m = 0; m < N; m++) sum[m] += d[m];
		});
		for (int m = 0; m < N; m++) sum[m] /= a.kh * a.kw;
		store(dx + at, sum);
	});
}

// nn_global_avg_pool makes the means [N,c] of x [N,pixels,c]. A block has the channels of an image, at most one for each
// threadIdx.x, or V with packs; the threads along y share the pixels and add up their sums in order.
template <int N> __device__ void means(const T *x, T *y, long long pixels, int c) {
	__shared__ double cells[256 * N];
	int k = (blockIdx.x * blockDim.x + threadIdx.x) * N;
	double sum[N] = {};
	if (k < c)
		for (long long p = threadIdx.y; p < pixels; p += blockDim.y) {
			float v[N];
			load(x + (blockIdx.y * pixels + p) * c + k, v);
			for (int j = 0; j < N; j++) sum[j] += v[j];
		}
	double *mine = cells + threadIdx.y * blockDim.x + threadIdx.x;
	for (int j = 0; j < N; j++) mine[256 * j] = sum[j];
	for (int half = blockDim.y / 2; half > 0; half /= 2) {
		__syncthreads();
		if (threadIdx.y < half)
			for (int j = 0; j < N; j++) mine[256 * j] += mine[256 * j + half * blockDim.x];
	}
	if (threadIdx.y > 0 || k >= c) return;
	float mean[N];
	for (int j = 0; j < N; j++) mean[j] = (float)(mine[256 * j] / pixels);
	store(y + blockIdx.y * (long long)c + k, mean);
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_global_avg_pool(const T *x, T *y, long long pixels, int c,
	int packs) {
	if (packs) means<V>(x, y, pixels, c);
	else means<1>(x, y, pixels, c);
}

// nn_global_avg_pool_grad writes the n elements of dx [N,pixels,c], or V at a time, from the gradients dy [N,c] of the
// means.
extern "C" __global__ void __launch_bounds__(256, 4) nn_global_avg_pool_grad(const T *dy, T *dx, long long pixels,
	int c, long long n) {
	Divisor images = divisor(pixels * c), rows = divisor(c);
	float share = 1.f / pixels;
	elements(n, c % V == 0 && packed(dy) && packed(dx), [=](auto width, long long at) {
		WIDTH(width);
		unsigned i = at, k = at, image = divided(i, images);
		split(k, rows);
		float d[N];
		load(dy + (long long)image * c + k, d);
#pragma unroll
		for (int j = 0; j < N; j++) d[j] *= share;
		store(dx + at, d);
	});
}
