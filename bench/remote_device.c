/*
 * Memory of one GPU from one process to another: GB/s of tensors by remote_send and remote_receive, beside a
 * plain program that opens the other process's memory (cudaIpcOpenMemHandle) and copies from it. Both have 8
 * messages under way; the plain one tells the other process of each by a byte in a pipe, and of each that was
 * copied by one back. Each measurement is one of two new processes; they alternate.
 *
 *     remote_device PLUGIN [--rounds N]
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote_graph.h"

enum { ROUNDS_MOST = 25, UNDER_WAY = 8, WORDS = 1200 };

static const char *plugin;
static uint64_t count;
static int64_t bytes;
static double rate; /* GB/s, of this process */

/* Called for each message that came; the first fifth warms up. */
static void note(uint64_t come)
{
	static int64_t begun;

	if (come == count / 5)
		begun = now();
	if (come == count)
		rate = (double)(count - count / 5) * (double)bytes / (double)(now() - begun);
}

/* --- weir --- */

/* The same tensor, again and again. */
static weir_status pour_compute(weir_context *context, void *state)
{
	weir_message **message = state;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &bytes, .code = 1, .bits = 8, .lanes = 1};
	weir_status status = WEIR_OK;

	if (!*message)
		status = weir_context_create_tensor(context, &like, 0, message);
	return status ? status : weir_context_emit(context, 0, weir_message_ref(*message));
}

static void pour_stop(weir_context *context, void *state)
{
	(void)context;
	weir_message_unref(*(weir_message **)state);
}

static weir_status drink_compute(weir_context *context, void *state)
{
	(void)state;
	note(weir_context_tick(context) + 1);
	return WEIR_OK;
}

static const weir_port inputs[] = {{.size = sizeof(weir_port), .name = "in"}, {.name = NULL}};
static const weir_port outputs[] = {{.size = sizeof(weir_port), .name = "out"}, {.name = NULL}};
static const weir_operator operators[] = {
	{.size = sizeof(weir_operator),
	 .name = "pour",
	 .state_size = sizeof(weir_message *),
	 .outputs = outputs,
	 .compute = pour_compute,
	 .stop = pour_stop},
	{.size = sizeof(weir_operator), .name = "drink", .inputs = inputs, .compute = drink_compute},
};

static void write_graph(char json[WORDS], bool receives, int port)
{
	if (receives)
		snprintf(json, WORDS,
			 "{\"weir\": 1, \"entities\": [{\"name\": \"receive\", \"operator\": "
			 "\"remote_receive\","
			 "\"parameters\": {\"listen\": \"127.0.0.1:%d\", \"place\": \"device\", \"credits\": "
			 "%d}},"
			 "{\"name\": \"drink\", \"operator\": \"drink\", \"ports\": {\"in\": {\"capacity\": "
			 "8}}}],"
			 "\"connections\": [[\"receive.out\", \"drink.in\"]]}",
			 port, UNDER_WAY);
	else
		snprintf(json, WORDS,
			 "{\"weir\": 1, \"entities\": [{\"name\": \"pour\", \"operator\": \"pour\", "
			 "\"conditions\":"
			 " [{\"type\": \"count\", \"count\": %llu}]}, {\"name\": \"send\", \"operator\": "
			 "\"remote_send\","
			 "\"parameters\": {\"to\": \"127.0.0.1:%d\"}, \"ports\": {\"in\": {\"capacity\": "
			 "8}}}],"
			 "\"connections\": [[\"pour.out\", \"send.in\"]]}",
			 (unsigned long long)count, port);
}

static void run_weir(bool receives, int port)
{
	const weir_scheduler_options options = {.size = sizeof options, .workers = 2, .backend = "cuda"};
	char json[WORDS];

	write_graph(json, receives, port);
	run_graph(plugin, operators, sizeof operators / sizeof operators[0], json, &options,
		  INT64_C(60000000000));
}

/* --- the plain program --- */

static void cuda(cudaError_t error)
{
	if (!error)
		return;
	fprintf(stderr, "plain: %s\n", cudaGetErrorString(error));
	exit(1);
}

static void give(int to, const void *data, size_t size)
{
	if (write(to, data, size) != (ssize_t)size)
		exit(1);
}

static void take(int from, void *data, size_t size)
{
	for (char *at = data; size;) {
		ssize_t got = read(from, at, size);

		if (got <= 0)
			exit(1);
		at += got, size -= (size_t)got;
	}
}

