// NVRTC on the CPU: g++ compiles the source. The result carries the inputs that it was made from.
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <nvrtc.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "image.h"

extern "C" int simEnter(const char *function);
extern "C" void simLive(const char *kind, int change);
extern char **environ;

struct _nvrtcProgram {
	std::string source, name, log, image;
	std::string options;  // -D… that it was compiled with
	std::vector<std::pair<std::string, std::string>> headers;  // name, text
};

namespace {

std::mutex lock;
std::set<nvrtcProgram> programs;
constexpr int archs[] = {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121};

// strip leaves comments out.
std::string strip(const std::string &source) {
	std::string text;
	for (size_t i = 0; i < source.size(); i++) {
		size_t end = std::string::npos;
		if (source.compare(i, 2, "//") == 0)
			end = source.find('\n', i);
		else if (source.compare(i, 2, "/*") == 0)
			end = source.find("*/", i + 2);
		else {
			text += source[i];
			continue;
		}
		if (end == std::string::npos) break;
		text += ' ';
		i = source[end] == '*' ? end + 1 : end;
	}
	return text;
}

// kernels lists the functions of a source that are declared __global__ void [__launch_bounds__(…)] name(.
std::vector<std::string> kernels(const std::string &source) {
	std::string text = strip(source);
	std::vector<std::string> names;
	size_t at = 0;
	auto space = [&] { while (at < text.size() && isspace((unsigned char)text[at])) at++; };
	auto word = [&] {
		space();
		size_t from = at;
		while (at < text.size() && (isalnum((unsigned char)text[at]) || text[at] == '_')) at++;
		return text.substr(from, at - from);
	};
	while ((at = text.find("__global__", at)) != std::string::npos) {
		at += strlen("__global__");
		std::string name = word();
		while (name == "void" || name == "__launch_bounds__") {
			space();
			if (name == "__launch_bounds__") at = std::min(text.find(')', at), text.size() - 1) + 1;
			name = word();
		}
		space();
		if (!name.empty() && at < text.size() && text[at] == '(') names.push_back(name);
	}
	return names;
}

bool writeFile(const std::string &path, const std::string &text) {
	FILE *f = fopen(path.c_str(), "wb");
	if (!f) return false;
	bool ok = fwrite(text.data(), 1, text.size(), f) == text.size();
	return (fclose(f) == 0) && ok;
}

std::string readFile(const std::string &path) {
	std::string text;
	if (FILE *f = fopen(path.c_str(), "rb")) {
		char part[1 << 16];
		for (size_t n; (n = fread(part, 1, sizeof part, f)) > 0;) text.append(part, n);
		fclose(f);
	}
	return text;
}

// ahead is the folder of this library if device.h lies there, compiled ahead.
const std::string &ahead() {
	static const std::string folder = [] {
		Dl_info self;
		if (!dladdr((void *)&nvrtcVersion, &self) || !self.dli_fname) return std::string();
		std::string path = self.dli_fname;
		path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
		return access((path + "/sim.h.gch").c_str(), R_OK) == 0 ? path : std::string();
	}();
	return folder;
}

// compile runs g++ in folder and returns whether it succeeded.
bool compile(const std::string &folder, const std::vector<std::string> &options) {
	const char *chosen = getenv("RNA_SIM_CXX");
	std::vector<std::string> words = {chosen && *chosen ? chosen : "g++"};
	std::string flags = simFlags();
	for (size_t from = 0; from < flags.size();) {
		size_t to = flags.find(' ', from);
		if (to == std::string::npos) to = flags.size();
		if (to > from) words.push_back(flags.substr(from, to - from));
		from = to + 1;
	}
	words.insert(words.end(), options.begin(), options.end());
	if (!ahead().empty()) words.push_back("-I" + ahead());
	words.insert(words.end(), {"-I" + folder, "-o", folder + "/kernels.so", folder + "/kernels.cu"});
#ifdef SIM_CHECKED
	words.push_back("-lstdc++");  // no other library: g++ would add its own ThreadSanitizer
#endif
	std::vector<char *> args;
	for (std::string &w : words) args.push_back(w.data());
	args.push_back(nullptr);
	// Not the sanitiser that may be loaded into this process.
	std::vector<char *> env;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, "LD_PRELOAD=", 11)) env.push_back(*e);
	env.push_back(nullptr);
	posix_spawn_file_actions_t files;
	posix_spawn_file_actions_init(&files);
	std::string log = folder + "/log";
	posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	pid_t pid;
	int bad = posix_spawnp(&pid, args[0], &files, nullptr, args.data(), env.data());
	posix_spawn_file_actions_destroy(&files);
	if (bad) {
		writeFile(log, std::string(args[0]) + ": " + strerror(bad) + "\n");
		return false;
	}
	int status = 0;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// image is a shared object as the driver takes it.
