// NCCL between processes of one machine: each pair of ranks has a box in shared memory, through which their data go in
// pieces. Ranks that do not issue the same operations wait for ever, as with the real library, until they are aborted.
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "device.h"
#include "sim.h"

extern "C" {
#include <nccl.h>
}

namespace {

constexpr int most = 64;            // ranks
constexpr size_t piece = 64 << 10;  // bytes
constexpr long taken = 1 << 20;     // of the device's memory, by a communicator

enum Kind { AllReduce, AllGather, Broadcast, Pair };

// The properties that ranks must agree about.
struct What {
	int kind, type, op, root;
	size_t count;
	bool operator==(const What &o) const { return kind == o.kind && type == o.type && op == o.op && root == o.root && count == o.count; }
};

struct Box {
	std::atomic<int> full;
	What what;
	size_t bytes;
	char data[piece];
};

struct Peer {
	std::atomic<int> here;
	int pid, device;
};

struct Shared {
	std::atomic<int> size, arrived;
	Peer peers[most];
	Box boxes[];  // from one rank to another
};

std::atomic<bool> over;  // the process ends

// State is a communicator, for as long as work on it may come.
struct State {
	Shared *shared = nullptr;
	size_t bytes = 0;
	int rank = 0, size = 0;
	std::vector<int> processes;  // descriptors of the other ranks'
	std::atomic<int> failed{0};
	std::atomic<bool> aborted{false}, closed{false};

	Box &box(int from, int to) { return shared->boxes[from * size + to]; }

	// pass lets a moment pass, and checks the other ranks now and then. It returns false once the communicator was
	// aborted.
	bool pass(int &times) {
		if (aborted || over) return false;
		if (++times < 200) {
			sched_yield();
			return true;
		}
		timespec t{0, 100000};
		nanosleep(&t, nullptr);
		if (times % 100 == 0 && gone()) failed = ncclRemoteError;
		return true;
	}

	// gone reports whether the process of another rank has ended.
	bool gone() {
		for (int fd : processes) {
			pollfd p{fd, POLLIN, 0};
			if (fd >= 0 && poll(&p, 1, 0) > 0) return true;
		}
		return false;
	}

