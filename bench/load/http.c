/* HTTP/1.1 requests: framing, and which path gets what. */
#define _GNU_SOURCE
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

int64_t *finish_ms;
static int64_t finish_room;

/* The value of a header field in a head that ends with an empty line; NULL if it is not there. */
static const char *field(const char *head, const char *end, const char *name) {
    size_t len = strlen(name);
    for (const char *line = memmem(head, end - head, "\r\n", 2); line && line + 2 < end;
         line = memmem(line + 2, end - line - 2, "\r\n", 2)) {
        const char *at = line + 2;
        if ((size_t)(end - at) > len && strncasecmp(at, name, len) == 0 && at[len] == ':') {
            for (at += len + 1; *at == ' '; at++) {
            }
            return at;
        }
    }
    return NULL;
}

/* Length of a chunked body on the wire from `at`, joined in place into *body_len bytes; 0 if it is not whole. */
static size_t dechunk(char *at, size_t len, size_t *body_len) {
    size_t read = 0, chunk = 0;
    for (int pass = 0; pass < 2; pass++) { /* first see whether all is there, then join */
        size_t written = 0;
        for (read = 0;;) {
            char *line = memmem(at + read, len - read, "\r\n", 2);
            if (!line)
                return 0;
            chunk = strtoul(at + read, NULL, 16);
            read = line + 2 - at;
            if (read + chunk + 2 > len)
                return 0;
            if (pass)
                memmove(at + written, at + read, chunk);
            written += chunk;
            read += chunk + 2;
            if (chunk == 0)
                break;
        }
        *body_len = written;
    }
    return read;
}

static int mark_json(char *to, const char *name, const Mark *mark) {
    if (!mark->clock)
        return sprintf(to, ",\"%s\":null", name);
    return sprintf(to, ",\"%s\":{\"clock\":%.6f,\"integral\":%.6f,\"overtime\":%.6f,\"requests\":%lld,\"finished\":%lld}",
                   name, mark->clock / 1e6, mark->in_flight_us / 1e6, mark->overtime_us / 1e6,
                   (long long)mark->requests, (long long)mark->finished);
}

static void give_stats(Conn *conn) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int64_t now = now_us();
    double cpu = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    double integral = (stats.in_flight_us + stats.open * (now - stats.counted_at)) / 1e6;
    char body[2048];
    int n = sprintf(body,
                    "{\"clock\":%.6f,\"open\":%lld,\"peak\":%lld,\"requests\":%lld,\"finished\":%lld,\"broken\":%lld,"
                    "\"pieces\":%lld,\"late\":%lld,\"worst_late_ms\":%.3f,\"connections\":%lld,\"connected\":%lld,"
                    "\"handshakes\":%lld,\"integral\":%.6f,\"overtime\":%.6f,\"nominal\":%.6f,\"cpu\":%.6f",
                    now / 1e6, (long long)stats.open, (long long)stats.peak, (long long)stats.requests,
                    (long long)stats.finished, (long long)stats.broken, (long long)stats.pieces, (long long)stats.late,
                    stats.worst_late / 1e3, (long long)stats.connections, (long long)stats.connected,
                    (long long)stats.handshakes, integral, stats.overtime_us / 1e6,
                    stats.nominal_us / 1e6, cpu);
    n += mark_json(body + n, "first", &stats.first);
    n += mark_json(body + n, "full", &stats.full);
    n += mark_json(body + n, "last", &stats.last);
    n += sprintf(body + n, "}");
    reply(conn, 200, "application/json", body, n);
}

/* Clock of each request's last write in milliseconds, 0 while there is none: [of request 1, of request 2, ...]. */
static void give_finished(Conn *conn) {
    char *body = malloc(stats.requests * 21 + 16);
    size_t n = sprintf(body, "[");
    for (int64_t i = 1; i <= stats.requests; i++)
        n += sprintf(body + n, "%s%lld", i > 1 ? "," : "", (long long)finish_ms[i]);
    n += sprintf(body + n, "]");
    reply(conn, 200, "application/json", body, n);
    free(body);
}

static bool ends(const char *path, size_t len, const char *tail) {
    size_t n = strlen(tail);
    return len >= n && memcmp(path + len - n, tail, n) == 0;
}

