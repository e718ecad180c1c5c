#include "remote/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void r06_a_text_with_a_port_is_an_address(void **unused)
{
	const struct sockaddr_in6 *six;
	struct address address;
	char text[ADDRESS_TEXT], why[LINK_WHY];

	(void)unused;
	assert_true(address_named("127.0.0.1:9100", text, why));
	assert_true(address_find(text, &address, why));
	assert_int_equal(ntohs(((struct sockaddr_in *)&address.socket)->sin_port), 9100);
	assert_true(address_find("[::1]:9101", &address, why));
	six = (const struct sockaddr_in6 *)&address.socket;
	assert_int_equal(six->sin6_family, AF_INET6);
	assert_int_equal(ntohs(six->sin6_port), 9101);
}

static void e06_r06_a_port_is_of_16_bits_and_not_0(void **unused)
{
	char text[ADDRESS_TEXT], why[LINK_WHY];

	(void)unused;
	assert_false(address_named("10.0.0.1:65536", text, why));
	assert_string_equal(why, "'10.0.0.1:65536' has no port of 1 to 65535");
	assert_false(address_named("10.0.0.1:0", text, why));
	assert_false(address_named("10.0.0.1:18446744073709551617", text, why));
	setenv("WEIR_REMOTE_FAR", "10.0.0.1:99999", 1);
	assert_false(address_named("far", text, why));
	assert_string_equal(why, "'10.0.0.1:99999' has no port of 1 to 65535");
	assert_true(address_named("10.0.0.1:65535", text, why));
}

static void r06_a_name_is_looked_up_in_the_environment_and_the_file(void **unused)
{
	char path[] = "/tmp/weir-remote-XXXXXX", text[ADDRESS_TEXT], why[LINK_WHY];
	FILE *file = fdopen(mkstemp(path), "w");

	(void)unused;
	fprintf(file, "# cameras\nleft 10.0.0.1:9100 # the left one\n\nright\n");
	fclose(file);
	setenv("WEIR_REMOTE", path, 1);
	setenv("WEIR_REMOTE_FRONT_CAMERA", "10.0.0.3:7", 1);
	assert_true(address_named("left", text, why));
	assert_string_equal(text, "10.0.0.1:9100");
	assert_true(address_named("front-camera", text, why));
	assert_string_equal(text, "10.0.0.3:7");
	assert_false(address_named("right", text, why));
	assert_string_equal(why, "the address of 'right' is '': write HOST:PORT");
	assert_false(address_named("back", text, why));
	assert_non_null(strstr(why, "no address of 'back'"));
	unlink(path);
	assert_false(address_named("left", text, why));
	unsetenv("WEIR_REMOTE");
	assert_false(address_named("left", text, why));
}

static void e06_r06_a_line_is_a_name_and_an_address_and_the_only_one_of_its_name(void **unused)
{
	char path[] = "/tmp/weir-remote-XXXXXX", text[ADDRESS_TEXT], why[LINK_WHY], wanted[200];
	FILE *file = fdopen(mkstemp(path), "w");

	(void)unused;
	fprintf(file, "twice 10.0.0.1:1\r\nlong 10.0.0.1:9100 10.0.0.2:9100\nwell 10.0.0.1:2\r\ntwice "
		      "10.0.0.1:3\n");
	fclose(file);
	setenv("WEIR_REMOTE", path, 1);
	assert_true(address_named("well", text, why));
	assert_string_equal(text, "10.0.0.1:2");
	assert_false(address_named("twice", text, why));
	snprintf(wanted, sizeof wanted, "%s: lines 1 and 4 are both of 'twice': remove one of them", path);
	assert_string_equal(why, wanted);
	assert_false(address_named("long", text, why));
	snprintf(wanted, sizeof wanted, "%s: line 2 has more than a name and an address", path);
	assert_string_equal(why, wanted);
	unlink(path);
	unsetenv("WEIR_REMOTE");
}

