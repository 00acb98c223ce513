/* Connections: what comes in, what goes out, and what the socket does not take yet. */
#define _GNU_SOURCE
#include "load.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_HELD (64 << 20)

static Conn *dead; /* freed once no event of this round can name them */

static int64_t no_longer_open(void) {
    int64_t now = now_us();
    stats.in_flight_us += stats.open * (now - stats.counted_at);
    stats.counted_at = now;
    stats.open--;
    return now;
}

void drop(Conn *conn) {
    if (conn->closed)
        return;
    conn->closed = true;
    unset(conn);
    if (conn->phase != IDLE) {
        no_longer_open();
        stats.broken++;
    }
    if (conn->ssl) {
        if (conn->close_after)
            SSL_shutdown(conn->ssl);
        SSL_free(conn->ssl);
    }
    close(conn->fd);
    stats.connected--;
    conn->next = dead;
    dead = conn;
}

void bury(void) {
    for (Conn *conn = dead, *next; conn; conn = next) {
        next = conn->next;
        free(conn->in);
        free(conn->out);
        free(conn);
    }
    dead = NULL;
}

static void watch(Conn *conn, bool write) {
    if (conn->wants_write == write)
        return;
    conn->wants_write = write;
    struct epoll_event event = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = conn};
    epoll_ctl(poller, EPOLL_CTL_MOD, conn->fd, &event);
}

/* Bytes taken by the socket; 0: none for now; -1: the connection is gone. */
static ssize_t push(Conn *conn, const char *data, size_t len) {
    if (!conn->ssl) {
        ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL);
        return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    ERR_clear_error();
    int n = SSL_write(conn->ssl, data, (int)len);
    if (n > 0)
        return n;
    int why = SSL_get_error(conn->ssl, n);
    return why == SSL_ERROR_WANT_WRITE || why == SSL_ERROR_WANT_READ ? 0 : -1;
}

/* The last byte of an answer is with the kernel. */
static void count_finished(Conn *conn) {
    int64_t now = no_longer_open();
    stats.finished++;
    stats.nominal_us += conn->nominal;
    stats.overtime_us += now - conn->due;
    finish_ms[conn->number] = now / 1000;
    conn->phase = IDLE;
    conn->ending = false;
    if (conn->close_after)
        drop(conn);
}

void flush(Conn *conn) {
    while (conn->out_off < conn->out_len) {
        ssize_t n = push(conn, conn->out + conn->out_off, conn->out_len - conn->out_off);
        if (n < 0) {
            drop(conn);
            return;
        }
        if (n == 0) {
            watch(conn, true);
            return;
        }
        conn->out_off += n;
    }
    conn->out_off = conn->out_len = 0;
    watch(conn, false);
    if (conn->ending)
        count_finished(conn);
    else if (conn->close_after && conn->phase == IDLE)
        drop(conn);
}

void put(Conn *conn, const char *data, size_t len) {
    if (conn->closed)
        return;
    while (len && conn->out_len == 0) {
        ssize_t n = push(conn, data, len);
        if (n < 0) {
            drop(conn);
            return;
        }
        if (n == 0)
            break;
        data += n;
        len -= n;
    }
    if (!len)
        return;
    if (conn->out_len + len > conn->out_cap) {
        conn->out_cap = 2 * (conn->out_len + len);
        conn->out = realloc(conn->out, conn->out_cap);
    }
    memcpy(conn->out + conn->out_len, data, len);
    conn->out_len += len;
    watch(conn, true);
}

/* All of an answer is written, or waits in `out`. */
void finished(Conn *conn) {
    if (conn->closed)
        return;
    conn->ending = true;
    if (conn->out_len == 0) {
        count_finished(conn);
        handle(conn);
    }
}

void readable(Conn *conn) {
    for (;;) {
        if (conn->in_cap - conn->in_len < 16384) {
            conn->in_cap = conn->in_cap ? 2 * conn->in_cap : 32768;
            conn->in = realloc(conn->in, conn->in_cap);
        }
        ssize_t n;
        bool more;
        size_t room = conn->in_cap - conn->in_len;
        if (conn->ssl) {
            bool before = SSL_is_init_finished(conn->ssl);
            ERR_clear_error();
            n = SSL_read(conn->ssl, conn->in + conn->in_len, (int)room);
            stats.handshakes += !before && SSL_is_init_finished(conn->ssl);
            int why = n > 0 ? 0 : SSL_get_error(conn->ssl, (int)n);
            more = why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE;
        } else {
            n = recv(conn->fd, conn->in + conn->in_len, room, 0);
            more = n < 0 && (errno == EAGAIN || errno == EINTR);
        }
        if (n <= 0) {
            if (!more)
                drop(conn);
            break;
        }
        conn->in_len += n;
        if (conn->in_len > MOST_HELD) {
            drop(conn);
            break;
        }
        if (!conn->ssl && (size_t)n < room)
            break;
    }
    if (!conn->closed)
        handle(conn);
    if (!conn->closed && conn->close_after && conn->phase == IDLE && conn->out_len == 0)
        drop(conn);
}

void take(int listener, SSL_CTX *tls) {
    for (;;) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1;
        if (fd < 0)
            return;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        Conn *conn = calloc(1, sizeof *conn);
        conn->fd = fd;
        if (tls) {
            conn->ssl = SSL_new(tls);
            SSL_set_fd(conn->ssl, fd);
            SSL_set_accept_state(conn->ssl);
        }
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = conn};
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        stats.connections++;
        stats.connected++;
    }
}
