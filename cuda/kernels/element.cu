// Ops that compute each element of the result from elements at fixed places. Activations are stored channels-last.

// NaN stays NaN.
__device__ float relu(float x) { return x <= 0 ? 0 : x; }

extern "C" __global__ void __launch_bounds__(256, 4) nn_relu(const T *x, T *y, long long n) {
	elements(n, packed(x) && packed(y), [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		load(x + i, a);
		for (int j = 0; j < N; j++) a[j] = relu(a[j]);
		store(y + i, a);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_relu_grad(const T *y, const T *dy, T *dx, long long n) {
	elements(n, packed(y) && packed(dy) && packed(dx), [=](auto width, long long i) {
		WIDTH(width);
		float a[N], d[N];
		load(y + i, a);
		load(dy + i, d);
		for (int j = 0; j < N; j++) d[j] = a[j] <= 0 ? 0 : d[j];
		store(dx + i, d);
	});
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_add(const T *a, const T *b, T *y, long long n) {
	elements(n, packed(a) && packed(b) && packed(y), [=](auto width, long long i) {
		WIDTH(width);
		float u[N], v[N];
		load(a + i, u);
		load(b + i, v);
		for (int j = 0; j < N; j++) u[j] += v[j];
		store(y + i, u);
	});
}

// nn_bias adds its channel's, or its output's, bias to each element.
extern "C" __global__ void __launch_bounds__(256, 4) nn_bias(T *y, const float *bias, int channels, long long n) {
	elements(n, packed(y) && channels % V == 0, [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		load(y + i, a);
		int c = i % channels;
		for (int j = 0; j < N; j++) a[j] += bias[c + j];
		store(y + i, a);
	});
}

// nn_narrow, nn_widen and nn_rescale convert elements and multiply them by the loss scale or its inverse.
__device__ float factorOf(const float *scale, int inverse) { return inverse ? unscaleOf(scale) : scaleOf(scale); }

extern "C" __global__ void __launch_bounds__(256, 4) nn_narrow(const float *x, T *y, const float *scale, int inverse,
	long long n) {
	float s = factorOf(scale, inverse);
	elements(n, packed(x) && packed(y), [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		for (int j = 0; j < N; j++) a[j] = x[i + j] * s;
		store(y + i, a);
	});
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_widen(const T *x, float *y, const float *scale, int inverse,
	long long n) {
	float s = factorOf(scale, inverse);
	elements(n, packed(x), [=](auto width, long long i) {
		WIDTH(width);
		float a[N];
		load(x + i, a);
		for (int j = 0; j < N; j++) y[i + j] = a[j] * s;
	});
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_rescale(const T *x, T *y, const float *scale, int inverse,
	long long n) {
	float s = factorOf(scale, inverse);
	EACH(i, n) y[i] = narrow(wide(x[i]) * s);
}

// nn_images cuts a window out of each image, mirrors it on request and maps its pixels by a table [256,C]. Pixels
// outside the image have level 0. The image's channels lie in the middle of the result's channels, between zeros. A
// thread has one of n pixels, fewer than 2³¹; C and A are the numbers of channels, 0 for any.
template <int C, int A> __device__ void images(const unsigned char *pixels, const int *crops, const float *table, T *y,
	unsigned h, unsigned w, int channels, int height, int width, int all, long long n) {
	Divisor byW = divisor(width), byH = divisor(height);
	EACH(at, n) {
		unsigned j = at, i = split(j, byW), image = split(i, byH);
		const int *crop = crops + 3 * image;
		unsigned row = crop[0] + i, col = crop[1] + (crop[2] ? width - 1 - j : j);
		bool inside = row < h && col < w;
		const unsigned char *from = pixels + ((unsigned long long)image * h + row) * w * channels + col * channels;
		if constexpr (A > 0) {
			float v[A] = {};
#pragma unroll
			for (int c = 0; c < C; c++) v[(A - C) / 2 + c] = table[(inside ? from[c] : 0) * C + c];
			if constexpr (A == V) store(y + at * A, v);
			else for (int c = 0; c < A; c++) y[at * A + c] = narrow(v[c]);
		} else {
			int before = (all - channels) / 2;
			for (int c = -before; c < all - before; c++)
				y[at * all + before + c] = narrow(c >= 0 && c < channels
					? table[(inside ? from[c] : 0) * channels + c] : 0);
		}
	}
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_images(const unsigned char *pixels, const int *crops,
	const float *table, T *y, int h, int w, int channels, int height, int width, int all, long long n) {
	if (channels == 3 && all == V && packed(y))
		images<3, V>(pixels, crops, table, y, h, w, 3, height, width, V, n);
	else if (channels == 3 && all == 3) images<3, 3>(pixels, crops, table, y, h, w, 3, height, width, 3, n);
	else images<0, 0>(pixels, crops, table, y, h, w, channels, height, width, all, n);
}

// An activation of images with these numbers of channels and pixels; both are 1 for row-major order. logical is the
// row-major index of the element at a place in memory, and place is its inverse.
__device__ long long logical(long long at, long long channels, long long pixels) {
	return (at / channels / pixels * channels + at % channels) * pixels + at / channels % pixels;
}
__device__ long long place(long long logical, long long channels, long long pixels) {
	return (logical / pixels / channels * pixels + logical % pixels) * channels + logical / pixels % channels;
}

// nn_view copies n elements between shapes, starting at a row-major offset.
extern "C" __global__ void __launch_bounds__(256, 4) nn_view(const T *x, T *y, long long fromChannels,
	long long fromPixels, long long toChannels, long long toPixels, long long offset, long long n) {
	EACH(i, n) y[i] = x[place(offset + logical(i, toChannels, toPixels), fromChannels, fromPixels)];
}

// nn_shortcut takes every stride-th row and column of x [N,h,w,c], with zeros before and after its channels.
extern "C" __global__ void __launch_bounds__(256, 4) nn_shortcut(const T *x, T *y, int h, int w, int c, int height,
	int width, int channels, int stride, long long n) {
	int before = (channels - c) / 2;
	EACH(at, n) {
		int k = (int)(at % channels) - before, j = at / channels % width, i = at / channels / width % height;
		long long image = at / channels / width / height;
		y[at] = k >= 0 && k < c ? x[((image * h + (long long)i * stride) * w + (long long)j * stride) * c + k]
			: narrow(0);
	}
}

// nn_shortcut_grad is the gradient of nn_shortcut, for n elements of x.
extern "C" __global__ void __launch_bounds__(256, 4) nn_shortcut_grad(const T *dy, T *dx, int h, int w, int c,
	int height, int width, int channels, int stride, long long n) {
	int before = (channels - c) / 2;
	EACH(at, n) {
		int k = at % c, j = at / c % w, i = at / c / w % h;
		long long image = at / c / w / h;
		bool taken = i % stride == 0 && j % stride == 0;
		dx[at] = taken ? dy[((image * height + i / stride) * width + j / stride) * channels + before + k] : narrow(0);
	}
}
