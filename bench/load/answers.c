/* The bytes of answers, as OpenRouter writes them: one event a piece, or one body. */
#define _GNU_SOURCE
#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MODEL "moonshotai/kimi-k2.5"
#define PERMASLUG MODEL "-0127"
#define ROTATIONS 64
#define LATE 20000

/* Words that are one token of Kimi K2's vocabulary, with a blank before them and without. */
static const char *WORDS[] = {
    "water",   "river",    "window",  "letter",  "number",  "answer",  "question", "reason",  "simple",  "better",
    "around",  "before",   "during",  "between", "without", "against", "together", "another", "possible", "common",
    "general", "special",  "natural", "physical", "public", "private", "modern",   "central", "western", "early",
    "second",  "third",    "single",  "double",  "whole",   "broken",  "perfect",  "quiet",   "heavy",   "light",
    "strong",  "narrow",   "family",  "market",  "forest",  "station", "bridge",   "castle",  "museum",  "library",
    "school",
};
#define WORD_COUNT (sizeof WORDS / sizeof *WORDS)

static const struct {
    const char *name, *tag;
    int prompt, completion; /* nano-dollars a token */
} PROVIDERS[] = {
    {"Chutes", "chutes/int4", 440, 2000},
    {"SiliconFlow", "siliconflow/int4", 450, 2250},
    {"AtlasCloud", "atlas-cloud/int4", 500, 2500},
};

static Bytes reasonings[ROTATIONS], contents[ROTATIONS];
static long reasoning_words, content_words;