std::string image(nvrtcProgram p, const std::string &object) {
	SimHeader h{};
	memcpy(h.magic, simMagic, sizeof h.magic);
	h.identity = simIdentity();
	h.bytes = object.size();
	std::string source = p->options + "\n" + p->source;
	h.source = source.size();
	return std::string((const char *)&h, sizeof h) + object + source;
}

// kept is the file for g++'s output for these words in the folder RNA_SIM_KEPT, or empty without such a folder.
std::string kept(nvrtcProgram p, const std::string &text, const std::vector<std::string> &options) {
	const char *folder = getenv("RNA_SIM_KEPT"), *chosen = getenv("RNA_SIM_CXX");
	if (!folder || !*folder) return "";
	std::vector<std::string> words = {chosen ? chosen : "", std::to_string(simIdentity()), text};
	words.insert(words.end(), options.begin(), options.end());
	for (auto &[name, header] : p->headers) words.insert(words.end(), {name, header});
	unsigned __int128 h = ((unsigned __int128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d;  // FNV-1a
	const unsigned __int128 prime = ((unsigned __int128)1 << 88) | 0x13b;
	for (const std::string &w : words)
		for (size_t i = 0; i <= w.size(); i++) h = (h ^ (unsigned char)w.c_str()[i]) * prime;
	char name[40];
	snprintf(name, sizeof name, "/%016llx%016llx", (unsigned long long)(h >> 64), (unsigned long long)h);
	return folder + std::string(name);
}

// keep writes a file that appears whole or not at all.
void keep(const std::string &path, const std::string &object) {
	std::string part = path + "." + std::to_string(gettid());
	if (!writeFile(part, object) || rename(part.c_str(), path.c_str())) unlink(part.c_str());
}

nvrtcResult build(nvrtcProgram p, const std::vector<std::string> &options) {
	std::vector<std::string> names = kernels(p->source);
	std::string before = ahead().empty() ? std::string("#define SIM_SOURCE\n#line 1 \"device.h\"\n") + simDeviceText() : "#include \"sim.h\"";
	std::string text = before + "\n#line 1 \"" + p->name + "\"\n" + p->source + "\nSIM_KERNELS(";
	for (size_t i = 0; i < names.size(); i++) text += (i ? ", SIM_KERNEL(" : "SIM_KERNEL(") + names[i] + ")";
	text += ")\n";
	std::string path = kept(p, text, options);
	std::string object = path.empty() ? "" : readFile(path);
	if (!object.empty()) {
		p->log.clear();
		p->image = image(p, object);
		return NVRTC_SUCCESS;
	}
	const char *tmp = getenv("TMPDIR");
	std::string folder = std::string(tmp && *tmp ? tmp : P_tmpdir) + "/onlinerna-sim-XXXXXX";
	if (!mkdtemp(folder.data())) return NVRTC_ERROR_INTERNAL_ERROR;
	std::vector<std::string> left = {"kernels.cu", "kernels.so", "log"};
	bool ok = writeFile(folder + "/kernels.cu", text);
	for (auto &[name, header] : p->headers) {
		ok = ok && name.find('/') == std::string::npos && writeFile(folder + "/" + name, header);
		left.push_back(name);
	}
	nvrtcResult result = ok ? NVRTC_SUCCESS : NVRTC_ERROR_INTERNAL_ERROR;
	if (ok && names.empty()) {
		p->log = p->name + ": no __global__ function\n";
		result = NVRTC_ERROR_COMPILATION;
	} else if (ok) {
		if (!compile(folder, options)) result = NVRTC_ERROR_COMPILATION;
		p->log = readFile(folder + "/log");
	}
	if (result == NVRTC_SUCCESS) {
		object = readFile(folder + "/kernels.so");
		p->image = image(p, object);
		if (!path.empty()) keep(path, object);
	}
	for (const std::string &name : left) unlink((folder + "/" + name).c_str());
	rmdir(folder.c_str());
	return result;
}

// translate gives the g++ options for NVRTC's.
nvrtcResult translate(int n, const char *const *options, std::vector<std::string> &out, std::string &log) {
	for (int i = 0; i < n; i++) {
		std::string o = options[i];
		auto value = [&](const char *name) {
			std::string with = std::string(name) + "=";
			return o.compare(0, with.size(), with) ? "" : o.substr(with.size());
		};
		std::string arch = value("-arch") + value("--gpu-architecture"), number;
		if (!arch.empty()) {
			if (arch.compare(0, 3, "sm_") == 0) number = arch.substr(3);
			if (arch.compare(0, 8, "compute_") == 0) number = arch.substr(8);
			bool known = false;
			for (int a : archs) known = known || atoi(number.c_str()) == a;
			if (!known) {
				log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
				return NVRTC_ERROR_INVALID_OPTION;
			}
			out.push_back("-D__CUDA_ARCH__=" + std::to_string(atoi(number.c_str()) * 10));
		} else if (o == "--fmad=false" || o == "-fmad=false") {
			out.push_back("-ffp-contract=off");
		} else if (o.compare(0, 2, "-D") == 0 || o.compare(0, 2, "-U") == 0) {
			out.push_back(o);
		} else if (o.compare(0, 9, "--define-") == 0) {
			out.push_back("-D" + value("--define-macro"));
		} else if (o.compare(0, 5, "-std=") != 0 && o.compare(0, 6, "--std=") != 0 && o != "-default-device" && o != "--device-as-default-execution-space" &&
		           o != "-lineinfo" && o != "--generate-line-info" && o.compare(0, 6, "--fmad") != 0) {
			log = "nvrtc: error: unrecognized option " + o + " found\n";
			return NVRTC_ERROR_INVALID_OPTION;
		}
	}
	return NVRTC_SUCCESS;
}

nvrtcResult give(nvrtcProgram p, const std::string &text, char *to, size_t *size) {
	if (!programs.count(p)) return NVRTC_ERROR_INVALID_PROGRAM;
	if (size) *size = text.size();
	if (to) memcpy(to, text.data(), text.size());
	return NVRTC_SUCCESS;
}

#define BEGIN(name)                              \
	std::lock_guard<std::mutex> held(lock);      \
	if (int bad = simEnter(#name)) return (nvrtcResult)bad
#define PROGRAM(p) \
	if (!programs.count(p)) return NVRTC_ERROR_INVALID_PROGRAM

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int *major, int *minor) { *major = 12; *minor = 9; return NVRTC_SUCCESS; }
nvrtcResult nvrtcGetNumSupportedArchs(int *n) { *n = sizeof archs / sizeof *archs; return NVRTC_SUCCESS; }
nvrtcResult nvrtcGetSupportedArchs(int *to) { memcpy(to, archs, sizeof archs); return NVRTC_SUCCESS; }

nvrtcResult nvrtcCreateProgram(nvrtcProgram *p, const char *source, const char *name, int n, const char *const *headers, const char *const *names) {
	BEGIN(nvrtcCreateProgram);
	if (!p || !source || n < 0) return NVRTC_ERROR_INVALID_INPUT;
	*p = new _nvrtcProgram();
	(*p)->source = source;
	(*p)->name = name && *name ? name : "default_program";
	for (int i = 0; i < n; i++) (*p)->headers.emplace_back(names[i], headers[i]);
	programs.insert(*p);
	simLive("NVRTC programs", 1);
	return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *p) {
	std::lock_guard<std::mutex> held(lock);
	if (!p || !programs.count(*p)) return NVRTC_ERROR_INVALID_PROGRAM;
	programs.erase(*p);
	delete *p;
	*p = nullptr;
	simLive("NVRTC programs", -1);
	return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram p, int n, const char *const *options) {
	BEGIN(nvrtcCompileProgram);
	PROGRAM(p);
	std::vector<std::string> more;
	if (nvrtcResult r = translate(n, options, more, p->log)) return r;
	p->options.clear();
	for (int i = 0; i < n; i++)
		if (strncmp(options[i], "-D", 2) == 0) p->options += std::string(p->options.empty() ? "" : " ") + options[i];
	return build(p, more);
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram p, size_t *n) { BEGIN(nvrtcGetCUBINSize); PROGRAM(p); return give(p, p->image, nullptr, n); }
nvrtcResult nvrtcGetCUBIN(nvrtcProgram p, char *to) { BEGIN(nvrtcGetCUBIN); PROGRAM(p); return give(p, p->image, to, nullptr); }
nvrtcResult nvrtcGetPTXSize(nvrtcProgram p, size_t *n) { BEGIN(nvrtcGetPTXSize); PROGRAM(p); return give(p, p->image, nullptr, n); }
nvrtcResult nvrtcGetPTX(nvrtcProgram p, char *to) { BEGIN(nvrtcGetPTX); PROGRAM(p); return give(p, p->image, to, nullptr); }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram p, size_t *n) { BEGIN(nvrtcGetProgramLogSize); PROGRAM(p); *n = p->log.size() + 1; return NVRTC_SUCCESS; }
nvrtcResult nvrtcGetProgramLog(nvrtcProgram p, char *to) { BEGIN(nvrtcGetProgramLog); PROGRAM(p); memcpy(to, p->log.c_str(), p->log.size() + 1); return NVRTC_SUCCESS; }

}  // extern "C"
