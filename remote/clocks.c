#include "remote/clocks.h"

/* The numbers are the other side's: any. */
void clocks_take(struct clocks *clocks, int64_t asked, int64_t heard, int64_t said, int64_t now)
{
	int64_t there, back, held, around;

	if (asked <= 0 || now < asked || __builtin_sub_overflow(heard, asked, &there) ||
	    __builtin_sub_overflow(said, now, &back) || __builtin_sub_overflow(said, heard, &held))
		return;
	around = now - asked;
	if (held < 0 || held > around)
		return;
	around -= held;
	clocks->exchanges++;
	if (clocks->exchanges > 1 && around / 2 >= clocks->error)
		return;
	clocks->offset = there / 2 + back / 2 + (there % 2 + back % 2) / 2;
	clocks->error = around / 2 + 1; /* a half is cut */
}