static uint64_t mixed(uint64_t x) { /* splitmix64, https://prng.di.unimi.it/splitmix64.c (public domain) */
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static const char *word(uint64_t at) { return WORDS[at % WORD_COUNT]; }

/* So many tokens as JSON: words, each after a blank, and a line break. Whitespace at both ends shows that none is taken off. */
static Bytes words(uint64_t first, long count) {
    Bytes text = {malloc(count * 12 + 3), 0};
    for (long i = 0; i < count - 1; i++)
        text.len += sprintf(text.data + text.len, " %s", word(first + i));
    text.len += sprintf(text.data + text.len, "\\n");
    return text;
}

void answers_init(void) {
    double mean = 0;
    for (size_t i = 0; i < WORD_COUNT; i++)
        mean += (strlen(WORDS[i]) + 1.0) / WORD_COUNT;
    long all = (long)(options.size / mean);
    all = all < 6 ? 6 : all;
    reasoning_words = all * 2 / 3;
    content_words = all - reasoning_words;
    for (int i = 0; i < ROTATIONS; i++) {
        reasonings[i] = words(i * 7, reasoning_words);
        contents[i] = words(i * 7 + 3, content_words);
    }
}

static int usage_json(char *to, const Conn *conn, long reasoning, long completion) {
    int64_t prompt = (int64_t)PROVIDERS[conn->provider].prompt * options.prompt_tokens;
    int64_t sampled = (int64_t)PROVIDERS[conn->provider].completion * completion, cost = prompt + sampled;
#define DOLLARS(nano) (long long)((nano) / 1000000000), (long long)((nano) % 1000000000)
    return sprintf(to,
                   "{\"prompt_tokens\":%ld,\"completion_tokens\":%ld,\"total_tokens\":%ld,\"cost\":%lld.%09lld,"
                   "\"is_byok\":false,\"prompt_tokens_details\":{\"cached_tokens\":0,\"cache_write_tokens\":0,"
                   "\"audio_tokens\":0,\"video_tokens\":0},\"cost_details\":{\"upstream_inference_cost\":%lld.%09lld,"
                   "\"upstream_inference_prompt_cost\":%lld.%09lld,\"upstream_inference_completions_cost\":%lld.%09lld},"
                   "\"completion_tokens_details\":{\"reasoning_tokens\":%ld,\"image_tokens\":0,\"audio_tokens\":0}}",
                   options.prompt_tokens, completion, options.prompt_tokens + completion, DOLLARS(cost), DOLLARS(cost),
                   DOLLARS(prompt), DOLLARS(sampled), reasoning);
}

/* id, created, model and provider; the id ends with the request's number, by which GET /finished names it. */
static int identity(char *to, const Conn *conn, const char *object) {
    time_t created = time(NULL);
    return sprintf(to,
                   "{\"id\":\"gen-%lld-%010lld\",\"object\":\"%s\",\"created\":%lld,\"model\":\"" PERMASLUG
                   "\",\"provider\":\"%s\"",
                   (long long)created, (long long)conn->number, object, (long long)created,
                   PROVIDERS[conn->provider].name);
}

static char *append(char *to, const char *text, size_t len) {
    memcpy(to, text, len);
    return to + len;
}

#define LITERAL(to, text) append(to, text, sizeof(text) - 1)

/* One HTTP chunk around `len` bytes that stand at `at` + 6. */
static size_t chunked(char *at, size_t len) {
    char size[8];
    sprintf(size, "%04zx\r\n", len);
    memcpy(at, size, 6);
    memcpy(at + 6 + len, "\r\n", 2);
    return len + 8;
}

static void stream_piece(Conn *conn, long piece) {
    static const char end[] = "},\"finish_reason\":null,\"native_finish_reason\":null}]}\n\n";
    long reasoning = options.pieces * 2 / 3;
    bool thinks = piece < reasoning, last = piece == reasoning - 1 || piece == options.pieces - 1;
    char text[24], buffer[1024], *at = buffer + 6;
    size_t len = sprintf(text, "%s%s", last ? "\\n" : " ", last ? "" : word(conn->number * 7 + piece));
    at = append(at, conn->head, conn->head_len);
    if (thinks) {
        at = LITERAL(at, "\"content\":\"\",\"role\":\"assistant\",\"reasoning\":\"");
        at = append(at, text, len);
        at = LITERAL(at, "\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"");
        at = append(at, text, len);
        at = LITERAL(at, "\",\"format\":\"unknown\",\"index\":0}]");
    } else {
        at = LITERAL(at, "\"content\":\"");
        at = append(at, text, len);
        at = LITERAL(at, "\",\"role\":\"assistant\"");
    }
    at = append(at, end, sizeof end - 1);
    put(conn, buffer, chunked(buffer, at - buffer - 6));
}

static void stream_begin(Conn *conn) {
    char buffer[512];
    conn->head_len = 6;
    memcpy(conn->head, "data: ", 6);
    conn->head_len += identity(conn->head + 6, conn, "chat.completion.chunk");
    conn->head_len += sprintf(conn->head + conn->head_len, ",\"choices\":[{\"index\":0,\"delta\":{");
    int len = sprintf(buffer,
                      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\n%s"
                      "Transfer-Encoding: chunked\r\nX-Generation-Id: gen-%lld-%010lld\r\n\r\n",
                      conn->close_after ? "Connection: close\r\n" : "", (long long)time(NULL), (long long)conn->number);
    static const char comment[] = ": OPENROUTER PROCESSING\n\n";
    memcpy(buffer + len + 6, comment, sizeof comment - 1);
    len += chunked(buffer + len, sizeof comment - 1);
    put(conn, buffer, len);
}

/* The finish, the usage with the clock, [DONE] and the end of the body, in one write. */
static void stream_end(Conn *conn) {
    long reasoning = options.pieces * 2 / 3;
    char buffer[4096], *at = buffer + 6;
    at = append(at, conn->head, conn->head_len);
    at = LITERAL(at, "\"content\":\"\",\"role\":\"assistant\",\"reasoning\":null},\"finish_reason\":\"stop\","
                     "\"native_finish_reason\":\"stop\"}]}\n\n");
    size_t len = chunked(buffer, at - buffer - 6);
    char *second = buffer + len;
    at = append(second + 6, conn->head, conn->head_len);
    at = LITERAL(at, "\"content\":\"\",\"role\":\"assistant\"},\"finish_reason\":\"stop\","
                     "\"native_finish_reason\":\"stop\"}],\"usage\":");
    at += usage_json(at, conn, reasoning, options.pieces + 2);
    at += sprintf(at, ",\"t\":%lld}\n\n", (long long)(now_us() / 1000));
    len += chunked(second, at - second - 6);
    static const char done[] = "data: [DONE]\n\n";
    memcpy(buffer + len + 6, done, sizeof done - 1);
    len += chunked(buffer + len, sizeof done - 1);
    memcpy(buffer + len, "0\r\n\r\n", 5);
    put(conn, buffer, len + 5);
}

static void whole(Conn *conn) {
    static char *body = NULL;
    if (!body)
        body = malloc(options.size * 4 + 8192);
    Bytes *thought = &reasonings[conn->number % ROTATIONS], *said = &contents[conn->number % ROTATIONS];
    char *at = body + identity(body, conn, "chat.completion");
    at = LITERAL(at, ",\"system_fingerprint\":null,\"choices\":[{\"index\":0,\"logprobs\":null,\"finish_reason\":\"stop\","
                     "\"native_finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":\"");
    at = append(at, said->data, said->len);
    at = LITERAL(at, "\",\"refusal\":null,\"reasoning\":\"");
    at = append(at, thought->data, thought->len);
    at = LITERAL(at, "\",\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"");
    at = append(at, thought->data, thought->len);
    at = LITERAL(at, "\",\"format\":\"unknown\",\"index\":0}]}}],\"usage\":");
    at += usage_json(at, conn, reasoning_words, reasoning_words + content_words + 2);
    at += sprintf(at, ",\"t\":%lld}", (long long)(now_us() / 1000));
    reply(conn, 200, "application/json", body, at - body);
}

void reply(Conn *conn, int status, const char *type, const char *body, size_t len) {
    char head[512];
    int n = sprintf(head, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s", status,
                    status == 200 ? "OK" : "Not Found", type, len, conn->close_after ? "Connection: close\r\n" : "");
    if (conn->phase == WAITING)
        n += sprintf(head + n, "X-Generation-Id: gen-%lld-%010lld\r\n", (long long)time(NULL), (long long)conn->number);
    n += sprintf(head + n, "\r\n");
    char *message = malloc(n + len);
    memcpy(message, head, n);
    memcpy(message + n, body, len);
    put(conn, message, n + len);
    free(message);
}

static int provider_of(const char *body, size_t len) {
    for (int i = 0; i < options.endpoints; i++)
        if (memmem(body, len, PROVIDERS[i].tag, strlen(PROVIDERS[i].tag)))
            return i;
    return 0;
}

/* A request came: its first bytes and its first due time. The caller has given it its number. */
void answer_begin(Conn *conn, const char *body, size_t len) {
    int64_t now = now_us();
    bool streams = memmem(body, len, "\"stream\":true", 13) || memmem(body, len, "\"stream\": true", 14);
    conn->provider = options.endpoints > 1 ? provider_of(body, len) : 0;
    conn->piece = 0;
    conn->phase = streams ? STREAMING : WAITING;
    if (streams) {
        conn->nominal = options.ttft + options.pieces * options.gap;
        stream_begin(conn);
        due_at(conn, now + options.ttft);
    } else {
        double share = (double)(mixed(options.seed + conn->number) >> 11) / 9007199254740992.0;
        conn->nominal = options.latency_min + (int64_t)(share * (options.latency_max - options.latency_min));
        due_at(conn, now + conn->nominal);
    }
}

/* What is due by now: pieces by an absolute schedule, or the end. */
void answer_go_on(Conn *conn) {
    while (!conn->closed && conn->phase == STREAMING && conn->piece < options.pieces) {
        int64_t lag = now_us() - conn->due;
        if (lag < 0) {
            due_at(conn, conn->due);
            return;
        }
        stats.late += lag > LATE;
        stats.worst_late = lag > stats.worst_late ? lag : stats.worst_late;
        stats.pieces++;
        stream_piece(conn, conn->piece++);
        conn->due += options.gap;
    }
    if (conn->closed)
        return;
    if (now_us() < conn->due) {
        due_at(conn, conn->due);
        return;
    }
    if (conn->phase == STREAMING)
        stream_end(conn);
    else
        whole(conn);
    finished(conn);
}

size_t endpoints_json(char *to, size_t room) {
    size_t n = snprintf(to, room,
                        "{\"data\":{\"id\":\"" MODEL "\",\"name\":\"MoonshotAI: Kimi K2.5\",\"created\":1769472000,"
                        "\"description\":\"Load server.\",\"architecture\":{\"modality\":\"text->text\",\"input_modalities\":"
                        "[\"text\"],\"output_modalities\":[\"text\"],\"tokenizer\":\"Other\",\"instruct_type\":null},"
                        "\"endpoints\":[");
    for (int i = 0; i < options.endpoints; i++)
        n += snprintf(to + n, room - n,
                      "%s{\"name\":\"%s | " PERMASLUG "\",\"model_id\":\"" MODEL "\",\"model_name\":\"MoonshotAI: Kimi "
                      "K2.5\",\"context_length\":262144,\"pricing\":{\"prompt\":\"0.%09d\",\"completion\":\"0.%09d\","
                      "\"discount\":0},\"provider_name\":\"%s\",\"tag\":\"%s\",\"quantization\":\"int4\","
                      "\"max_completion_tokens\":262144,\"max_prompt_tokens\":null,\"supported_parameters\":[\"max_tokens\","
                      "\"temperature\",\"top_p\",\"tools\",\"tool_choice\",\"reasoning\"],\"status\":0,"
                      "\"uptime_last_5m\":99.0,\"uptime_last_30m\":99.0,\"uptime_last_1d\":99.0,\"latency_last_30m\":null,"
                      "\"throughput_last_30m\":null,\"supports_implicit_caching\":false}",
                      i ? "," : "", PROVIDERS[i].name, PROVIDERS[i].prompt, PROVIDERS[i].completion, PROVIDERS[i].name,
                      PROVIDERS[i].tag);
    return n + snprintf(to + n, room - n, "]}}");
}