static void plain_send(int to, int from)
{
	cudaIpcMemHandle_t handle;
	void *memory;
	char byte = 0;

	cuda(cudaMalloc(&memory, (size_t)bytes));
	cuda(cudaIpcGetMemHandle(&handle, memory));
	give(to, &handle, sizeof handle);
	for (uint64_t i = 0; i < count; i++) {
		if (i >= UNDER_WAY)
			take(from, &byte, 1);
		give(to, &byte, 1);
	}
	for (int i = 0; i < UNDER_WAY; i++)
		take(from, &byte, 1);
}

static void plain_receive(int to, int from)
{
	cudaEvent_t events[UNDER_WAY];
	void *blocks[UNDER_WAY], *theirs;
	cudaIpcMemHandle_t handle;
	cudaStream_t stream;
	char byte;

	cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	for (int i = 0; i < UNDER_WAY; i++) {
		cuda(cudaMalloc(&blocks[i], (size_t)bytes));
		cuda(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming | cudaEventBlockingSync));
	}
	take(from, &handle, sizeof handle);
	cuda(cudaIpcOpenMemHandle(&theirs, handle, cudaIpcMemLazyEnablePeerAccess));
	for (uint64_t i = 0; i < count + UNDER_WAY - 1; i++) {
		if (i < count) {
			take(from, &byte, 1);
			cuda(cudaMemcpyAsync(blocks[i % UNDER_WAY], theirs, (size_t)bytes,
					     cudaMemcpyDeviceToDevice, stream));
			cuda(cudaEventRecord(events[i % UNDER_WAY], stream));
		}
		if (i + 1 < UNDER_WAY)
			continue;
		cuda(cudaEventSynchronize(events[(i + 1) % UNDER_WAY]));
		give(to, &byte, 1);
		note(i + 2 - UNDER_WAY);
	}
}

/* --- measuring --- */

/* The rate that the second process has seen. */
static double measure(bool plain)
{
	static int port;
	int forth[2], back[2], seen[2];
	pid_t children[2];
	double result = 0;

	port = 20000 + (port + 1 + getpid() % 1000) % 10000;
	if (pipe(forth) || pipe(back) || pipe(seen))
		exit(1);
	fflush(stdout);
	for (int i = 0; i < 2; i++) {
		children[i] = fork();
		if (children[i])
			continue;
		if (!plain)
			run_weir(i, port);
		else if (i)
			plain_receive(back[1], forth[0]);
		else
			plain_send(forth[1], back[0]);
		if (i)
			give(seen[1], &rate, sizeof rate);
		_exit(0);
	}
	close(seen[1]);
	if (read(seen[0], &result, sizeof result) != sizeof result)
		exit(1);
	for (int i = 0; i < 2; i++)
		waitpid(children[i], NULL, 0);
	close(seen[0]);
	for (int i = 0; i < 2; i++)
		close(forth[i]), close(back[i]);
	return result;
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

int main(int argc, char **argv)
{
	static const int64_t sizes[] = {1 << 20, 8 << 20, 64 << 20};
	int rounds = argc > 3 && !strcmp(argv[2], "--rounds") ? atoi(argv[3]) : 5;

	if (argc < 2 || rounds < 1 || rounds > ROUNDS_MOST) {
		fprintf(stderr, "remote_device PLUGIN [--rounds 1..%d]\n", ROUNDS_MOST);
		return 2;
	}
	plugin = argv[1];
	printf("%10s %10s %10s  weir / plain\n", "bytes", "weir GB/s", "plain");
	for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
		double weir[ROUNDS_MOST], plain[ROUNDS_MOST], ratios[ROUNDS_MOST];

		bytes = sizes[s];
		count = bytes > 8 << 20 ? 500 : 2000;
		for (int i = 0; i < rounds; i++) {
			weir[i] = measure(false);
			plain[i] = measure(true);
			ratios[i] = weir[i] / plain[i];
		}
		qsort(weir, (size_t)rounds, sizeof *weir, compare);
		qsort(plain, (size_t)rounds, sizeof *plain, compare);
		qsort(ratios, (size_t)rounds, sizeof *ratios, compare);
		printf("%10lld %10.1f %10.1f  %.2f (%.2f to %.2f)\n", (long long)bytes, weir[rounds / 2],
		       plain[rounds / 2], ratios[rounds / 2], ratios[0], ratios[rounds - 1]);
		fflush(stdout);
	}
	return 0;
}
