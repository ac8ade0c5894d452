// Ops over values of any rank. What lies where is in tables of integers: numbers of dimensions and, for each, its extent
// and strides.

// nn_box copies a box of n elements of x, or with packs of 16 bytes, to its place in y: table has the dimensions'
// extents, strides of x, strides of y.
template <class P> __device__ void box(const P *x, P *y, const long long *table, int rank, long long from, long long to,
	long long n) {
	EACH(i, n) {
		unsigned rest = i;
		long long a = from, b = to;
		for (int d = rank - 1; d > 0; d--) {
			unsigned extent = table[3 * d], at = rest % extent;
			rest /= extent;
			a += at * table[3 * d + 1];
			b += at * table[3 * d + 2];
		}
		y[b + rest * table[2]] = x[a + rest * table[1]];
	}
}
extern "C" __global__ void __launch_bounds__(256, 4) nn_box(const T *x, T *y, const long long *table, int rank,
	long long from, long long to, int packs, long long n) {
	if (packs) box((const Words<V> *)x, (Words<V> *)y, table, rank, from, to, n);
	else box(x, y, table, rank, from, to, n);
}

// nn_zero writes zeros.
extern "C" __global__ void __launch_bounds__(256, 4) nn_zero(T *y, long long n) {
	EACH(i, n) y[i] = narrow(0);
}

// nn_reduce writes the sum, mean or maximum (by 0, 1, 2) of count elements for each element of the result. table has the
// dimensions that stay, as nn_box's, and then those that are reduced, with a 0 for y.
extern "C" __global__ void __launch_bounds__(256, 4) nn_reduce(const T *x, float *y, const long long *table, int kept,
	int reduced, int by, long long count, const float *scale, long long n) {
	EACH(i, n) {
		long long rest = i, from = 0, to = 0;
		for (int d = kept - 1; d >= 0; d--) {
			long long at = rest % table[3 * d];
			rest /= table[3 * d];
			from += at * table[3 * d + 1];
			to += at * table[3 * d + 2];
		}
		const long long *over = table + 3 * kept;
		double sum = 0;
		float largest = wide(x[from]);
		for (long long k = 0; k < count; k++) {
			long long left = k, a = from;
			for (int d = reduced - 1; d >= 0; d--) {
				a += left % over[3 * d] * over[3 * d + 1];
				left /= over[3 * d];
			}
			float v = wide(x[a]);
			sum += v;
			if (!(v <= largest) && largest == largest) largest = v;
		}
		y[to] = (by == 2 ? largest : (float)(by == 1 ? sum / count : sum)) * unscaleOf(scale);
	}
}

// nn_gather and nn_gather_grad go over the elements of their results, whose dimensions table has, and with a number of
// the dimension along which elements are picked, with a stride of what is picked or of dy.
extern "C" __global__ void __launch_bounds__(256, 4) nn_gather(const T *x, const int *index, T *y,
	const long long *table, int rank, int axis, int extent, long long n) {
	EACH(i, n) {
		long long rest = i, a = 0, b = 0;
		int inside = 1;
		for (int d = rank - 1; d >= 0; d--) {
			long long at = rest % table[3 * d];
			rest /= table[3 * d];
			b += at * table[3 * d + 2];
			if (d == axis) {
				at = index[at];
				inside = at >= 0 && at < extent;
			}
			a += at * table[3 * d + 1];
		}
		y[b] = inside ? x[a] : narrow(0);
	}
}

extern "C" __global__ void __launch_bounds__(256, 4) nn_gather_grad(const T *dy, const int *index, float *dx,
	const long long *table, int rank, int axis, int count, const float *scale, long long n) {
	EACH(i, n) {
		long long rest = i, a = 0, b = 0, mine = 0;
		for (int d = rank - 1; d >= 0; d--) {
			long long at = rest % table[3 * d];
			rest /= table[3 * d];
			b += at * table[3 * d + 2];
			if (d == axis)
				mine = at;
			else
				a += at * table[3 * d + 1];
		}
		double sum = 0;
		for (int k = 0; k < count; k++)
			if (index[k] == mine) sum += wide(dy[a + k * table[3 * axis + 1]]);
		dx[b] = (float)(sum * unscaleOf(scale));
	}
}