	~State() {
		for (int fd : processes)
			if (fd >= 0) close(fd);
		if (shared) munmap(shared, bytes);
	}
};

// Move is data on the way to or from a rank.
struct Move {
	What what;
	bool send;
	int peer;
	char *at;
	size_t bytes, done;
	bool through;
};

// go makes moves, those of a pair of ranks in their order. It is false if the communicator was aborted.
bool go(State &s, std::vector<Move> &moves) {
	for (int times = 0;;) {
		bool all = true, some = false;
		std::vector<bool> busy(2 * s.size);
		for (Move &m : moves) {
			if (m.through) continue;
			all = false;
			if (busy[2 * m.peer + m.send]) continue;
			busy[2 * m.peer + m.send] = true;
			Box &b = m.send ? s.box(s.rank, m.peer) : s.box(m.peer, s.rank);
			if (b.full.load(std::memory_order_acquire) != !m.send) continue;
			if (!m.send && !(b.what == m.what)) continue;  // for ever
			size_t n = std::min(piece, m.bytes - m.done);
			if (m.send) {
				b.what = m.what;
				b.bytes = n;
				memcpy(b.data, m.at + m.done, n);
			} else {
				if (b.bytes != n) continue;
				memcpy(m.at + m.done, b.data, n);
			}
			b.full.store(m.send, std::memory_order_release);
			m.done += n;
			m.through = m.done == m.bytes;
			some = true;
		}
		if (all) return true;
		if (some) times = 0;
		if (!s.pass(times)) return false;
	}
}

size_t width(int type) {
	switch (type) {
	case ncclFloat32: return 4;
	case ncclInt64: case ncclFloat64: return 8;
	case ncclFloat16: case ncclBfloat16: return 2;
	}
	return 0;
}

template <class T> void combine(char *to, const char *from, size_t n, bool max) {
	T *a = (T *)to;
	const T *b = (const T *)from;
	for (size_t i = 0; i < n; i++) a[i] = max ? std::max(a[i], b[i]) : a[i] + b[i];
}

template <float (*widen)(uint16_t), uint16_t (*narrow)(float)> void combine16(char *to, const char *from, size_t n, bool max) {
	uint16_t *a = (uint16_t *)to;
	const uint16_t *b = (const uint16_t *)from;
	for (size_t i = 0; i < n; i++) {
		float x = widen(a[i]), y = widen(b[i]);
		a[i] = narrow(max ? std::max(x, y) : x + y);
	}
}

void combine(int type, char *to, const char *from, size_t n, bool max) {
	switch (type) {
	case ncclInt64: return combine<int64_t>(to, from, n, max);
	case ncclFloat32: return combine<float>(to, from, n, max);
	case ncclFloat64: return combine<double>(to, from, n, max);
	case ncclFloat16: return combine16<sim::fromHalf, sim::toHalf>(to, from, n, max);
	case ncclBfloat16: return combine16<sim::fromBFloat16, sim::toBFloat16>(to, from, n, max);
	}
}

// Task is one operation.
struct Task {
	What what;
	const char *from;
	char *to;
	size_t bytes;  // of this rank
	bool send;     // of a pair
	int peer;
};

// collective runs an operation of all ranks.
bool collective(State &s, const Task &t) {
	std::vector<Move> moves;
	auto move = [&](bool send, int peer, const void *at, size_t n) {
		if (n) moves.push_back({t.what, send, peer, (char *)at, n, 0, false});
	};
	if (t.what.kind == Broadcast) {
		if (s.rank == t.what.root) {
			for (int k = 0; k < s.size; k++)
				if (k != s.rank) move(true, k, t.from, t.bytes);
			if (t.to != t.from) memmove(t.to, t.from, t.bytes);
		} else {
			move(false, t.what.root, t.to, t.bytes);
		}
		return go(s, moves);
	}
	if (t.what.kind == AllGather) {
		char *own = t.to + s.rank * t.bytes;
		if (own != t.from) memmove(own, t.from, t.bytes);
		for (int k = 0; k < s.size; k++) {
			if (k == s.rank) continue;
			move(true, k, own, t.bytes);
			move(false, k, t.to + k * t.bytes, t.bytes);
		}
		return go(s, moves);
	}
	std::vector<char> parts(piece * s.size);
	size_t w = width(t.what.type);
	for (size_t at = 0; at < t.bytes; at += piece) {
		size_t n = std::min(piece, t.bytes - at);
		moves.clear();
		memcpy(&parts[s.rank * piece], t.from + at, n);
		for (int k = 0; k < s.size; k++) {
			if (k == s.rank) continue;
			move(true, k, &parts[s.rank * piece], n);
			move(false, k, &parts[k * piece], n);
		}
		if (!go(s, moves)) return false;
		for (int k = 1; k < s.size; k++) combine(t.what.type, &parts[0], &parts[k * piece], n / w, t.what.op == ncclMax);
		memcpy(t.to + at, &parts[0], n);
	}
	return true;
}

// run runs the operations of a group: those of all ranks in turn, then those of pairs beside each other.
std::string run(State &s, const std::vector<Task> &tasks) {
	if (s.aborted) return "";
	if (s.closed) return "an operation of a communicator that was destroyed";
	std::vector<Move> moves;
	std::vector<const Task *> own[2];  // to and from this rank itself
	for (const Task &t : tasks) {
		if (t.what.kind != Pair) {
			if (!collective(s, t)) return "";
		} else if (t.peer == s.rank) {
			own[t.send].push_back(&t);
		} else if (t.bytes) {
			moves.push_back({t.what, t.send, t.peer, t.send ? (char *)t.from : t.to, t.bytes, 0, false});
		}
	}
	for (size_t i = 0; i < std::min(own[0].size(), own[1].size()); i++) memmove(own[0][i]->to, own[1][i]->from, std::min(own[0][i]->bytes, own[1][i]->bytes));
	go(s, moves);
	return "";
}

// A thread's state in a group.
struct Issue {
	std::shared_ptr<State> state;
	CUstream stream;
	Task task;
};
thread_local int depth;
thread_local std::vector<Issue> group;
thread_local std::string last;

ncclResult_t refuse(ncclResult_t code, const std::string &why) {
	last = why;
	return code;
}

// launch queues the operations of a group.
ncclResult_t launch() {
	std::vector<Issue> all = std::move(group);
	group.clear();
	if (all.empty()) return ncclSuccess;
	std::vector<Task> tasks;
	for (const Issue &i : all) {
		if (i.stream != all[0].stream || i.state != all[0].state) return refuse(ncclInvalidUsage, "the stand-in takes groups of one communicator and one stream");
		tasks.push_back(i.task);
	}
	std::function<std::string()> work = [state = all[0].state, tasks] { return run(*state, tasks); };
	return simQueue(all[0].stream, &work) ? ncclUnhandledCudaError : ncclSuccess;
}

}  // namespace

struct ncclComm {
	std::shared_ptr<State> state;
	CUcontext context;
};

