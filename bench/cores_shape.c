#include "cores.h"

#include "program.h"

enum { CHAIN = 8, CAPACITY = 4 };

static struct cores_shape shape_of(size_t nodes, size_t edges, size_t path)
{
	struct cores_shape shape = {.nodes = nodes, .capacity = CAPACITY, .bound = CAPACITY * path};

	shape.node = calloc(nodes, sizeof *shape.node);
	shape.edge = calloc(edges, sizeof *shape.edge);
	must(shape.node && shape.edge ? WEIR_OK : WEIR_E_NOMEM, "shape");
	for (size_t i = 0; i < nodes; i++)
		shape.node[i] = (struct cores_node){.emits = true, .works = true, .source = CORES_NO_SOURCE};
	return shape;
}

static void make_sink(struct cores_shape *shape, size_t node, size_t source, uint64_t share)
{
	shape->node[node].emits = false;
	shape->node[node].source = (long)source;
	shape->node[node].share = share;
}

/* Into the next free input. */
static void connect(struct cores_shape *shape, size_t from, size_t to)
{
	shape->edge[shape->edges++] =
		(struct cores_edge){.from = from, .to = to, .input = shape->node[to].inputs++};
}

struct cores_shape cores_chains(size_t count)
{
	struct cores_shape shape = shape_of(count * CHAIN, count * (CHAIN - 1), CHAIN - 1);

	snprintf(shape.name, sizeof shape.name, count > 1 ? "%zu chains of 8" : "chain of 8", count);
	for (size_t i = 0; i < count; i++) {
		size_t first = i * CHAIN;

		for (size_t k = 1; k < CHAIN; k++)
			connect(&shape, first + k - 1, first + k);
		make_sink(&shape, first + CHAIN - 1, first, 1);
	}
	return shape;
}

struct cores_shape cores_fan(size_t width)
{
	struct cores_shape shape = shape_of(width + 2, 2 * width, 2);
	size_t last = width + 1;

	snprintf(shape.name, sizeof shape.name, "1 -> %zu -> 1", width);
	for (size_t i = 1; i <= width; i++) {
		connect(&shape, 0, i);
		shape.node[last].inputs = 0; /* all into one input */
		connect(&shape, i, last);
	}
	make_sink(&shape, last, 0, width);
	shape.node[0].works = shape.node[last].works = false;
	return shape;
}

struct cores_shape cores_layers(size_t depth, size_t width)
{
	struct cores_shape shape = shape_of(depth * width, 2 * (depth - 1) * width, depth - 1);

	snprintf(shape.name, sizeof shape.name, "%zu layers of %zu", depth, width);
	for (size_t i = width; i < depth * width; i++) {
		size_t above = i - width, row = above / width, column = above % width;

		connect(&shape, above, i);
		if ((row + column) % 2) /* every other node feeds its neighbour's, too */
			connect(&shape, above, (row + 1) * width + (column + 1) % width);
	}
	for (size_t i = 0; i < width; i++)
		make_sink(&shape, (depth - 1) * width + i, i, 1);
	return shape;
}

struct cores_shape cores_ring(size_t width)
{
	struct cores_shape shape = shape_of(width, 2 * width, 0);

	snprintf(shape.name, sizeof shape.name, "ring of %zu", width);
	shape.cyclic = true;
	for (size_t i = 0; i < width; i++) {
		connect(&shape, i, (i + 1) % width);
		connect(&shape, i, (i + width - 1) % width);
	}
	return shape;
}

void cores_shape_free(struct cores_shape *shape)
{
	free(shape->node);
	free(shape->edge);
}
