/* A small library that answers later: it calls back on a thread of its own, in any order. */
#ifndef LIBRARY_H
#define LIBRARY_H

struct library;
typedef void library_done(void *arg, int failed);

struct library *library_open(void); /* NULL: it cannot */
/* Begins a request: writes the square root of *from, rounded down, to *to, then calls done(arg, 0), or, of a
 * negative number, done(arg, 1). */
void library_ask(struct library *library, const long *from, long *to, library_done *done, void *arg);
/* Answers what is left, then ends. */
void library_close(struct library *library);

#endif
