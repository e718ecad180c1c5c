/* Which allocation an address is in, as an entity learns it. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#include "handles.h"

enum { BYTES = 1 << 20 };

static weir_allocation ask(const weir_context *context, const void *memory)
{
	weir_allocation found = {.size = sizeof found};

	if (!weir_context_allocation(context, memory, &found))
		found.id = 0;
	return found;
}

static bool has(const weir_allocation *allocation, const char *memory)
{
	return allocation->id && (char *)allocation->data <= memory &&
	       memory < (char *)allocation->data + allocation->bytes;
}

/* One behind the other: the second one may get the address of the first. */
static void ask_in_turn(const weir_context *context)
{
	uint64_t last = 0;

	for (int i = 0; i < 10; i++) {
		weir_allocation found;
		char *memory = NULL;

		if (!handles_expect_cuda(cudaMalloc((void **)&memory, BYTES), "cudaMalloc"))
			return;
		found = ask(context, memory + BYTES / 2);
		handles_expect(has(&found, memory) && has(&found, memory + BYTES - 1), "it is not the whole");
		handles_expect(found.id != last, "an allocation has the id of one that was freed");
		last = found.id;
		handles_expect_cuda(cudaFree(memory), "cudaFree");
	}
}

static void ask_together(const weir_context *context)
{
	char *small[2] = {NULL, NULL};
	weir_allocation first, second, again;

	if (!handles_expect_cuda(cudaMalloc((void **)&small[0], 256), "cudaMalloc") ||
	    !handles_expect_cuda(cudaMalloc((void **)&small[1], 256), "cudaMalloc"))
		return;
	first = ask(context, small[0]);
	second = ask(context, small[1]);
	again = ask(context, small[0] + 255);
	handles_expect(first.id && second.id && first.id != second.id, "two allocations have one id");
	handles_expect(first.id == again.id && first.data == again.data, "one allocation has two ids");
	for (int i = 0; i < 2; i++)
		handles_expect_cuda(cudaFree(small[i]), "cudaFree");
}

static void ask_of_others(const weir_context *context)
{
	void *pinned = NULL, *own = malloc(BYTES);

	handles_expect_cuda(cudaMallocHost(&pinned, BYTES), "cudaMallocHost");
	handles_expect(!ask(context, pinned).id && !ask(context, own).id && !ask(context, NULL).id,
		       "memory of the host has an id");
	handles_expect_cuda(cudaFreeHost(pinned), "cudaFreeHost");
	free(own);
}

static weir_status ask_compute(weir_context *context, void *state)
{
	static const int64_t count = BYTES;
	const weir_tensor like = {
		.size = sizeof like, .dimensions = 1, .shape = &count, .code = 1, .bits = 8, .lanes = 1};
	weir_message *message;
	weir_allocation found;
	weir_status status = weir_context_create_tensor(context, &like, 0, &message);

	(void)state;
	if (status)
		return status;
	found = ask(context, weir_message_data(message));
	if (handles_settings.cuda) {
		handles_expect(has(&found, weir_message_data(message)),
			       "a tensor's memory is in no allocation");
		ask_in_turn(context);
		ask_together(context);
		ask_of_others(context);
	} else {
		handles_expect(!found.id, "memory of the host has an id");
	}
	weir_message_unref(message);
	return WEIR_OK;
}

static const weir_operator asker = {.size = sizeof asker, .name = "asker", .compute = ask_compute};

static const char graph[] =
	"{\"weir\": 1, \"name\": \"allocations\", \"entities\": [{\"name\": \"ask\", \"operator\": "
	"\"asker\", \"conditions\": [{\"type\": \"count\", \"count\": 1}]}]}";

static void r09_an_allocation_has_an_id_of_its_own(void)
{
	struct handles_rig rig;

	handles_begin(&rig, graph);
	handles_expect(!weir_registry_add_operator(rig.registry, &asker), "the operator: %s",
		       weir_last_error());
	if (handles_open(&rig) && handles_start(&rig))
		handles_wait(&rig, 30 * SECOND);
	handles_close(&rig);
}

const struct handles_check handles_allocations[] = {
	{"r09_an_allocation_has_an_id_of_its_own", r09_an_allocation_has_an_id_of_its_own, 0},
	{.name = NULL},
};
