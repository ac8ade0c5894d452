// Pools of channels-last activations. Gradients are gathered: each element of the input reads the windows that contain
// it, so that sums have a fixed order.

// Windows of kh×kw elements over [N,h,w,c], with strides sh and sw and paddings ph and pw; there are oh×ow windows.
struct Windows { int h, w, oh, ow, c, kh, kw, sh, sw, ph, pw; };
#define WINDOWS int h, int w, int oh, int ow, int c, int kh, int kw, int sh, int sw, int ph, int pw
#define THESE {h, w, oh, ow, c, kh, kw, sh, sw, ph, pw}

// within calls f for the elements of window (i, j) inside the image, in row-major order, with their index in the plane.
template <class F> __device__ void within(int i, int j, const Windows &a, F f) {
	int top = i * a.sh - a.ph, left = j * a.sw - a.pw;
	for (int row = top < 0 ? 0 : top; row < top + a.kh && row < a.h; row++)
		for (int col = left < 0 ? 0 : left; col < left + a.kw && col < a.w; col++) f(row * a.w + col);
}

// largest finds the maximum of window (i, j) for each of N channels that start at x. NaN counts as the largest.
template <int N> __device__ void largest(const T *x, int i, int j, const Windows &a, float (&best)[N]) {
	bool any = false;
	within(i, j, a, [&](int place) {
		float v[N];
		load(x + (long long)place * a.c, v);
#pragma unroll
		for (int k = 0; k < N; k++)
			if (!any || v[k] > best[k] || (v[k] != v[k] && best[k] == best[k])) best[k] = v[k];
		any = true;
	});
}

// seen calls f for the windows that contain element (row, col).
template <class F> __device__ void seen(int row, int col, const Windows &a, F f) {
	int i0 = row + a.ph - a.kh + 1, j0 = col + a.pw - a.kw + 1;
	i0 = i0 <= 0 ? 0 : (i0 + a.sh - 1) / a.sh;
	j0 = j0 <= 0 ? 0 : (j0 + a.sw - 1) / a.sw;
	for (int i = i0; i <= (row + a.ph) / a.sh && i < a.oh; i++)
		for (int j = j0; j <= (col + a.pw) / a.sw && j < a.ow; j++) f(i, j);
}

// channelwise calls f for the n elements of [image, row, column, c], V channels at a time if possible, with the number
// of channels and the index and place of the first.
template <class F> __device__ void channelwise(long long n, int height, int width, int c, bool possible, F f) {
	elements(n, possible && c % V == 0, [=](auto size, long long at) {
		f(size, at, at / c / width / height, (int)(at / c / width % height), (int)(at / c % width), (int)(at % c));
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool(const T *x, T *y, WINDOWS, long long n) {
	Windows a = THESE;
	channelwise(n, oh, ow, c, packed(x) && packed(y), [=](auto size, long long at, long long image, int row, int col,
		int k) {
		WIDTH(size);
		float best[N] = {};
		largest(x + image * h * w * c + k, row, col, a, best);
		store(y + at, best);
	});
}

// beats reports whether an element x of a window, before or after the one with value mine, is the maximum instead of
// that one.
__device__ bool beats(float x, float mine, bool before) {
	if (mine != mine) return before && x != x;
	return before ? !(x < mine) : !(x <= mine);
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_max_pool_grad(const T *x, const T *dy, T *dx, WINDOWS,
	long long n) {
	Windows a = THESE;
	channelwise(n, h, w, c, packed(x) && packed(dy) && packed(dx),
		[=](auto size, long long at, long long image, int row, int col, int k) {
		WIDTH(size);
		const T *plane = x + image * h * w * c + k;
		int mine = row * w + col;
		float sum[N] = {}, own[N];
		load(x + at, own);
		seen(row, col, a, [&](int i, int j) {
			unsigned largest = (1u << N) - 1;  // of the window, by channel
			within(i, j, a, [&](int place) {
				if (place == mine || !largest) return;
				float v[N];
				load(plane + (long long)place * c, v);
#pragma unroll
				for (int m = 0; m < N; m++)
					if (beats(v[m], own[m], place < mine)) largest &= ~(1u << m);
			});
			if (!largest) return;
			float d[N];
			load(dy + ((image * oh + i) * ow + j) * c + k, d);
#pragma unroll
			for (int m = 0; m < N; m++)
				if (largest >> m & 1) sum[m] += d[m];
		});
		store(dx + at, sum);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_avg_pool(const T *x, T *y, WINDOWS, long long n) {
	Windows a = THESE;
	channelwise(n, oh, ow, c, packed(x) && packed(y), [=](auto size, long long at, long long image, int row, int col,
		int k) {
		WIDTH(size);
		float sum[N] = {};
		within(row, col, a, [&](int place) {
			float v[N];
			load(x + (image * h * w + place) * c + k, v);
			for (int m = 0; m < N; m++) sum[m] += v[m];
		});
		for (int m = 0; m < N; m++) sum[m] /= kh * kw;
		store(y + at, sum);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_avg_pool_grad(const T *dy, T *dx, WINDOWS, long long n) {
	Windows a = THESE;
	channelwise(n, h, w, c, packed(dy) && packed(dx), [=](auto size, long long at, long long image, int row, int col,
		int k) {
		WIDTH(size);
		float sum[N] = {};
		seen(row, col, a, [&](int i, int j) {
			float d[N];
			load(dy + ((image * oh + i) * ow + j) * c + k, d);
			for (int m = 0; m < N; m++) sum[m] += d[m];
		});
		for (int m = 0; m < N; m++) sum[m] /= kh * kw;
		store(dx + at, sum);
	});
}
// nn_global_avg_pool computes the means [N,c] of x [N,pixels,c].
// nn_global_avg_pool makes the means [N,c] of x [N,pixels,c].
extern "C" __global__ void __launch_bounds__(256, 4) nn_global_avg_pool(const T *x, T *y, long long pixels, int c,
	long long n) {
	elements(n, c % V == 0 && packed(x) && packed(y), [=](auto width, long long at) {
		WIDTH(width);
		const T *from = x + at / c * pixels * c + at % c;
		double sum[N] = {};
		for (long long p = 0; p < pixels; p++) {
			float v[N];
			load(from + p * c, v);
			for (int j = 0; j < N; j++) sum[j] += v[j];
		}
		float mean[N];
		for (int j = 0; j < N; j++) mean[j] = (float)(sum[j] / pixels);
		store(y + at, mean);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_global_avg_pool_grad(const T *dy, T *dx, long long pixels,
	int c, long long n) {
	elements(n, c % V == 0 && packed(dy) && packed(dx), [=](auto width, long long at) {
		WIDTH(width);
		float d[N];
		load(dy + at / c / pixels * c + at % c, d);
		for (int j = 0; j < N; j++) d[j] /= pixels;
		store(dx + at, d);
	});
}
