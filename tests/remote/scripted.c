/*
 * One side over a link that follows a script: what the other side, or the way, does at one moment. A step
 * waits until it can be done; the link wakes its entity meanwhile, but for the last one, which answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "scripted_link.h"

enum { CAPACITY = 4 }; /* of the sender's input */

/* --- steps --- */

static bool accepts(struct link *link)
{
	if (link->connected)
		return false; /* it was not dropped yet */
	link->connected = true;
	link->events.accepted(link->events.arg, "the sender");
	return true;
}

/* The same sender, which has sent so many. */
static bool says_hello_of_first(struct link *link, uint64_t number)
{
	return scripted_says(link, (struct wire){.kind = WIRE_HELLO, .session = 1000, .number = number});
}

static bool says_hello_again(struct link *link)
{
	return says_hello_of_first(link, 5);
}

static uint64_t receiver_before; /* session of the receiver, as the last welcome told it */

static bool says_hello_first(struct link *link)
{
	return says_hello_of_first(link, 0);
}

static bool is_cut_after_welcome(struct link *link)
{
	if (said.kind != WIRE_WELCOME)
		return false;
	receiver_before = said.session;
	said = (struct wire){.kind = WIRE_BYE};
	link->lost = true;
	link->events.lost(link->events.arg, "it is cut");
	return true;
}

static bool says_hello(struct link *link)
{
	static uint64_t session;

	return scripted_says(link, (struct wire){.kind = WIRE_HELLO, .session = ++session, .number = 0});
}

/* Nothing comes before the welcome. head_part: of the head, of which so much comes. */
static bool sends(struct link *link, uint64_t number, size_t bytes, unsigned head_part)
{
	struct span spans[LINK_SPANS];
	uint8_t head[WIRE_SMALL];
	char why[LINK_WHY];
	weir_message *message;
	size_t head_bytes;
	unsigned count;

	if (said.kind != WIRE_WELCOME)
		return false;
	assert_false(weir_message_create_bytes(graph, bytes, &message));
	head_bytes = wire_write_message(message, &(struct wire_data){.number = number, .said = 1},
					sizeof head, head, spans, &count, why);
	weir_message_unref(message);
	assert_true(head_bytes > head_part);
	return scripted_arrives(link, head, head_bytes / head_part, bytes);
}

static bool sends_no_message(struct link *link)
{
	return sends(link, 0, 10, 2);
}

static bool sends_what_has_no_place(struct link *link)
{
	return sends(link, 99, 10, 1);
}

static bool sends_what_is_too_large(struct link *link)
{
	return sends(link, 0, 101, 1);
}

/* Of so many messages, the last of which lacks a byte. */
static bool sends_bundle(struct link *link, unsigned count, bool torn)
{
	struct wire_bundle bundle = {.head = (uint8_t[WIRE_SMALL]){0}, .room = WIRE_SMALL};
	const struct wire_data data_of = {.said = 1, .most = 1000};
	weir_message *message;

	if (said.kind != WIRE_WELCOME)
		return false;
	assert_false(weir_message_create_bytes(graph, 10, &message));
	for (unsigned i = 0; i < count; i++)
		assert_true(wire_bundle_add(&bundle, message, &data_of));
	weir_message_unref(message);
	return scripted_arrives(link, bundle.head, bundle.bytes - torn, 0);
}

static bool sends_more_than_places(struct link *link)
{
	return sends_bundle(link, 9, false);
}

static bool sends_broken_bundle(struct link *link)
{
	return sends_bundle(link, 3, true);
}

static bool sends_full_bundle(struct link *link)
{
	return sends_bundle(link, 8, false);
}

static bool says_end_behind_8(struct link *link)
{
	return scripted_says(link, (struct wire){.kind = WIRE_END, .number = 8});
}

static bool sends_well(struct link *link)
{
	return sends(link, 0, 10, 1);
}

static bool says_end(struct link *link)
{
	return scripted_says(link, (struct wire){.kind = WIRE_END, .number = 1});
}

/* Another sender's connection. */
static bool is_cut_between(struct link *link)
{
	uint64_t kept = receiver_before;
	bool cut = is_cut_after_welcome(link);

	receiver_before = kept;
	return cut;
}

static uint64_t said_session;

static bool says_end_behind_5(struct link *link)
{
	if (said.kind != WIRE_WELCOME)
		return false;
	said_session = said.session;
	return scripted_says(link, (struct wire){.kind = WIRE_END, .number = 5});
}

static bool connects(struct link *link)
{
	if (!link->connecting)
		return false;
	link->connecting = false;
	link->connected = true;
	link->events.connected(link->events.arg);
	return true;
}

/* The source goes on meanwhile, as what it makes is dropped. */
static bool connects_late(struct link *link)
{
	static unsigned since;

	since = since ? since : made;
	return made > since + 100 && connects(link);
}

