// What the sources of vectors and of the passes of optimisers share, behind store.h. Parameters that activations of 16 bits meet have a narrow copy,
// or none: who writes them writes it.

constexpr int threads = 256;

__device__ void write(float *v, T *copy, long long i, float a) {
	v[i] = a;
	if (copy) copy[i] = narrow(a);
}

// Scale is the scale of the loss and how it came about.
struct Scale {
	float scale, inverse;
	int good;  // steps since it changed
	int bad;   // the gradient of the step has elements that are not finite
	long long skipped;
};

// strange says whether a number is NaN or infinite.
__device__ bool strange(float x) { return (__float_as_uint(x) & 0x7f800000u) == 0x7f800000u; }

// reduce gives thread 0 of a block the sum of its threads.
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