namespace {

std::set<ncclComm_t> comms;  // under the lock

// enter begins a call; a code other than ncclSuccess ends it.
ncclResult_t enter(const char *name) {
	int bad = simEnter(name);
	if (simDead()) return ncclUnhandledCudaError;
	return (ncclResult_t)bad;
}

ncclResult_t issue(const char *name, ncclComm_t c, CUstream stream, int type, size_t count, Task t) {
	std::lock_guard<std::recursive_mutex> held(sim::lock);
	if (ncclResult_t bad = enter(name)) return bad;
	if (!comms.count(c)) return refuse(ncclInvalidArgument, std::string(name) + " : not a communicator");
	State &s = *c->state;
	if (s.failed) return (ncclResult_t)s.failed.load();
	if (!width(type)) return refuse(ncclInvalidArgument, std::string(name) + " : invalid type");
	if (t.what.root < 0 || t.what.root >= s.size || t.peer < 0 || t.peer >= s.size) return refuse(ncclInvalidArgument, std::string(name) + " : invalid root or peer");
	if (count && (!t.to || !t.from)) return refuse(ncclInvalidArgument, std::string(name) + " : a buffer is NULL");
	if (sim::current != c->context) return refuse(ncclInvalidArgument, std::string(name) + " : the communicator is of another device");
	t.what.type = type;
	t.what.count = count;
	t.bytes = count * width(type);
	group.push_back({c->state, stream, t});
	return depth ? ncclSuccess : launch();
}

// progress runs queued work of contexts with communicators now and then: other ranks wait for it, even while nobody
// here does.
void progress() {
	while (!over) {
		usleep(10000);
		if (!sim::lock.try_lock()) continue;
		std::set<CUcontext> busy;
		for (ncclComm_t c : comms) busy.insert(c->context);
		for (CUcontext c : busy) {
			sim::current = c;
			bool idle = c->null.work.empty();
			for (CUstream s : c->streams) idle = idle && s->work.empty();
			if (!idle) sim::drainAll(c);
		}
		sim::current = nullptr;
		sim::lock.unlock();
	}
}

void startProgress() {
	static std::thread thread;
	if (thread.joinable()) return;
	thread = std::thread(progress);
	atexit([] {
		over = true;
		thread.join();
	});
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *v) {
	*v = sim::setting("RNA_SIM_NCCL", 22703);
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t code) {
	switch (code) {
	case ncclSuccess: return "no error";
	case ncclUnhandledCudaError: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
	case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
	case ncclInternalError: return "internal error - please report this issue to the NCCL developers";
	case ncclInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
	case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
	case ncclRemoteError: return "remote process exited or there was a network error";
	case ncclInProgress: return "NCCL operation in progress";
	}
	return "unknown result code";
}

const char *ncclGetLastError(ncclComm_t) { return last.c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
	if (ncclResult_t bad = enter("ncclGetUniqueId")) return bad;
	unsigned char random[12];
	if (getentropy(random, sizeof random)) return ncclSystemError;
	memset(id, 0, sizeof *id);
	int at = snprintf(id->internal, sizeof id->internal, "/rna-sim-nccl-");
	for (unsigned char b : random) at += snprintf(id->internal + at, sizeof id->internal - at, "%02x", b);
	return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config) {
	int device = 0;
	{
		std::lock_guard<std::recursive_mutex> held(sim::lock);
		if (ncclResult_t bad = enter("ncclCommInitRankConfig")) return bad;
		if (!sim::current) return refuse(ncclUnhandledCudaError, "no context is current");
		if (size < 1 || size > most || rank < 0 || rank >= size) return refuse(ncclInvalidArgument, "Invalid rank requested : " + std::to_string(rank) + "/" + std::to_string(size));
		if (config && (config->magic != 0xcafebeef || config->size < sizeof *config)) return refuse(ncclInvalidArgument, "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
		if (config && config->blocking == 0) return refuse(ncclInvalidUsage, "the stand-in's communicators are blocking");
		if (sim::unsafe()) return refuse(ncclInvalidUsage, "a communicator is not made inside a capture");
		device = sim::physical(sim::current->device);
		if (simTake(sim::current, taken)) return refuse(ncclUnhandledCudaError, "Cuda failure 'out of memory'");
	}
	auto s = std::make_shared<State>();
	s->rank = rank;
	s->size = size;
	s->bytes = sizeof(Shared) + sizeof(Box) * size * size;
	auto give = [&](ncclResult_t code, const std::string &why) {
		std::lock_guard<std::recursive_mutex> held(sim::lock);
		simTake(sim::current, -taken);
		return refuse(code, why);
	};
	std::string name(id.internal, strnlen(id.internal, sizeof id.internal));
	int fd = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, s->bytes)) return give(ncclSystemError, "shared memory " + name);
	void *p = mmap(nullptr, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (p == MAP_FAILED) return give(ncclSystemError, "shared memory " + name);
	s->shared = (Shared *)p;
	int none = 0;
	// another number of ranks: for ever
	while (!s->shared->size.compare_exchange_strong(none, size) && none != size) sleep(1);
	Peer &me = s->shared->peers[rank];
	me.pid = getpid();
	me.device = device;
	if (me.here.exchange(1)) return give(ncclInvalidUsage, "rank " + std::to_string(rank) + " is there twice");
	s->processes.assign(size, -1);
	for (int k = 0; k < size; k++) {
		for (int times = 0; !s->shared->peers[k].here;)
			if (s->pass(times) && s->failed) return give(ncclRemoteError, "a rank has ended");
		if (k == rank) continue;
		s->processes[k] = syscall(SYS_pidfd_open, s->shared->peers[k].pid, 0);
		if (s->processes[k] < 0) s->failed = ncclRemoteError;  // it has ended by now
	}
	if (++s->shared->arrived == size) shm_unlink(name.c_str());
	for (int k = 0; k < size; k++)
		if (k != rank && s->shared->peers[k].device == device)
			return give(ncclInvalidUsage, "Duplicate GPU detected : rank " + std::to_string(rank) + " and rank " + std::to_string(k) + " both on CUDA device " + std::to_string(device));
	std::lock_guard<std::recursive_mutex> held(sim::lock);
	*comm = new ncclComm{s, nullptr};
	simHandle("communicators", &(*comm)->context, 1);
	comms.insert(*comm);
	startProgress();
	return ncclSuccess;
}

// drop gives a communicator back. Queued work still uses its state.
static void drop(ncclComm_t c) {
	simTake(c->context, -taken);
	simHandle("communicators", &c->context, -1);
	comms.erase(c);
	delete c;
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
	std::lock_guard<std::recursive_mutex> held(sim::lock);
	simHangs("ncclCommDestroy");
	ncclResult_t late = enter("ncclCommDestroy");
	if (!comms.count(c)) return refuse(ncclInvalidArgument, "ncclCommDestroy : not a communicator");
	sim::drainAll(c->context);
	if (c->state.use_count() > 1) {
		fprintf(stderr, "sim: ncclCommDestroy waits for ever for graphs that hold the communicator's operations\n");
		abort();
	}
	c->state->closed = true;
	drop(c);
	return late;
}

// Another thread may wait for the communicator's work, under the lock.
ncclResult_t ncclCommAbort(ncclComm_t c) {
	c->state->aborted = true;
	std::lock_guard<std::recursive_mutex> held(sim::lock);
	ncclResult_t late = enter("ncclCommAbort");
	if (!comms.count(c)) return refuse(ncclInvalidArgument, "ncclCommAbort : not a communicator");
	drop(c);
	return late;
}

// Without the lock, for the same reason.
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *code) {
	*code = (ncclResult_t)c->state->failed.load();
	return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op, ncclComm_t c, CUstream s) {
	if (op != ncclSum && op != ncclMax) return refuse(ncclInvalidArgument, "ncclAllReduce : the stand-in has sums and maxima");
	return issue("ncclAllReduce", c, s, type, n, {{AllReduce, 0, op, 0, 0}, (const char *)from, (char *)to, 0, false, 0});
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t c, CUstream s) {
	return issue("ncclAllGather", c, s, type, n, {{AllGather, 0, 0, 0, 0}, (const char *)from, (char *)to, 0, false, 0});
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t n, ncclDataType_t type, int root, ncclComm_t c, CUstream s) {
	return issue("ncclBroadcast", c, s, type, n, {{Broadcast, 0, 0, root, 0}, (const char *)from, (char *)to, 0, false, 0});
}

ncclResult_t ncclSend(const void *from, size_t n, ncclDataType_t type, int peer, ncclComm_t c, CUstream s) {
	return issue("ncclSend", c, s, type, n, {{Pair, 0, 0, 0, 0}, (const char *)from, (char *)from, 0, true, peer});
}

ncclResult_t ncclRecv(void *to, size_t n, ncclDataType_t type, int peer, ncclComm_t c, CUstream s) {
	return issue("ncclRecv", c, s, type, n, {{Pair, 0, 0, 0, 0}, (const char *)to, (char *)to, 0, false, peer});
}

ncclResult_t ncclGroupStart(void) {
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
	if (depth == 0) return refuse(ncclInvalidUsage, "ncclGroupEnd: not in a group call.");
	if (--depth) return ncclSuccess;
	std::lock_guard<std::recursive_mutex> held(sim::lock);
	return launch();
}

}  // extern "C"