static uint64_t confirmed; /* by the credits that it gave */

static bool welcomes(struct link *link)
{
	confirmed = data;
	return said.kind == WIRE_HELLO && scripted_says(link, (struct wire){.kind = WIRE_WELCOME,
									    .session = 1,
									    .number = data,
									    /* received */ .credits = 3,
									    .most = 1000});
}

/* There is no memory for a message; then there is for three, and none was emitted. */
static bool welcomes_without_memory(struct link *link)
{
	confirmed = data;
	return said.kind == WIRE_HELLO &&
	       scripted_says(
		       link,
		       (struct wire){.kind = WIRE_WELCOME, .session = 1, .number = data, .most = 1000}) &&
	       scripted_says(link, (struct wire){.kind = WIRE_CREDIT, .credits = 3, .number = data});
}

static bool welcomes_many_late(struct link *link)
{
	confirmed = data;
	return made >= CAPACITY && said.kind == WIRE_HELLO &&
	       scripted_says(link, (struct wire){.kind = WIRE_WELCOME,
						 .session = 1,
						 .number = data,
						 .credits = 12,
						 .most = 1000});
}

/* The source stands still first: with the queue full, and the tick that pushed the last. */
static bool welcomes_late(struct link *link)
{
	return made >= hello + CAPACITY && welcomes(link);
}

static bool is_cut(struct link *link)
{
	if (data < 2)
		return false;
	link->lost = true;
	link->events.lost(link->events.arg, "it is cut");
	return true;
}

static bool has_enough(struct link *link)
{
	(void)link;
	if (data < 4)
		return false;
	enough = true;
	return true;
}

static bool has_some(struct link *link)
{
	(void)link;
	enough = data > 0;
	return enough;
}

/* The three of the welcome are used, and not one more. */
static bool has_enough_credits(struct link *link)
{
	(void)link;
	assert_true(data <= 3);
	enough = data == 3 && made >= 3 + CAPACITY;
	return enough;
}

static bool gives_credits(struct link *link)
{
	return scripted_says(link,
			     (struct wire){.kind = WIRE_CREDIT, .credits = 3, .number = confirmed += 3});
}

/* What waits there, of another sender, is emitted; the credit for it overtakes the welcome. */
static bool gives_credits_first(struct link *link)
{
	return said.kind == WIRE_HELLO && gives_credits(link);
}

static bool welcomes_as_another(struct link *link)
{
	return scripted_says(
		link,
		(struct wire){
			.kind = WIRE_WELCOME, .session = 2, .number = hello, .waiting = 3, .most = 1000});
}

static bool welcomes_as_another_that_is_empty(struct link *link)
{
	confirmed = hello;
	return said.kind == WIRE_HELLO && scripted_says(link, (struct wire){.kind = WIRE_WELCOME,
									    .session = 2,
									    .number = hello,
									    .credits = 3,
									    .most = 1000});
}

static bool answers_end(struct link *link)
{
	return said.kind == WIRE_END && scripted_says(link, (struct wire){.kind = WIRE_DONE});
}

/* --- runs --- */

static const char receiver[] =
	"{\"weir\": 1, \"entities\": [{\"name\": \"receive\", \"operator\": \"remote_receive\", "
	"\"parameters\": {\"listen\": \"127.0.0.1:1\", \"on_lost\": \"wait\", \"max_message\": 100}}, "
	"{\"name\": \"end\", \"operator\": \"sink\"}], \"connections\": [[\"receive.out\", \"end.in\"]]}";

static const char *sender(const char *parameters, const char *take)
{
	static char json[1000];

	snprintf(json, sizeof json,
		 "{\"weir\": 1, \"entities\": [{\"name\": \"number\", \"operator\": \"number\"}, {\"name\": "
		 "\"send\", \"operator\": \"remote_send\", \"parameters\": {\"to\": \"127.0.0.1:1\"%s}, "
		 "\"ports\": {\"in\": {\"capacity\": 4, \"take\": %s}}}], \"connections\": "
		 "[[\"number.out\", \"send.in\"]]}",
		 parameters, take);
	return json;
}

static void r06_a_message_that_cannot_be_loses_the_sender_alone(void **unused)
{
	static step *const wrong[] = {sends_no_message, sends_what_has_no_place, sends_what_is_too_large,
				      sends_more_than_places, sends_broken_bundle};

	(void)unused;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		scripted_run(receiver, (step *const[]){accepts, says_hello, wrong[i], accepts, says_hello,
						       sends_well, says_end, NULL});
		assert_int_equal(drops, 1);
		assert_int_equal(done, 1); /* the other sender's message was emitted */
		assert_non_null(strstr(told, "another sender at the sender is there: 0 messages were lost"));
	}
}

