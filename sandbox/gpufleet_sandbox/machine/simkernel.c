/*
 * The simulated kernel of a sandbox host: /etc/ld.so.preload loads it into all programs.
 *
 * It provides what a container lacks: the kernel release, loading and unloading of modules (by
 * running /usr/lib/sim/kmod, whose exit status is the errno), /proc/modules, use counts, a clock
 * with an offset, and NVML. All other calls go to the real libc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KMOD "/usr/lib/sim/kmod"
#define NVML "/usr/lib/sim/libnvidia-ml.so.1"
#define MODULES "/run/sim/modules"
#define SIGNED "~Module signature appended~\n"
#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

extern char **environ;

/* The first line of a small file; does not change `text` without one. */
static void first_line(const char *path, char *text, size_t size)
{
	char line[65];
	int fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	ssize_t length = read(fd, line, sizeof line - 1);
	close(fd);
	if (length <= 0)
		return;
	line[length] = 0;
	line[strcspn(line, "\n")] = 0;
	if (*line)
		snprintf(text, size, "%s", line);
}

int uname(struct utsname *name)
{
	long result = syscall(SYS_uname, name);
	if (result == 0) {
		first_line("/run/sim/osrelease", name->release, sizeof name->release);
		first_line("/run/sim/osversion", name->version, sizeof name->version);
	}
	return result;
}

/* ---- modules ---------------------------------------------------------------------------- */

struct module {
	const char *name, *version, *vermagic, *depends, *license;
	int has_signature;
};

static int kmod(const char *verb, const char *name, const struct module *module)
{
	static const struct module nothing;
	const struct module *m = module ? module : &nothing;
#define TEXT(field) (m->field ? m->field : "")
	const char *argv[] = {KMOD, verb, name, TEXT(version), TEXT(vermagic), TEXT(depends),
			      TEXT(license), m->has_signature ? "signed" : "", NULL};
	pid_t pid;
	int status;

	setenv("SIM_HOOK", "1", 1);
	int failed = posix_spawn(&pid, KMOD, NULL, NULL, (char **)argv, environ);
	unsetenv("SIM_HOOK");
	if (failed) {
		errno = ENOSYS;
		return -1;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
	return -1;
}

static void read_modinfo(const char *start, const char *end, struct module *module)
{
	const struct {
		const char *key;
		const char **field;
	} fields[] = {{"name=", &module->name},
		      {"version=", &module->version},
		      {"vermagic=", &module->vermagic},
		      {"depends=", &module->depends},
		      {"license=", &module->license}};

	for (const char *entry = start; entry < end; entry += strnlen(entry, end - entry) + 1)
		for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
			if (!strncmp(entry, fields[i].key, strlen(fields[i].key)))
				*fields[i].field = entry + strlen(fields[i].key);
}

int init_module(void *image, unsigned long length, const char *options)
{
	struct module module = {0};
	Elf64_Ehdr *header = image;
	size_t mark = strlen(SIGNED);

	(void)options;
	if (length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_shoff + header->e_shnum * sizeof(Elf64_Shdr) > length) {
		errno = ENOEXEC;
		return -1;
	}
	Elf64_Shdr *sections = (void *)((char *)image + header->e_shoff);
	const char *names = (char *)image + sections[header->e_shstrndx].sh_offset;
	for (int i = 0; i < header->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".modinfo"))
			read_modinfo((char *)image + sections[i].sh_offset,
				     (char *)image + sections[i].sh_offset + sections[i].sh_size,
				     &module);
	if (!module.name) {
		errno = ENOEXEC;
		return -1;
	}
	module.has_signature = !memcmp((char *)image + length - mark, SIGNED, mark);
	return kmod("insert", module.name, &module);
}

int delete_module(const char *name, unsigned int flags)
{
	(void)flags;
	return kmod("remove", name, NULL);
}

/* libkmod calls the kernel by number. Without finit_module it reads the file itself. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_finit_module) {
		errno = ENOSYS;
		return -1;
	}
	if (number == SYS_init_module)
		return init_module((void *)a[0], a[1], (char *)a[2]);
	if (number == SYS_delete_module)
		return delete_module((char *)a[0], a[1]);
	if (!real)
		real = dlsym(RTLD_NEXT, "syscall");
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- files ------------------------------------------------------------------------------ */

