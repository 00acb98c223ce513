/* A load server on 127.0.0.1: one thread, epoll, a timer wheel of 1 ms; plain HTTP/1.1 and TLS 1.3.
 *
 * It prints one line of JSON when it listens: {"port": N, "tls_port": N or 0, "pid": N}. It ends when its parent does,
 * or after --max-seconds.
 */
#define _GNU_SOURCE
#include "load.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 131072 /* ms: more than two minutes; what is later comes round again */

Options options = {
    .latency_min = 15000000, .latency_max = 60000000, .ttft = 500000, .gap = 100000, .size = 8000,
    .pieces = 200, .prompt_tokens = 20, .endpoints = 1, .max_seconds = 3600,
};
Stats stats;
static Conn *slots[SLOTS];
static int64_t timers, last_tick;
int poller;
static int listener_plain, listener_tls = -1;
static SSL_CTX *tls;

int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

void unset(Conn *conn) {
    if (!conn->tick)
        return;
    if (conn->before)
        conn->before->next = conn->next;
    else
        slots[conn->tick % SLOTS] = conn->next;
    if (conn->next)
        conn->next->before = conn->before;
    conn->next = conn->before = NULL;
    conn->tick = 0;
    timers--;
}

void due_at(Conn *conn, int64_t due) {
    unset(conn);
    conn->due = due;
    int64_t tick = due / 1000 + 1;
    conn->tick = tick > last_tick ? tick : last_tick + 1;
    Conn **slot = &slots[conn->tick % SLOTS];
    conn->next = *slot;
    if (*slot)
        (*slot)->before = conn;
    *slot = conn;
    timers++;
}

static int listening(int *port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof here;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&here, len) || listen(fd, 8192) || getsockname(fd, (struct sockaddr *)&here, &len)) {
        perror("load server: cannot listen on 127.0.0.1");
        exit(1);
    }
    *port = ntohs(here.sin_port);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
    return fd;
}

static void fire(void) {
    int64_t tick = now_us() / 1000;
    while (last_tick < tick) {
        last_tick++;
        for (Conn *conn = slots[last_tick % SLOTS], *next; conn; conn = next) {
            next = conn->next;
            if (conn->tick > last_tick)
                continue;
            unset(conn);
            answer_go_on(conn);
        }
    }
}

static void serve(void) {
    pid_t parent = getppid();
    int64_t begin = now_us(), looked = begin;
    static struct epoll_event events[1024];
    last_tick = begin / 1000;
    for (;;) {
        int n = epoll_wait(poller, events, 1024, timers ? 1 : 100);
        for (int i = 0; i < n; i++) {
            Conn *conn = events[i].data.ptr;
            if (!conn) {
                take(listener_plain, NULL);
                if (listener_tls >= 0)
                    take(listener_tls, tls);
                continue;
            }
            if (!conn->closed && (events[i].events & EPOLLOUT)) {
                flush(conn);
                if (!conn->closed)
                    handle(conn);
            }
            if (!conn->closed && (events[i].events & ~EPOLLOUT))
                readable(conn);
        }
        fire();
        bury();
        int64_t now = now_us();
        if (now - looked > 500000) {
            looked = now;
            if (getppid() != parent || now - begin > options.max_seconds * 1000000)
                return;
        }
    }
}

static int64_t seconds(const char *text) { return (int64_t)(strtod(text, NULL) * 1e6); }

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"latency-min", 1, 0, 'a'}, {"latency-max", 1, 0, 'b'}, {"size", 1, 0, 's'},      {"pieces", 1, 0, 'p'},
        {"rate", 1, 0, 'r'},        {"ttft", 1, 0, 't'},        {"prompt-tokens", 1, 0, 'k'}, {"endpoints", 1, 0, 'e'},
        {"full", 1, 0, 'f'},        {"max-seconds", 1, 0, 'm'}, {"seed", 1, 0, 'd'},      {"cert", 1, 0, 'c'},
        {"key", 1, 0, 'y'},         {0},
    };
    const char *cert = NULL, *key = NULL;
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (c) {
        case 'a': options.latency_min = seconds(optarg); break;
        case 'b': options.latency_max = seconds(optarg); break;
        case 's': options.size = atol(optarg); break;
        case 'p': options.pieces = atol(optarg); break;
        case 'r': options.gap = (int64_t)(1e6 / strtod(optarg, NULL)); break;
        case 't': options.ttft = seconds(optarg); break;
        case 'k': options.prompt_tokens = atol(optarg); break;
        case 'e': options.endpoints = atol(optarg); break;
        case 'f': options.full = atol(optarg); break;
        case 'm': options.max_seconds = atol(optarg); break;
        case 'd': options.seed = strtoull(optarg, NULL, 10); break;
        case 'c': cert = optarg; break;
        case 'y': key = optarg; break;
        default: return 2;
        }
    }
    if (options.endpoints < 1 || options.endpoints > 3 || options.pieces < 6 || options.size < 1 || options.gap < 1) {
        fprintf(stderr, "load server: --endpoints is 1 to 3, --pieces 6 or more, --size and --rate above 0\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    answers_init();
    int port = 0, tls_port = 0;
    poller = epoll_create1(EPOLL_CLOEXEC);
    stats.counted_at = now_us();
    listener_plain = listening(&port);
    if (cert) {
        tls = SSL_CTX_new(TLS_server_method());
        SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION);
        SSL_CTX_set_mode(tls, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        if (SSL_CTX_use_certificate_chain_file(tls, cert) != 1 ||
            SSL_CTX_use_PrivateKey_file(tls, key ? key : cert, SSL_FILETYPE_PEM) != 1) {
            ERR_print_errors_fp(stderr);
            return 1;
        }
        listener_tls = listening(&tls_port);
    }
    printf("{\"port\": %d, \"tls_port\": %d, \"pid\": %d}\n", port, tls_port, (int)getpid());
    fflush(stdout);
    serve();
    return 0;
}
