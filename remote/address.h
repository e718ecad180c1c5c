/*
 * Where the other side is: "127.0.0.1:9100", "[::1]:9100", "host.example:9100", or a name, which the
 * environment or a file of the command's knows: WEIR_REMOTE_NAME=ADDRESS, or a line "NAME ADDRESS" of the
 * file WEIR_REMOTE.
 */
#ifndef REMOTE_ADDRESS_H
#define REMOTE_ADDRESS_H

#include "remote/link.h"

enum { ADDRESS_TEXT = 300 };

/*
 * Whether a text can be a name or an address, as far as that can be told without a look at the machine.
 * false: `why` says what is wrong, and the remedy.
 */
bool address_ok(const char *text, char why[LINK_WHY]);
/*
 * Writes what a name stands for, or the text itself if it is an address. false: `why` says what is wrong, and
 * the remedy. Reads the file; waits for nothing else.
 */
bool address_named(const char *name, char text[ADDRESS_TEXT], char why[LINK_WHY]);
/*
 * Of a text with a port. A name of a host is looked up by the system, which may take as long as its resolver
 * waits; it may fail now and be there later. false: `why` says why.
 */
bool address_find(const char *text, struct address *out, char why[LINK_WHY]);
/*
 * Whether a list, separated by commas or blanks, has IP addresses alone, or is "". false: `why` says what is
 * wrong, and the remedy.
 */
bool address_peers_ok(const char *list, char why[LINK_WHY]);
/* Returns true if such a list has the address, as inet_ntop writes it, or is empty. */
bool address_has_peer(const char *list, const char *peer);

#endif