/*
 * /proc/modules cannot be created in procfs if the real kernel has no modules; and the use count
 * of nouveau and the NVIDIA modules is updated on each read.
 */
static const char *seen(const char *path)
{
	const char *prefix = "/sys/module/n", *suffix = "/refcnt"; /* nvidia, nvidia_uvm, nouveau */
	size_t length;

	if (!path)
		return path;
	if (!strcmp(path, "/proc/modules"))
		return MODULES;
	length = strlen(path);
	if (!strncmp(path, prefix, strlen(prefix)) && length > strlen(prefix) + strlen(suffix) - 1 &&
	    !strcmp(path + length - strlen(suffix), suffix) && !getenv("SIM_HOOK")) {
		char name[64];
		int before = errno, skip = strlen("/sys/module/");
		snprintf(name, sizeof name, "%.*s", (int)(length - strlen(suffix) - skip), path + skip);
		kmod("count", name, NULL);
		errno = before;
	}
	return path;
}

#define WITH_MODE                                                                                  \
	mode_t mode = 0;                                                                           \
	if (flags & (O_CREAT | __O_TMPFILE)) {                                                     \
		va_list list;                                                                      \
		va_start(list, flags);                                                             \
		mode = va_arg(list, mode_t);                                                       \
		va_end(list);                                                                      \
	}

FILE *fopen(const char *path, const char *how) { return REAL(fopen)(seen(path), how); }
FILE *fopen64(const char *path, const char *how) { return REAL(fopen64)(seen(path), how); }
int open(const char *path, int flags, ...) { WITH_MODE return REAL(open)(seen(path), flags, mode); }
int open64(const char *path, int flags, ...) { WITH_MODE return REAL(open64)(seen(path), flags, mode); }
int openat(int dir, const char *path, int flags, ...)
{
	WITH_MODE return REAL(openat)(dir, seen(path), flags, mode);
}
int openat64(int dir, const char *path, int flags, ...)
{
	WITH_MODE return REAL(openat64)(dir, seen(path), flags, mode);
}
int stat(const char *path, struct stat *to) { return REAL(stat)(seen(path), to); }
int stat64(const char *path, struct stat64 *to) { return REAL(stat64)(seen(path), to); }
int fstatat(int dir, const char *path, struct stat *to, int flags)
{
	return REAL(fstatat)(dir, seen(path), to, flags);
}
int fstatat64(int dir, const char *path, struct stat64 *to, int flags)
{
	return REAL(fstatat64)(dir, seen(path), to, flags);
}
int access(const char *path, int mode) { return REAL(access)(seen(path), mode); }
int faccessat(int dir, const char *path, int mode, int flags)
{
	return REAL(faccessat)(dir, seen(path), mode, flags);
}

/* ---- clock ------------------------------------------------------------------------------ */

/* Offset of this host's clock in seconds; read when a program starts. */
static long clock_offset;

__attribute__((constructor)) static void read_clock_offset(void)
{
	char text[32] = "0";
	first_line("/etc/sim/clock-offset", text, sizeof text);
	clock_offset = atol(text);
}

int clock_gettime(clockid_t which, struct timespec *now)
{
	int result = REAL(clock_gettime)(which, now);
	if (result == 0 && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
		now->tv_sec += clock_offset;
	return result;
}

int gettimeofday(struct timeval *now, void *zone)
{
	int result = REAL(gettimeofday)(now, zone);
	if (result == 0)
		now->tv_sec += clock_offset;
	return result;
}

time_t time(time_t *now)
{
	time_t seconds = REAL(time)(NULL) + clock_offset;
	if (now)
		*now = seconds;
	return seconds;
}

/* ---- NVML ------------------------------------------------------------------------------- */

/* Return the simulated libnvidia-ml instead of an installed one; without one, fail as usual. */
void *dlopen(const char *path, int flags)
{
	void *(*real)(const char *, int) = dlsym(RTLD_NEXT, "dlopen");
	void *handle = real(path, flags);

	if (handle && path) {
		const char *name = strrchr(path, '/');
		name = name ? name + 1 : path;
		if (!strncmp(name, "libnvidia-ml.so", 15)) {
			void *simulated = real(NVML, flags);
			if (simulated) {
				dlclose(handle);
				return simulated;
			}
		}
	}
	return handle;
}
