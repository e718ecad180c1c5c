/*
 * weir works when dlopen loads it with no static TLS left: a graph runs, on threads started before the
 * library was loaded and after. Arguments: libweir.so, a library that needs static TLS.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir.h>

enum { COPIES_MOST = 1000 };

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why ? why : "?");
	exit(1);
}

static void copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	struct stat what;

	if (in < 0 || out < 0 || fstat(in, &what) ||
	    sendfile(out, in, NULL, (size_t)what.st_size) != what.st_size)
		fail(to, "cannot be copied");
	close(in);
	close(out);
}

/* Loads copies until one fails for lack of room. They stay loaded. */
static size_t use_up_static_tls(const char *library)
{
	char folder[] = "/tmp/weir-dlopen-XXXXXX", path[sizeof(folder) + 16];
	size_t count = 0;
	void *loaded;

	if (!mkdtemp(folder))
		fail(folder, "cannot be made");
	do {
		snprintf(path, sizeof(path), "%s/%zu.so", folder, count);
		copy(library, path);
		loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		unlink(path);
	} while (loaded && ++count < COPIES_MOST);
	rmdir(folder);
	return count;
}

static void *find(void *library, const char *name)
{
	void *found = dlsym(library, name);

	if (!found)
		fail(name, dlerror());
	return found;
}

#define FIND(name) __typeof__(name) *name##_ = __extension__(__typeof__(name) *) find(library, #name)

static const char text[] =
	"{\"weir\": 1, \"entities\": ["
	"{\"name\": \"tick\", \"operator\": \"ping\", \"conditions\": [{\"type\": \"count\", \"count\": 7}]},"
	"{\"name\": \"sink\", \"operator\": \"sink\"}],"
	"\"connections\": [[\"tick.out\", \"sink.in\"]]}";

static uint64_t run(void *library)
{
	weir_scheduler_options options = {.size = sizeof(options), .workers = 2, .backend = "host"};
	weir_outcome outcome = {.size = sizeof(outcome)};
	weir_description *description = NULL;
	weir_scheduler *scheduler = NULL;
	weir_graph *graph = NULL;

	FIND(weir_description_parse);
	FIND(weir_graph_create);
	FIND(weir_scheduler_create);
	FIND(weir_scheduler_start);
	FIND(weir_scheduler_wait);
	FIND(weir_scheduler_destroy);
	FIND(weir_graph_destroy);
	FIND(weir_description_destroy);
	FIND(weir_last_error);
	if (weir_description_parse_(text, sizeof(text) - 1, NULL, NULL, &description) ||
	    weir_graph_create_(NULL, description, &graph) ||
	    weir_scheduler_create_(graph, &options, &scheduler) || weir_scheduler_start_(scheduler) ||
	    weir_scheduler_wait_(scheduler, -1, &outcome))
		fail("the run", weir_last_error_());
	weir_scheduler_destroy_(scheduler);
	weir_graph_destroy_(graph);
	weir_description_destroy_(description);
	return outcome.ticks;
}

int main(int argc, char **argv)
{
	size_t copies;
	void *weir;

	if (argc != 3)
		fail("usage", "dlopen LIBWEIR STATIC_TLS");
	copies = use_up_static_tls(argv[2]);
	if (!copies || copies == COPIES_MOST)
		fail("static TLS", "has no end, or none was there");
	weir = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!weir)
		fail("dlopen", dlerror());
	if (run(weir) != 14)
		fail("the run", "has a wrong number of ticks");
	printf("loaded after %zu libraries had used up static TLS; 14 ticks\n", copies);
	return 0;
}
