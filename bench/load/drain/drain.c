/* The floor: a client that decrypts streams and throws them away. One thread, epoll, OpenSSL.
 *
 *   drain PORT CA STREAMS      prints CPU seconds, wall seconds, bytes
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BODY "{\"stream\":true}"

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

typedef struct {
    SSL *ssl;
    int fd;
    char tail[5];
    int done;
} Stream;

static void open_stream(Stream *stream, SSL_CTX *context, int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    stream->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(stream->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(stream->fd, (struct sockaddr *)&to, sizeof to))
        exit((perror("drain: connect"), 1));
    stream->ssl = SSL_new(context);
    SSL_set_fd(stream->ssl, stream->fd);
    if (SSL_connect(stream->ssl) != 1)
        exit((ERR_print_errors_fp(stderr), 1));
    char request[256];
    int n = sprintf(request, "POST /api/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                    sizeof BODY - 1, BODY);
    SSL_write(stream->ssl, request, n);
    fcntl(stream->fd, F_SETFL, O_NONBLOCK);
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    int port = atoi(argv[1]), count = atoi(argv[3]), left = count, poller = epoll_create1(0);
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1)
        return 1;
    Stream *streams = calloc(count, sizeof *streams);
    double began = now();
    for (int i = 0; i < count; i++) {
        open_stream(&streams[i], context, port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &streams[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, streams[i].fd, &event);
    }
    double ramped = now();
    long long bytes = 0;
    static char data[65536];
    static struct epoll_event events[1024];
    while (left) {
        int n = epoll_wait(poller, events, 1024, 1000);
        for (int i = 0; i < n; i++) {
            Stream *stream = events[i].data.ptr;
            for (int got; (got = SSL_read(stream->ssl, data, sizeof data)) > 0; bytes += got)
                if (got >= 5 && memcmp(data + got - 5, "0\r\n\r\n", 5) == 0 && !stream->done) {
                    stream->done = 1;
                    left--;
                    epoll_ctl(poller, EPOLL_CTL_DEL, stream->fd, NULL);
                }
        }
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    printf("{\"cpu\": %.3f, \"wall\": %.3f, \"ramp\": %.3f, \"bytes\": %lld}\n", cpu, now() - began, ramped - began, bytes);
    return 0;
}
