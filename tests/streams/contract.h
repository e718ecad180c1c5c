/* What every backend must do, in parts that one program runs: contract.c. */
#ifndef TESTS_STREAMS_CONTRACT_H
#define TESTS_STREAMS_CONTRACT_H

#include "rig.h"
#include "test.h"

struct contract_part {
	const struct CMUnitTest *tests;
	size_t count;
};

extern const struct contract_part contract_streams, contract_signals, contract_memory, contract_copies,
	contract_captures, contract_timers, contract_losses;
extern const struct contract_part contract_failures; /* each test loses the device */

#endif
