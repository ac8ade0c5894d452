// Shared by the sources of vectors and of optimisers' passes, after store.h. Parameters that 16-bit activations use
// have a narrow copy, else none: a writer of the parameters also writes the copy.

constexpr int threads = 256;

__device__ void write(float *v, T *copy, long long i, float a) {
	v[i] = a;
	if (copy) copy[i] = narrow(a);
}

// Scale is the loss scale and its history.
struct Scale {
	float scale, inverse;
	int good;  // good steps since the last change
	int bad;   // the step's gradient has elements that are not finite
	long long skipped;
};

// strange reports whether a number is NaN or infinite.
__device__ bool strange(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

// reduce returns the sum over a block's threads to thread 0.
__device__ double reduce(double v) {
	__shared__ double cells[threads];
	cells[threadIdx.x] = v;
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (threadIdx.x < half) cells[threadIdx.x] += cells[threadIdx.x + half];
		__syncthreads();
	}
	return cells[0];
}
