// Ops that make each element of the result from elements at fixed places. Activations lie channels last.

#define EACH(i, n) \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += (long long)gridDim.x * blockDim.x)

// NaN stays NaN.
__device__ float relu(float x) { return x <= 0 ? 0 : x; }

extern "C" __global__ void nn_relu(const float *x, float *y, long long n) {
	EACH(i, n) y[i] = relu(x[i]);
}

extern "C" __global__ void nn_relu_grad(const float *y, const float *dy, float *dx, long long n) {
	EACH(i, n) dx[i] = y[i] <= 0 ? 0 : dy[i];
}

extern "C" __global__ void nn_add(const float *a, const float *b, float *y, long long n) {
	EACH(i, n) y[i] = a[i] + b[i];
}

// nn_bias adds the element of its channel, or output, to each element.
extern "C" __global__ void nn_bias(float *y, const float *bias, int channels, long long n) {
	EACH(i, n) y[i] += bias[i % channels];
}

// nn_images cuts a window out of each image, mirrors it where asked to and looks its pixels up in a table [256,C]. What is outside
// the image is level 0.
extern "C" __global__ void nn_images(const unsigned char *pixels, const int *crops, const float *table, float *y,
                                     int h, int w, int channels, int height, int width, long long n) {
	EACH(at, n) {
		int c = at % channels, j = at / channels % width, i = at / channels / width % height;
		long long image = at / channels / width / height;
		const int *crop = crops + 3 * image;
		long long row = (long long)crop[0] + i, col = (long long)crop[1] + (crop[2] ? width - 1 - j : j);
		bool inside = row >= 0 && row < h && col >= 0 && col < w;
		y[at] = table[(inside ? pixels[((image * h + row) * w + col) * channels + c] : 0) * channels + c];
	}
}

// An activation of images of pixels of channels; where it is row-major both are 1. logical is the row-major index of the
// element at a place, and place is its inverse.
__device__ long long logical(long long at, long long channels, long long pixels) {
	return (at / channels / pixels * channels + at % channels) * pixels + at / channels % pixels;
}
__device__ long long place(long long logical, long long channels, long long pixels) {
	return (logical / pixels / channels * pixels + logical % pixels) * channels + logical / pixels % channels;
}

// nn_view copies n elements from a row-major offset on, from one shape to another.
extern "C" __global__ void nn_view(const float *x, float *y, long long fromChannels, long long fromPixels, long long toChannels, long long toPixels,
                                   long long offset, long long n) {
	EACH(i, n) y[i] = x[place(offset + logical(i, toChannels, toPixels), fromChannels, fromPixels)];
}

// nn_shortcut takes every stride-th row and column of x [N,h,w,c], with zeros before and after its channels.
extern "C" __global__ void nn_shortcut(const float *x, float *y, int h, int w, int c, int height, int width, int channels, int stride, long long n) {
	int before = (channels - c) / 2;
	EACH(at, n) {
		int k = (int)(at % channels) - before, j = at / channels % width, i = at / channels / width % height;
		long long image = at / channels / width / height;
		y[at] = k >= 0 && k < c ? x[((image * h + (long long)i * stride) * w + (long long)j * stride) * c + k] : 0;
	}
}

// nn_shortcut_grad is its gradient, for n elements of x.
extern "C" __global__ void nn_shortcut_grad(const float *dy, float *dx, int h, int w, int c, int height, int width, int channels, int stride, long long n) {
	int before = (channels - c) / 2;
	EACH(at, n) {
		int k = at % c, j = at / c % w, i = at / c / w % h;
		long long image = at / c / w / h;
		bool taken = i % stride == 0 && j % stride == 0;
		dx[at] = taken ? dy[((image * height + i / stride) * width + j / stride) * channels + before + k] : 0;
	}
}
