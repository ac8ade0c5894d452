// Faults on demand, and the count of unreleased objects.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "sim.h"

namespace sim {

std::recursive_mutex lock;

namespace {

struct Fault {
	std::string function;  // or *
	unsigned long long at; // its call, 0 for each
	int code;
	bool later, sticky;
	unsigned long long seen;
};
std::vector<Fault> faults;
int dead;  // the code of the failure that ended the process's use of GPUs: it stays
bool started;
std::map<std::string, unsigned long long> calls;
std::map<std::string, long> live;

// parse reads FUNCTION@K=CODE[,later][,sticky][;…].
bool parse(const char *text, std::vector<Fault> &out) {
	std::string all = text ? text : "";
	for (size_t from = 0; from < all.size();) {
		size_t to = all.find(';', from);
		if (to == std::string::npos) to = all.size();
		std::string one = all.substr(from, to - from);
		from = to + 1;
		char name[100], rest[100] = "";
		Fault f{};
		int used = 0;
		if (sscanf(one.c_str(), "%99[A-Za-z0-9_*]@%llu=%d%n%99s", name, &f.at, &f.code, &used, rest) < 3 || f.code == 0) return false;
		f.function = name;
		for (char *word = strtok(rest, ","); word; word = strtok(nullptr, ",")) {
			if (!strcmp(word, "later"))
				f.later = true;
			else if (!strcmp(word, "sticky"))
				f.sticky = true;
			else
				return false;
		}
		out.push_back(f);
	}
	return true;
}

// fatal reports whether an error ends a context.
bool fatal(int code) { return code == 214 || code == 220 || code == 226 || code == 700 || code == 702 || (code >= 709 && code <= 719) || code == 721 || code == 999; }

void start() {
	if (started) return;
	started = true;
	if (!parse(getenv("RNA_SIM_FAULT"), faults)) {
		fprintf(stderr, "sim: RNA_SIM_FAULT: want FUNCTION@K=CODE[,later][,sticky][;…]\n");
		exit(2);
	}
}

}  // namespace

long setting(const char *name, long fallback) {
	const char *text = getenv(name);
	return text && *text ? atol(text) : fallback;
}

namespace {

// listed calls f with the parts of a list.
template <class F> void listed(const char *text, F f) {
	std::string all = text ? text : "";
	for (size_t from = 0; from <= all.size() && !all.empty();) {
		size_t to = std::min(all.find(',', from), all.size());
		if (!f(all.substr(from, to - from))) return;
		from = to + 1;
	}
}

// visible lists the numbers of the visible devices as the driver does: those that CUDA_VISIBLE_DEVICES names, up to the
// first name of no device.
std::vector<int> visible() {
	std::vector<int> all;
	int n = setting("RNA_SIM_DEVICES", 1);
	const char *names = getenv("CUDA_VISIBLE_DEVICES");
	if (!names) {
		for (int i = 0; i < n; i++) all.push_back(i);
		return all;
	}
	listed(names, [&](const std::string &name) {
		int found = -1;
		for (int i = 0; i < n; i++)
			if (name == std::to_string(i) || (name.size() >= 8 && uuidText(i).compare(0, name.size(), name) == 0)) found = i;
		for (int i : all)
			if (i == found) found = -1;
		if (found >= 0) all.push_back(found);
		return found >= 0;
	});
	return all;
}

}  // namespace

std::string uuidText(int device) {
	char text[50];
	snprintf(text, sizeof text, "%s-7374616e-642d-696e-0000-0000000000%02x", setting("RNA_SIM_MIG", 0) ? "MIG" : "GPU", device);
	return text;
}
int deviceCount() { return visible().size(); }
int physical(int device) { return visible()[device]; }
size_t elsewhere(int device) {
	size_t bytes = 0;
	listed(getenv("RNA_SIM_USED"), [&](const std::string &one) {
		if (atoi(one.c_str()) == physical(device) && one.find(':') != std::string::npos) bytes = atoll(one.c_str() + one.find(':') + 1);
		return true;
	});
	return bytes;
}
size_t deviceBytes() { return setting("RNA_SIM_MEMORY", 1l << 30); }
int capability() { return setting("RNA_SIM_ARCH", 90); }

CUresult fail(CUcontext c, CUresult code, const std::string &why) {
	if (c && !dead) {
		dead = code;
		fprintf(stderr, "sim: %s\n", why.c_str());
	}
	return code;
}

}  // namespace sim

using namespace sim;

int simEnter(const char *function) {
	std::lock_guard<std::recursive_mutex> held(lock);
	start();
	calls[function]++;
	calls[""]++;
	if (dead) return dead;
	bool driver = strncmp(function, "cu", 2) == 0 && strncmp(function, "cublas", 6) != 0 && strncmp(function, "cudnn", 5) != 0;
	for (Fault &f : faults) {
		if (f.function != function && !(f.function == "*" && driver)) continue;
		f.seen++;
		if (f.at != 0 && f.seen != f.at) continue;
		if (f.later) {
			if (current && !dead) current->pending = (CUresult)f.code;
			continue;
		}
		if (f.sticky || (driver && fatal(f.code))) dead = f.code;
		return f.code;
	}
	return 0;
}

int simDead() { return dead; }

void simHangs(const char *function) {
	if (!dead) return;
	fprintf(stderr, "sim: %s on a GPU that is lost may wait for ever\n", function);
	abort();
}

int simFault(const char *plan) {
	std::lock_guard<std::recursive_mutex> held(lock);
	start();
	std::vector<Fault> next;
	if (!parse(plan, next)) return 1;
	faults = next;
	return 0;
}

void simLive(const char *kind, int change) {
	std::lock_guard<std::recursive_mutex> held(lock);
	live[kind] += change;
}

void simHandle(const char *kind, CUcontext *owner, int change) {
	std::lock_guard<std::recursive_mutex> held(lock);
	if (change > 0) *owner = current;
	if (!known(contexts, *owner)) return;  // it went with its context
	(*owner)->handles[kind] += change;
	live[kind] += change;
}

const char *simLeaks() {
	std::lock_guard<std::recursive_mutex> held(lock);
	static std::string text;
	text.clear();
	if (dead) return text.c_str();  // it goes with the process
	for (auto &[kind, n] : live)
		if (n) text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + kind;
	return text.c_str();
}

static unsigned long long moved[2];
void simMove(size_t read, size_t written) { moved[0] += read, moved[1] += written; }
void simMoved(unsigned long long *read, unsigned long long *written) {
	std::lock_guard<std::recursive_mutex> held(lock);
	*read = moved[0], *written = moved[1];
}

int simChecks() {
#ifdef SIM_CHECKED
	return 1;
#else
	return 0;
#endif
}

void simLaunched(const char *kernel) {
	std::lock_guard<std::recursive_mutex> held(lock);
	calls[kernel]++;
}

unsigned long long simCalls(const char *function) {
	std::lock_guard<std::recursive_mutex> held(lock);
	return calls[function];
}
