// Pools of activations that lie channels last. Gradients are gathered: each element of the input asks the windows that see it,
// so that sums have an order.

#define EACH(i, n) \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (long long)gridDim.x * blockDim.x)

// Windows of kh×kw elements, sh and sw apart, the first one ph and pw before the start, over [N,h,w,c]; there are oh×ow.
struct Windows { int h, w, oh, ow, c, kh, kw, sh, sw, ph, pw; };
#define WINDOWS int h, int w, int oh, int ow, int c, int kh, int kw, int sh, int sw, int ph, int pw
#define THESE {h, w, oh, ow, c, kh, kw, sh, sw, ph, pw}

// first is the index of the first maximum of window (i, j) in row-major order, in the plane that starts at x[plane]. NaN is larger
// than all.
__device__ long long first(const float *x, long long plane, int i, int j, const Windows &a) {
	int top = i * a.sh - a.ph, left = j * a.sw - a.pw;
	long long at = -1;
	float best = 0;
	for (int row = top < 0 ? 0 : top; row < top + a.kh && row < a.h; row++)
		for (int col = left < 0 ? 0 : left; col < left + a.kw && col < a.w; col++) {
			long long k = plane + ((long long)row * a.w + col) * a.c;
			float v = x[k];
			if (at < 0 || v > best || (v != v && best == best)) {
				at = k;
				best = v;
			}
		}
	return at;
}

// seen calls f for the windows that see element (row, col).
template <class F> __device__ void seen(int row, int col, const Windows &a, F f) {
	int i0 = row + a.ph - a.kh + 1, j0 = col + a.pw - a.kw + 1;
	i0 = i0 <= 0 ? 0 : (i0 + a.sh - 1) / a.sh;
	j0 = j0 <= 0 ? 0 : (j0 + a.sw - 1) / a.sw;
	for (int i = i0; i <= (row + a.ph) / a.sh && i < a.oh; i++)
		for (int j = j0; j <= (col + a.pw) / a.sw && j < a.ow; j++) f(i, j);
}

extern "C" __global__ void nn_max_pool(const float *x, float *y, WINDOWS, long long n) {
	Windows a = THESE;
	EACH(at, n) {
		int k = at % c, j = at / c % ow, i = at / c / ow % oh;
		long long image = at / c / ow / oh;
		y[at] = x[first(x, image * h * w * c + k, i, j, a)];
	}
}

extern "C" __global__ void nn_max_pool_grad(const float *x, const float *dy, float *dx, WINDOWS, long long n) {
	Windows a = THESE;
	EACH(at, n) {
		int k = at % c, col = at / c % w, row = at / c / w % h;
		long long image = at / c / w / h;
		double sum = 0;
		seen(row, col, a, [&](int i, int j) {
			if (first(x, image * h * w * c + k, i, j, a) == at) sum += dy[((image * oh + i) * ow + j) * c + k];
		});
		dx[at] = (float)sum;
	}
}

extern "C" __global__ void nn_avg_pool(const float *x, float *y, WINDOWS, long long n) {
	EACH(at, n) {
		int k = at % c, j = at / c % ow, i = at / c / ow % oh;
		long long image = at / c / ow / oh;
		int top = i * sh - ph, left = j * sw - pw;
		double sum = 0;
		for (int row = top < 0 ? 0 : top; row < top + kh && row < h; row++)
			for (int col = left < 0 ? 0 : left; col < left + kw && col < w; col++) sum += x[((image * h + row) * w + col) * c + k];
		y[at] = (float)(sum / (kh * kw));
	}
}

extern "C" __global__ void nn_avg_pool_grad(const float *dy, float *dx, WINDOWS, long long n) {
	Windows a = THESE;
	EACH(at, n) {
		int k = at % c, col = at / c % w, row = at / c / w % h;
		long long image = at / c / w / h;
		double sum = 0;
		seen(row, col, a, [&](int i, int j) { sum += dy[((image * oh + i) * ow + j) * c + k]; });
		dx[at] = (float)(sum / (kh * kw));
	}
}

// nn_global_avg_pool makes the means [N,c] of x [N,pixels,c].
extern "C" __global__ void nn_global_avg_pool(const float *x, float *y, long long pixels, int c, long long n) {
	EACH(at, n) {
		const float *from = x + at / c * pixels * c + at % c;
		double sum = 0;
		for (long long p = 0; p < pixels; p++) sum += from[p * c];
		y[at] = (float)(sum / pixels);
	}
}

extern "C" __global__ void nn_global_avg_pool_grad(const float *dy, float *dx, long long pixels, int c, long long n) {
	EACH(at, n) dx[at] = dy[at / c / pixels * c + at % c] / pixels;
}