static void give(Conn *conn, const char *path, size_t len) {
    static const char models[] = "{\"object\":\"list\",\"data\":[{\"id\":\"moonshotai/kimi-k2.5\",\"object\":\"model\","
                                 "\"max_model_len\":262144,\"context_length\":262144}]}";
    static const char key[] =
        "{\"data\":{\"label\":\"sk-or-v1-load...\",\"limit\":null,\"limit_remaining\":null,\"limit_reset\":null,"
        "\"include_byok_in_limit\":false,\"usage\":0,\"usage_daily\":0,\"usage_weekly\":0,\"usage_monthly\":0,"
        "\"byok_usage\":0,\"is_free_tier\":false,\"is_management_key\":false,\"is_provisioning_key\":false,"
        "\"expires_at\":null,\"rate_limit\":{\"requests\":-1,\"interval\":\"10s\"}}}";
    static const char none[] = "{\"error\":{\"code\":404,\"message\":\"Not Found\"}}";
    char body[8192];
    if (ends(path, len, "/stats"))
        give_stats(conn);
    else if (ends(path, len, "/finished"))
        give_finished(conn);
    else if (ends(path, len, "/endpoints"))
        reply(conn, 200, "application/json", body, endpoints_json(body, sizeof body));
    else if (ends(path, len, "/key"))
        reply(conn, 200, "application/json", key, sizeof key - 1);
    else if (ends(path, len, "/models"))
        reply(conn, 200, "application/json", models, sizeof models - 1);
    else
        reply(conn, 404, "application/json", none, sizeof none - 1);
}

static void count_request(Conn *conn) {
    int64_t now = now_us();
    stats.in_flight_us += stats.open * (now - stats.counted_at);
    stats.counted_at = now;
    stats.open++;
    stats.peak = stats.open > stats.peak ? stats.open : stats.peak;
    conn->number = ++stats.requests;
    while (conn->number >= finish_room) {
        int64_t room = finish_room ? 2 * finish_room : 65536;
        finish_ms = realloc(finish_ms, room * sizeof *finish_ms);
        memset(finish_ms + finish_room, 0, (room - finish_room) * sizeof *finish_ms);
        finish_room = room;
    }
    Mark here = {now, stats.in_flight_us, stats.overtime_us, stats.finished, stats.requests};
    if (!stats.first.clock)
        stats.first = here;
    if (!stats.full.clock && options.full && stats.open >= options.full)
        stats.full = here;
    stats.last = here;
}

/* Handle what is whole in `in`, one request at a time: the next one waits for the answer. */
void handle(Conn *conn) {
    while (!conn->closed && conn->phase == IDLE && !conn->close_after && conn->in_len) {
        char *head = conn->in, *end = memmem(head, conn->in_len, "\r\n\r\n", 4);
        if (!end)
            return;
        char *body = end + 4;
        size_t have = conn->in_len - (body - head), wire = 0, body_len = 0;
        const char *length = field(head, body, "content-length"), *coding = field(head, body, "transfer-encoding");
        const char *expect = field(head, body, "expect"), *connection = field(head, body, "connection");
        if (expect && have == 0 && !conn->continued) {
            conn->continued = true;
            put(conn, "HTTP/1.1 100 Continue\r\n\r\n", 25);
        }
        if (length)
            wire = body_len = strtoul(length, NULL, 10);
        else if (coding && !(wire = dechunk(body, have, &body_len)))
            return;
        if (have < wire)
            return;
        conn->continued = false;
        conn->close_after = connection && strncasecmp(connection, "close", 5) == 0;
        char *path = memchr(head, ' ', end - head);
        size_t path_len = path ? strcspn(path + 1, " ?\r") : 0;
        if (path && memcmp(head, "POST ", 5) == 0 && ends(path + 1, path_len, "/chat/completions")) {
            count_request(conn);
            answer_begin(conn, body, body_len);
        } else {
            give(conn, path ? path + 1 : "", path_len);
        }
        conn->in_len -= body + wire - head;
        memmove(conn->in, body + wire, conn->in_len);
    }
}
