// Softmax cross-entropy and scores of logits [N,k], in float64. A block has one row; sums have a fixed order.

constexpr int threads = 128;

// NaN propagates.
__device__ double larger(double a, double b) { return b > a || b != b ? b : a; }

// all combines the values of a block's threads and returns the result to every thread.
template <class F> __device__ double all(double v, F combine) {
	__shared__ double cells[threads];
	__syncthreads();
	cells[threadIdx.x] = v;
	__syncthreads();
	for (int half = threads / 2; half > 0; half /= 2) {
		if (threadIdx.x < half) cells[threadIdx.x] = combine(cells[threadIdx.x], cells[threadIdx.x + half]);
		__syncthreads();
	}
	return cells[0];
}
__device__ double sum(double v) {
	return all(v, [](double a, double b) { return a + b; });
}

// normalise computes the largest logit of a row and log Σ exp(logit − largest).
__device__ void normalise(const float *row, int k, double &top, double &lse) {
	double t = __longlong_as_double(0xfff0000000000000ll), s = 0; // from minus infinity
	for (int j = threadIdx.x; j < k; j += threads) t = larger(t, row[j]);
	top = all(t, larger);
	for (int j = threadIdx.x; j < k; j += threads) s += exp(row[j] - top);
	lse = log(sum(s));
}

// counted is the number of labels that are valid classes.
__device__ double counted(const int *labels, int n, int k) {
	double c = 0;
	for (int i = threadIdx.x; i < n; i += threads) c += labels[i] >= 0 && labels[i] < k;
	return sum(c);
}

// nn_cross_entropy writes the loss of each row, 0 if the label is ignored.
extern "C" __global__ void __launch_bounds__(128, 8) nn_cross_entropy(const float *logits, const int *labels, int k,
	double smoothing, double *rows) {
	const float *row = logits + (long long)blockIdx.x * k;
	int label = labels[blockIdx.x];
	if (label < 0 || label >= k) {
		if (threadIdx.x == 0) rows[blockIdx.x] = 0;
		return;
	}
	double top, lse, mean = 0;
	normalise(row, k, top, lse);
	if (smoothing > 0) {
		for (int j = threadIdx.x; j < k; j += threads) mean += lse - (row[j] - top);
		mean = sum(mean) / k;
	}
	if (threadIdx.x == 0) rows[blockIdx.x] = (1 - smoothing) * (lse - (row[label] - top)) + smoothing * mean;
}

// nn_cross_entropy_end writes the mean, in one block.
extern "C" __global__ void __launch_bounds__(128, 8) nn_cross_entropy_end(const double *rows, const int *labels, int n,
	int k, float *loss) {
	double s = 0;
	for (int i = threadIdx.x; i < n; i += threads) s += rows[i];
	s = sum(s);
	double count = counted(labels, n, k);
	if (threadIdx.x == 0) loss[0] = (float)(s / (count > 0 ? count : 1));
}

// nn_cross_entropy_grad writes the gradient, multiplied by the loss scale if there is one.
extern "C" __global__ void __launch_bounds__(128, 8) nn_cross_entropy_grad(const float *logits, const int *labels,
	const float *dy, T *dx, int n, int k, double smoothing, const float *scale) {
	const float *row = logits + (long long)blockIdx.x * k;
	T *to = dx + (long long)blockIdx.x * k;
	int label = labels[blockIdx.x];
	if (label < 0 || label >= k) {
		for (int j = threadIdx.x; j < k; j += threads) to[j] = narrow(0);
		return;
	}
	double top, lse, a = scaleOf(scale) * dy[0] / counted(labels, n, k);
	normalise(row, k, top, lse);
	for (int j = threadIdx.x; j < k; j += threads)
		to[j] = narrow(a * (exp(row[j] - top - lse) - smoothing / k - (j == label ? 1 - smoothing : 0)));
}

// nn_target_loss writes the loss of each row against its targets: softmax or binary.
extern "C" __global__ void __launch_bounds__(128, 8) nn_target_loss(const float *logits, const float *targets, int k,
	int binary, double *rows) {
	const float *row = logits + (long long)blockIdx.x * k, *target = targets + (long long)blockIdx.x * k;
	double top = 0, lse = 0, s = 0;
	if (!binary) normalise(row, k, top, lse);
	for (int j = threadIdx.x; j < k; j += threads) {
		double z = row[j], t = target[j];
		if (binary) s += (z > 0 || z != z ? z : 0) - t * z + log1p(exp(-fabs(z)));
		else if (t != 0) s += t * (lse - (z - top));
	}
	s = sum(s);
	if (threadIdx.x == 0) rows[blockIdx.x] = s;
}

// nn_target_loss_end writes the mean, in one block.
extern "C" __global__ void __launch_bounds__(128, 8) nn_target_loss_end(const double *rows, int n, int k, int binary,
	float *loss) {
	double s = 0;
	for (int i = threadIdx.x; i < n; i += threads) s += rows[i];
	s = sum(s);
	if (threadIdx.x == 0) loss[0] = (float)(s / (binary ? (double)n * k : n));
}

// nn_target_loss_grad writes the gradient, multiplied by the loss scale if there is one.
extern "C" __global__ void __launch_bounds__(128, 8) nn_target_loss_grad(const float *logits, const float *targets,
	const float *dy, T *dx, int n, int k, int binary, const float *scale) {
	const float *row = logits + (long long)blockIdx.x * k, *target = targets + (long long)blockIdx.x * k;
	T *to = dx + (long long)blockIdx.x * k;
	double top = 0, lse = 0, whole = 0, a = scaleOf(scale) * dy[0] / (binary ? (double)n * k : n);
	if (!binary) {
		normalise(row, k, top, lse);
		for (int j = threadIdx.x; j < k; j += threads) whole += target[j];
		whole = sum(whole);
	}
	for (int j = threadIdx.x; j < k; j += threads) {
		double p = binary ? 1 / (1 + exp(-(double)row[j])) : whole * exp(row[j] - top - lse);
		to[j] = narrow(a * (p - target[j]));
	}
}

// nn_score writes the cross-entropy of each row and whether it is correct at top 1 and at top 5.
extern "C" __global__ void __launch_bounds__(128, 8) nn_score(const float *logits, const int *labels, int k,
	double *rows) {
	const float *row = logits + (long long)blockIdx.x * k;
	double *to = rows + 3ll * blockIdx.x;
	int label = labels[blockIdx.x];
	if (label < 0 || label >= k) {
		if (threadIdx.x < 3) to[threadIdx.x] = 0;
		return;
	}
	double top, lse, above = 0;
	normalise(row, k, top, lse);
	float mine = row[label];
	for (int j = threadIdx.x; j < k; j += threads) {
		float v = row[j];
		if (v != v) above += k + 5;
		else if (v > mine || (v == mine && j < label)) above++;
	}
	above = sum(above);
	if (threadIdx.x == 0) {
		to[0] = lse - (mine - top);
		to[1] = above < 1;
		to[2] = above < 5;
	}
}

// nn_score_end sums the rows, in one block.
extern "C" __global__ void __launch_bounds__(128, 8) nn_score_end(const double *rows, int n, float *score) {
	for (int what = 0; what < 3; what++) {
		double s = 0;
		for (int i = threadIdx.x; i < n; i += threads) s += rows[3ll * i + what];
		s = sum(s);
		if (threadIdx.x == 0) score[what] = (float)s;
	}
}
