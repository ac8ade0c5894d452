// Tests of captures and graphs.
#include "selftest.h"

// A Capturing has a context with two streams and memory, and a capture on the first stream.
struct Capturing {
	CUcontext c;
	CUstream a, b;
	CUevent e;
	CUdeviceptr p;
	int *host;
	Capturing(CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
		IS(cuCtxCreate(&c, 0, 0), 0);
		IS(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING), 0);
		IS(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING), 0);
		IS(cuEventCreate(&e, 0), 0);
		IS(cuMemAlloc(&p, 16), 0);
		IS(cuMemAllocHost_v2((void **)&host, 16), 0);
		memset(host, 0, 16);
		IS(cuMemcpyHtoD(p, host, 16), 0);
		IS(cuStreamBeginCapture(a, mode), 0);
	}
	int end(CUgraph *g) { return cuStreamEndCapture(a, g); }
	~Capturing() {
		IS(cuMemFree(p), 0);
		IS(cuMemFreeHost(host), 0);
		IS(cuEventDestroy(e), 0);
		IS(cuStreamDestroy(a), 0);
		IS(cuStreamDestroy(b), 0);
		CHECK(!strcmp(simLeaks(), "1 contexts"));
		IS(cuCtxDestroy(c), 0);
	}
};

// Captured work runs at each launch of the graph, on the memory's content at that time.
void graphs(const std::string &image) {
	Capturing t;
	CUmodule m;
	CUfunction set;
	CUgraph g;
	CUgraphExec x;
	CUstreamCaptureStatus status;
	IS(cuStreamIsCapturing(t.a, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	IS(cuMemcpyHtoDAsync(t.p, t.host, 16, t.a), 0);
	IS(cuMemcpyDtoHAsync(t.host + 2, t.p, 4, t.a), 0);
	IS(cuEventRecord(t.e, t.a), 0);
	IS(cuStreamWaitEvent(t.b, t.e, 0), 0);  // b is in it, too
	IS(cuStreamIsCapturing(t.b, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	IS(cuMemcpyDtoHAsync(t.host + 3, t.p + 4, 4, t.b), 0);
	IS(cuEventRecord(t.e, t.b), 0);
	IS(cuStreamWaitEvent(t.a, t.e, 0), 0);
	IS(cuMemsetD32Async(t.p, 5, 1, t.a), 0);
	IS(t.end(&g), 0);
	IS(cuStreamIsCapturing(t.b, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	IS(cuGraphInstantiateWithFlags(&x, g, 0), 0);
	CHECK(strstr(simLeaks(), "1 graphs") && strstr(simLeaks(), "1 executable graphs"));
	IS(cuGraphDestroy(g), 0);
	IS(cuGraphDestroy(g), CUDA_ERROR_INVALID_HANDLE);
	IS(cuCtxSynchronize(), 0);
	CHECK(t.host[2] == 0 && t.host[3] == 0);  // nothing ran yet
	for (int i = 1; i < 3; i++) {
		t.host[0] = 10 * i;
		t.host[1] = 20 * i;
		IS(cuGraphLaunch(x, t.b), 0);
		IS(cuStreamSynchronize(t.b), 0);
		CHECK(t.host[2] == 10 * i && t.host[3] == 20 * i);
		IS(cuMemcpyDtoH(t.host, t.p, 4), 0);
		CHECK(t.host[0] == 5);
	}
	IS(cuGraphExecDestroy(x), 0);
	IS(cuGraphLaunch(x, t.b), CUDA_ERROR_INVALID_HANDLE);
	// A kernel that fails ends the context when the graph runs.
	apart([&] {
		Device d(image);
		CUstream s;
		CUdeviceptr one = filled({1});
		IS(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), 0);
		IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
		IS(cuModuleLoadData(&m, image.data()), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
		IS(cuModuleGetFunction(&set, d.module, "stop"), 0);
		IS(launch(set, s, 1, 1, 0, one), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);  // its code is not there yet
		IS(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(cuFuncLoad(set), 0);
		IS(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
		IS(launch(set, s, 1, 1, 0, one), 0);
		IS(cuStreamEndCapture(s, &g), 0);
		IS(cuGraphInstantiateWithFlags(&x, g, 0), 0);
		IS(cuStreamSynchronize(s), 0);
		IS(cuGraphLaunch(x, s), 0);
		IS(cuStreamSynchronize(s), CUDA_ERROR_LAUNCH_FAILED);
		IS(cuGraphLaunch(x, s), CUDA_ERROR_LAUNCH_FAILED);
	});
	IS(cuCtxSetCurrent(t.c), 0);
}

// refused makes a call that a capture does not allow, which ends the capture.
static void refused(int want, int (*call)(Capturing &), CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) {
	Capturing t(mode);
	CUgraph g = (CUgraph)1;
	CUstreamCaptureStatus status;
	IS(cuMemsetD32Async(t.p, 1, 1, t.a), 0);
	IS(call(t), want);
	IS(cuStreamIsCapturing(t.a, &status), 0);
	CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	IS(cuMemsetD32Async(t.p, 2, 1, t.a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(g == nullptr);
	IS(cuMemcpyDtoH(t.host, t.p, 4), 0);
	CHECK(t.host[0] == 0);
	IS(cuMemsetD32Async(t.p, 3, 1, t.a), 0);  // the stream stays usable
	IS(cuStreamSynchronize(t.a), 0);
}

void captures() {
	constexpr int unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	constexpr CUstreamCaptureMode global = CU_STREAM_CAPTURE_MODE_GLOBAL;
	static CUdeviceptr q;
	static float pageable[4];
	static void *h;
	refused(unsupported, [](Capturing &) { return (int)cuMemAlloc(&q, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemFree(t.p); });
	refused(unsupported, [](Capturing &) { return (int)cuMemAllocHost_v2(&h, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemFreeHost(t.host); });
	refused(unsupported, [](Capturing &t) { return (int)cuStreamSynchronize(t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuStreamQuery(t.a); });
	refused(unsupported, [](Capturing &) { return (int)cuCtxSynchronize(); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoD(t.p, t.host, 4); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoDAsync(t.p, pageable, 16, t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyDtoHAsync(pageable, t.p, 16, t.a); });
	refused(unsupported, [](Capturing &t) { return (int)cuMemcpyHtoDAsync(t.p, pageable, 16, t.a); }, global);
	refused(CUDA_ERROR_CAPTURED_EVENT, [](Capturing &t) { IS(cuEventRecord(t.e, t.a), 0); return (int)cuEventSynchronize(t.e); });
	refused(CUDA_ERROR_CAPTURED_EVENT, [](Capturing &t) { IS(cuEventRecord(t.e, t.a), 0); return (int)cuEventQuery(t.e); });
	refused(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, [](Capturing &t) { IS(cuEventRecord(t.e, t.b), 0); return (int)cuStreamWaitEvent(t.a, t.e, 0); });
	refused(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, [](Capturing &t) {
		CUgraph g;
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), 0);
		return (int)cuStreamEndCapture(t.b, &g);
	});
	// Another thread may make calls that a global capture alone forbids, and only the thread that began a capture may end
	// it.
	int results[3];
	CUgraph g;
	for (CUstreamCaptureMode mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, global}) {
		Capturing t(mode);
		std::thread([&] {
			IS(cuCtxSetCurrent(t.c), 0);
			results[0] = cuMemAlloc(&q, 4);
			results[1] = results[0] ? 0 : cuMemFree(q);
			results[2] = t.end(&g);
		}).join();
		IS(results[0], mode == global ? unsupported : 0);
		IS(results[1], 0);
		IS(results[2], CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
		IS(t.end(&g), mode == global ? (int)CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : 0);
		if (g) IS(cuGraphDestroy(g), 0);
	}
	{
		Capturing t(CU_STREAM_CAPTURE_MODE_RELAXED);
		IS(cuMemAlloc(&q, 4), 0);
		IS(cuMemFree(q), 0);
		IS(cuStreamBeginCapture(t.a, global), CUDA_ERROR_ILLEGAL_STATE);
		IS(cuStreamBeginCapture(nullptr, global), unsupported);
		IS(cuMemsetD32(t.p, 1, 1), 0);  // the stream and the null stream do not wait for each other
		IS(cuStreamBeginCapture(t.b, global), 0);
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
		IS(cuStreamEndCapture(t.b, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(t.end(&g), CUDA_ERROR_ILLEGAL_STATE);
		// Work of another stream that nobody waits for.
		IS(cuStreamBeginCapture(t.a, global), 0);
		IS(cuEventRecord(t.e, t.a), 0);
		IS(cuStreamWaitEvent(t.b, t.e, 0), 0);
		IS(cuMemsetD32Async(t.p, 1, 1, t.b), 0);
		IS(t.end(&g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
		// The null stream waits for streams that block.
		CUstream d;
		IS(cuStreamCreate(&d, 0), 0);
		IS(cuStreamBeginCapture(d, CU_STREAM_CAPTURE_MODE_RELAXED), 0);
		IS(cuMemsetD32Async(t.p, 1, 1, nullptr), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
		IS(cuStreamEndCapture(d, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		IS(cuStreamDestroy(d), 0);
		// A fault ends a capture, too.
		IS(cuStreamBeginCapture(t.a, global), 0);
		simFault("cuStreamEndCapture@1=400");
		IS(t.end(&g), CUDA_ERROR_INVALID_HANDLE);
		simFault("");
		CHECK(!g);
		IS(cuStreamSynchronize(t.a), 0);
	}
}
