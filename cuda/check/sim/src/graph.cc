// Stream capture and graphs. Work for a capturing stream becomes nodes of a graph. Calls that the real driver refuses
// then are refused here, and end the capture as there.
#include <algorithm>
#include <queue>

#include "sim.h"

namespace sim {

std::set<CUgraph> graphs;
std::set<CUgraphExec> execs;

namespace {

// streamsOf lists the streams of a capture.
std::vector<CUstream> streamsOf(const Capture &a) {
	std::vector<CUstream> all;
	for (auto &[s, tail] : a.tails) all.push_back(s);
	return all;
}

// leave ends a capture for all its streams.
void leave(const std::shared_ptr<Capture> &a) {
	for (CUstream s : streamsOf(*a)) s->capture = nullptr;
	a->over = true;
}

// joined reports whether all nodes come before the end of the stream where the capture began.
bool joined(const Capture &a) {
	std::vector<bool> seen(a.nodes.size());
	std::vector<size_t> next = a.tails.at(a.origin);
	size_t count = 0;
	while (!next.empty()) {
		size_t n = next.back();
		next.pop_back();
		if (seen[n]) continue;
		seen[n] = true;
		count++;
		next.insert(next.end(), a.nodes[n].after.begin(), a.nodes[n].after.end());
	}
	return count == a.nodes.size();
}

// ordered returns the work of nodes in an order that only their dependencies decide: of those that could run, the one
// captured last comes first.
std::vector<Work> ordered(const std::vector<Node> &nodes) {
	std::vector<size_t> waits(nodes.size());
	std::vector<std::vector<size_t>> then(nodes.size());
	std::priority_queue<size_t> ready;
	for (size_t i = 0; i < nodes.size(); i++) {
		waits[i] = nodes[i].after.size();
		for (size_t before : nodes[i].after) then[before].push_back(i);
		if (!waits[i]) ready.push(i);
	}
	std::vector<Work> work;
	while (!ready.empty()) {
		size_t i = ready.top();
		ready.pop();
		work.push_back(nodes[i].work);
		for (size_t j : then[i])
			if (!--waits[j]) ready.push(j);
	}
	return work;
}

}  // namespace

CUresult spoil(CUstream s, CUresult code) {
	if (s->capture) s->capture->invalid = true;
	return code;
}

CUresult record(CUstream s, Work work) {
	Capture &a = *s->capture;
	if (a.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	std::vector<size_t> &tail = a.tails[s];
	a.nodes.push_back({std::move(work), tail});
	tail = {a.nodes.size() - 1};
	return CUDA_SUCCESS;
}

CUresult implicit(CUcontext c, CUstream s) {
	if (s != &c->null) return CUDA_SUCCESS;
	CUresult r = CUDA_SUCCESS;
	for (CUstream other : c->streams)
		if (other->blocking && other->capture) r = spoil(other, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	return r;
}

CUresult unsafe() {
	CUresult r = CUDA_SUCCESS;
	for (CUcontext c : contexts)
		for (CUstream s : c->streams) {
			if (!s->capture) continue;
			const Capture &a = *s->capture;
			bool mine = a.mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL && a.thread == std::this_thread::get_id();
			if (a.mode == CU_STREAM_CAPTURE_MODE_GLOBAL || mine) r = spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		}
	return r;
}

CUresult enclosing(CUcontext c) {
	CUresult r = CUDA_SUCCESS;
	for (CUstream s : c->streams)
		if (s->capture) r = spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	return r;
}

CUresult waitCaptured(CUstream s, const std::shared_ptr<Record> &r) {
	std::shared_ptr<Capture> of = r ? r->capture : nullptr;
	if (!of) return r ? spoil(s, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
	if (of->over) return spoil(s, CUDA_ERROR_CAPTURED_EVENT);
	if (of->invalid || (s->capture && s->capture->invalid)) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (s->capture && s->capture != of) {
		of->invalid = true;
		return spoil(s, CUDA_ERROR_STREAM_CAPTURE_MERGE);
	}
	s->capture = of;
	std::vector<size_t> &tail = of->tails[s];
	for (size_t n : r->nodes)
		if (std::find(tail.begin(), tail.end(), n) == tail.end()) tail.push_back(n);
	return CUDA_SUCCESS;
}

void dropStream(CUstream s) {
	if (!s->capture) return;
	std::shared_ptr<Capture> a = s->capture;
	a->invalid = true;
	if (s == a->origin) {
		leave(a);
	} else {
		a->tails.erase(s);
	}
}

void dropGraphs(CUcontext c, bool lost) {
	for (CUgraph g : std::set<CUgraph>(graphs)) {
		if (g->context != c) continue;
		graphs.erase(g);
		delete g;
		if (lost) simLive("graphs", -1);
	}
	for (CUgraphExec e : std::set<CUgraphExec>(execs)) {
		if (e->context != c) continue;
		execs.erase(e);
		delete e;
		if (lost) simLive("executable graphs", -1);
	}
}

}  // namespace sim

using namespace sim;

#define STREAM(s)                       \
	CUstream of = resolve(ctx, s);      \
	if (!of) return CUDA_ERROR_INVALID_HANDLE

extern "C" {

CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
	CALL(cuStreamBeginCapture_v2);
	STREAM(s);
	if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
	if (of == &ctx->null) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (of->capture) return CUDA_ERROR_ILLEGAL_STATE;
	of->capture = std::make_shared<Capture>();
	of->capture->origin = of;
	of->capture->mode = mode;
	of->capture->thread = std::this_thread::get_id();
	of->capture->tails[of] = {};
	return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
	CALL(cuStreamIsCapturing);
	STREAM(s);
	if (!status) return CUDA_ERROR_INVALID_VALUE;
	*status = !of->capture ? CU_STREAM_CAPTURE_STATUS_NONE : of->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return CUDA_SUCCESS;
}

// A release leaves the stream usable, whatever happened.
CUresult cuStreamEndCapture(CUstream s, CUgraph *g) {
	RELEASE(cuStreamEndCapture);
	STREAM(s);
	if (!g) return CUDA_ERROR_INVALID_VALUE;
	*g = nullptr;
	std::shared_ptr<Capture> a = of->capture;
	if (!a) return late ? late : CUDA_ERROR_ILLEGAL_STATE;
	if (a->origin != of) return spoil(of, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	if (a->mode != CU_STREAM_CAPTURE_MODE_RELAXED && a->thread != std::this_thread::get_id()) return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	bool whole = a->invalid || joined(*a);
	leave(a);
	if (late) return late;
	if (a->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!whole) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
	*g = new CUgraph_st{ctx, std::move(a->nodes)};
	graphs.insert(*g);
	simLive("graphs", 1);
	return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *e, CUgraph g, unsigned long long flags) {
	CALL(cuGraphInstantiateWithFlags);
	if (!e || flags) return CUDA_ERROR_INVALID_VALUE;
	if (!known(graphs, g)) return CUDA_ERROR_INVALID_HANDLE;
	*e = new CUgraphExec_st{ctx, ordered(g->nodes)};
	execs.insert(*e);
	simLive("executable graphs", 1);
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec e, CUstream s) {
	CALL(cuGraphLaunch);
	STREAM(s);
	if (!known(execs, e) || e->context != ctx) return CUDA_ERROR_INVALID_HANDLE;
	for (const Work &w : e->work)
		if (CUresult r = queue(ctx, of, w)) return r;
	return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph g) {
	RELEASE(cuGraphDestroy);
	if (!known(graphs, g)) return late ? late : CUDA_ERROR_INVALID_HANDLE;
	graphs.erase(g);
	delete g;
	simLive("graphs", -1);
	return late;
}

CUresult cuGraphExecDestroy(CUgraphExec e) {
	RELEASE(cuGraphExecDestroy);
	if (!known(execs, e)) return late ? late : CUDA_ERROR_INVALID_HANDLE;
	execs.erase(e);
	delete e;
	simLive("executable graphs", -1);
	return late;
}

}  // extern "C"