/* Some editors begin a file with it. */
static void r06_a_byte_order_mark_is_no_part_of_the_first_name(void **unused)
{
	char path[] = "/tmp/weir-remote-XXXXXX", text[ADDRESS_TEXT], why[LINK_WHY];
	FILE *file = fdopen(mkstemp(path), "w");

	(void)unused;
	fprintf(file, "\xef\xbb\xbfleft 10.0.0.1:1\nright 10.0.0.1:2\n");
	fclose(file);
	setenv("WEIR_REMOTE", path, 1);
	assert_true(address_named("left", text, why));
	assert_string_equal(text, "10.0.0.1:1");
	assert_true(address_named("right", text, why));
	unlink(path);
	unsetenv("WEIR_REMOTE");
}

/* What needs no other one, nor a machine that knows it. */
static void e06_r06_what_can_be_no_address_is_known_by_its_text(void **unused)
{
	static const char *const good[] = {"camera",           "10.0.0.1:9100",      ":9100",   "[::1]:9101",
					   "[fe80::1%eth0]:1", "host.example:65535", "::1:9100"};
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"10.0.0.1:70000", "'10.0.0.1:70000' has no port of 1 to 65535"},
		{"host:", "'host:' has no port of 1 to 65535"},
		{"host:http", "'host:http' has no port of 1 to 65535"},
		{"[::1]", "'[::1]' has no port of 1 to 65535"},
		{"[::1:9301",
		 "'[::1:9301' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100"},
		{"::1]:9301",
		 "'::1]:9301' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100"},
		{"[]:9301",
		 "'[]:9301' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100"},
		{"[[::1]:9301",
		 "'[[::1]:9301' is no HOST:PORT: brackets stand around an IPv6 address, as in [::1]:9100"},
		{"", "no address of '': write HOST:PORT, or name it in the environment or a file: see "
		     "docs/distributed.md"},
	};
	char why[LINK_WHY], text[ADDRESS_TEXT];

	(void)unused;
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_true(address_ok(good[i], why));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(address_ok(bad[i].text, why));
		assert_string_equal(why, bad[i].why);
		assert_false(address_named(bad[i].text, text, why));
		assert_string_equal(why, bad[i].why);
	}
}

static void e06_r06_peers_are_addresses_however_they_are_written(void **unused)
{
	const char *list = "10.0.0.2, FD00:0::2,,::1 ";
	char why[LINK_WHY];

	(void)unused;
	assert_true(address_peers_ok(list, why));
	assert_true(address_has_peer(list, "10.0.0.2"));
	assert_true(address_has_peer(list, "fd00::2"));
	assert_true(address_has_peer(list, "::1"));
	assert_false(address_has_peer(list, "10.0.0.22"));
	assert_false(address_has_peer(list, "10.0.0"));
	assert_true(address_peers_ok("", why) && address_has_peer("", "10.0.0.2"));
	assert_false(address_has_peer(" ", "10.0.0.2"));
	assert_false(address_peers_ok("10.0.0.2,10.0.0.0/8", why));
	assert_string_equal(why, "'peers' takes IP addresses, as 10.0.0.2 and fd00::2, separated by commas: "
				 "'10.0.0.0/8' is none");
	assert_false(address_peers_ok("localhost", why));
	assert_false(address_peers_ok(",", why));
	assert_string_equal(
		why, "'peers' names no IP address, so no machine could connect: name some, or leave it out");
	assert_false(address_peers_ok(" ", why));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r06_a_text_with_a_port_is_an_address),
		cmocka_unit_test(e06_r06_a_port_is_of_16_bits_and_not_0),
		cmocka_unit_test(e06_r06_a_line_is_a_name_and_an_address_and_the_only_one_of_its_name),
		cmocka_unit_test(r06_a_byte_order_mark_is_no_part_of_the_first_name),
		cmocka_unit_test(e06_r06_what_can_be_no_address_is_known_by_its_text),
		cmocka_unit_test(e06_r06_peers_are_addresses_however_they_are_written),
		cmocka_unit_test(r06_a_name_is_looked_up_in_the_environment_and_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
