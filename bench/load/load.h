/* The load server: what its files share. Times are microseconds of CLOCK_MONOTONIC. */
#ifndef LOAD_H
#define LOAD_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t latency_min, latency_max; /* of an answer that is not streamed */
    int64_t ttft, gap;                /* to the first piece, and between two */
    long size;                        /* bytes of text of an answer that is not streamed */
    long pieces;                      /* of a stream */
    long prompt_tokens;               /* what every answer says in its usage */
    long endpoints;                   /* in the model's list: 1 to 3 */
    long full;                        /* in flight at which the steady part begins */
    long max_seconds;
    uint64_t seed;
} Options;

typedef enum { IDLE, WAITING, STREAMING } Phase;

typedef struct Conn {
    int fd;
    SSL *ssl; /* NULL: plain */
    bool closed, close_after, wants_write, continued;
    char *in, *out; /* read and not yet handled; what the socket did not take */
    size_t in_len, in_cap, out_len, out_off, out_cap;
    Phase phase;
    bool ending;              /* the last bytes of the answer are in `out` */
    int64_t number, due, nominal; /* of the request; when the next write is due; what the answer takes in all */
    long piece;
    int provider;
    char head[320]; /* of each chunk of this stream */
    size_t head_len;
    struct Conn *next, *before; /* in its slot of the timer */
    int64_t tick;
} Conn;

typedef struct {
    int64_t clock, in_flight_us, overtime_us, finished, requests;
} Mark;

typedef struct {
    int64_t open, peak, requests, finished, broken, pieces, late, worst_late;
    int64_t connections, connected, handshakes, nominal_us;
    int64_t in_flight_us, counted_at; /* the integral of `open`, and up to when */
    int64_t overtime_us;              /* that part of it that lies after an answer's due end */
    Mark first, full, last;           /* first request, `open` first at options.full, last request so far */
} Stats;

typedef struct {
    char *data;
    size_t len;
} Bytes;

extern Options options;
extern Stats stats;
extern int64_t *finish_ms; /* by request number, from 1: the clock of its last write in ms; 0: none yet */
extern int poller;

/* server.c: the loop and its timer */
int64_t now_us(void);
void due_at(Conn *conn, int64_t due);
void unset(Conn *conn);

/* conn.c */
void take(int listener, SSL_CTX *tls);
void readable(Conn *conn);
void flush(Conn *conn);
void put(Conn *conn, const char *data, size_t len);
void finished(Conn *conn);
void drop(Conn *conn);
void bury(void);

/* http.c */
void handle(Conn *conn);

/* answers.c */
void answers_init(void);
void answer_begin(Conn *conn, const char *body, size_t len);
void answer_go_on(Conn *conn);
void reply(Conn *conn, int status, const char *type, const char *body, size_t len);
size_t endpoints_json(char *to, size_t room);

#endif
