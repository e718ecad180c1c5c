/*
 * One run of a peer's chain, to be counted: chain_once ENTITIES MESSAGES. PEER: tbb, taskflow. Prints ns per
 * tick.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chain.h"

#define JOIN(peer, what) peer##_chain_##what
#define NAME(peer, what) JOIN(peer, what)

int main(int argc, char **argv)
{
	void *chain = argc == 3 ? NAME(PEER, create)(strtoul(argv[1], NULL, 10)) : NULL;

	if (!chain)
		return 2;
	printf("%.1f\n", NAME(PEER, run)(chain, strtoull(argv[2], NULL, 10)));
	NAME(PEER, destroy)(chain);
	return 0;
}