static void r02_a_bundle_of_all_places_is_received(void **unused)
{
	(void)unused;
	scripted_run(receiver,
		     (step *const[]){accepts, says_hello, sends_full_bundle, says_end_behind_8, NULL});
	assert_int_equal(done, 1);
}

static void r06_what_is_dropped_is_counted_and_a_hello_s_number_stays(void **unused)
{
	(void)unused;
	scripted_run(sender(", \"on_lost\": \"drop\"", "1"),
		     (step *const[]){connects, welcomes, is_cut, connects_late, welcomes_late, gives_credits,
				     has_enough, gives_credits, gives_credits, answers_end, NULL});
	assert_true(hello > 100);       /* taken and dropped while it connected */
	assert_int_equal(first, hello); /* none between the hello and the welcome */
	assert_int_equal(lost, made - data);
}

static void r05_the_end_is_sent_while_it_polls_and_holds_no_tick(void **unused)
{
	(void)unused;
	scripted_run(sender(", \"spin\": \"1s\"", "1"),
		     (step *const[]){connects, welcomes, has_some, gives_credits, gives_credits, answers_end,
				     NULL});
	assert_int_equal(data, made);
	assert_true(end_awake);            /* and not when the second was over */
	assert_int_equal(asked_to_end, 4); /* a tick each */
}

static void r01_a_tick_sends_as_many_as_there_are_credits(void **unused)
{
	static const char *const takes[] = {"1", "3", "\"all\""};

	(void)unused;
	for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++) {
		scripted_run(sender("", takes[i]),
			     (step *const[]){connects, welcomes_late, has_enough_credits, gives_credits,
					     gives_credits, answers_end, NULL});
		assert_int_equal(data, made);
	}
}

/* So that the receiver goes on with them while more are written; none waits for one that comes later. */
static void r02_what_one_tick_takes_goes_in_bundles_of_a_quarter_of_the_places(void **unused)
{
	(void)unused;
	for (unsigned all = 0; all < 2; all++) {
		scripted_run(sender("", all ? "\"all\"" : "1"),
			     (step *const[]){connects, welcomes_many_late, has_enough, gives_credits,
					     gives_credits, gives_credits, gives_credits, answers_end, NULL});
		assert_int_equal(data, made);
		assert_int_equal(largest, all ? 3 : 1);
	}
}

/* So the sender counts what was not confirmed as lost, which the receiver does not know any more. */
static void r06_a_receiver_that_has_forgotten_a_sender_is_another_one_to_it(void **unused)
{
	(void)unused;
	scripted_run(receiver,
		     (step *const[]){accepts, says_hello_first, is_cut_after_welcome, accepts, says_hello,
				     is_cut_between, accepts, says_hello_again, says_end_behind_5, NULL});
	assert_int_equal(done, 1);
	assert_true(said_session != receiver_before);
}

static void r06_a_credit_before_the_welcome_of_another_receiver_confirms_nothing_of_the_first(void **unused)
{
	(void)unused;
	scripted_run(sender(", \"on_lost\": \"wait\"", "1"),
		     (step *const[]){connects, welcomes_late, has_enough_credits, is_cut, connects,
				     gives_credits_first, welcomes_as_another, gives_credits, gives_credits,
				     answers_end, NULL});
	assert_int_equal(lost, 3); /* all that the first had */
	assert_int_equal(data, made);
}

static void r01_a_credit_that_memory_gives_confirms_nothing(void **unused)
{
	(void)unused;
	scripted_run(sender(", \"on_lost\": \"wait\"", "1"),
		     (step *const[]){connects, welcomes_without_memory, has_enough_credits, is_cut, connects,
				     welcomes_as_another_that_is_empty, gives_credits, gives_credits,
				     answers_end, NULL});
	assert_int_equal(lost, 3); /* all that the first had */
	assert_int_equal(data, made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r06_a_receiver_that_has_forgotten_a_sender_is_another_one_to_it),
		cmocka_unit_test(r06_a_message_that_cannot_be_loses_the_sender_alone),
		cmocka_unit_test(r06_what_is_dropped_is_counted_and_a_hello_s_number_stays),
		cmocka_unit_test(r05_the_end_is_sent_while_it_polls_and_holds_no_tick),
		cmocka_unit_test(
			r06_a_credit_before_the_welcome_of_another_receiver_confirms_nothing_of_the_first),
		cmocka_unit_test(r01_a_credit_that_memory_gives_confirms_nothing),
		cmocka_unit_test(r01_a_tick_sends_as_many_as_there_are_credits),
		cmocka_unit_test(r02_a_bundle_of_all_places_is_received),
		cmocka_unit_test(r02_what_one_tick_takes_goes_in_bundles_of_a_quarter_of_the_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
