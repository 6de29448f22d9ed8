/* provider: a second-factor provider whose users approve after a fixed time, at little cost.
 *
 * HTTP/1.1 on a free port of 127.0.0.1, which it prints. Connections stay open; one request at a time on each.
 *
 *   POST /held     200 {"status": "approved"}, held back until the user has approved
 *   POST /polled   202 {"poll_url": ...}, at once
 *   GET /due/TIME  200 {"status": "waiting"}, from TIME on "approved": what /polled gave; TIME is of our clock in ms
 *   POST /rest     204, held back until the user has approved: what rlm_rest takes for yes
 *
 * cc -std=c11 -O2 -Wall -Wextra -o provider provider.c && ./provider MILLISECONDS
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 16384, MAX_REQUEST = 8192, BACKLOG = 4096 };

struct connection { /* by descriptor; serial tells it from one that had the descriptor before */
    char octets[MAX_REQUEST + 1];
    int length;
    unsigned serial;
};

struct held { /* an answer that is due later */
    double due;
    int descriptor;
    unsigned serial;
    bool is_rest;
};

static struct connection *connections[MAX_CONNECTIONS];
static struct held held[1 << 16]; /* all wait equally long, so the first in is the first out */
static unsigned first, next, serials;
static int port;
static double delay_ms;

static void fail(const char *what) {
    fprintf(stderr, "provider: %s\n", what);
    exit(2);
}

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

static void say(int descriptor, const char *status, const char *body) {
    char text[512];
    int length = snprintf(text, sizeof text, "HTTP/1.1 %s\r\nContent-Type: application/json\r\n", status);
    if (*body == 0) length += snprintf(text + length, sizeof text - (size_t)length, "\r\n");
    else length += snprintf(text + length, sizeof text - (size_t)length, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    if (write(descriptor, text, (size_t)length) != length) fprintf(stderr, "provider: an answer was not taken\n");
}

static void answer(int descriptor, const char *request) {
    char body[128];
    struct connection *connection = connections[descriptor];
    bool is_rest = strncmp(request, "POST /rest ", 11) == 0;
    if (is_rest || strncmp(request, "POST /held ", 11) == 0) {
        if (next - first == sizeof held / sizeof *held) fail("too many requests are held");
        held[next++ % (sizeof held / sizeof *held)] =
            (struct held){now_ms() + delay_ms, descriptor, connection->serial, is_rest};
    } else if (strncmp(request, "POST /polled ", 13) == 0) {
        snprintf(body, sizeof body, "{\"poll_url\": \"http://127.0.0.1:%d/due/%.0f\"}", port, now_ms() + delay_ms);
        say(descriptor, "202 Accepted", body);
    } else if (strncmp(request, "GET /due/", 9) == 0) {
        bool is_due = now_ms() >= atof(request + 9);
        say(descriptor, "200 OK", is_due ? "{\"status\": \"approved\"}" : "{\"status\": \"waiting\"}");
    } else {
        say(descriptor, "404 Not Found", "{}");
    }
}

/* The length of the first request in the buffer; 0 while it is not whole. */
static int whole_request(const struct connection *connection) {
    const char *end = strstr(connection->octets, "\r\n\r\n");
    if (end == NULL) return 0;
    const char *size = strcasestr(connection->octets, "\r\ncontent-length:");
    int length = (int)(end + 4 - connection->octets) + (size != NULL && size < end ? atoi(size + 17) : 0);
    return length <= connection->length ? length : 0;
}

static void hang_up(int descriptor) {
    close(descriptor);
    free(connections[descriptor]);
    connections[descriptor] = NULL;
}

static void receive(int descriptor) {
    struct connection *connection = connections[descriptor];
    ssize_t got = read(descriptor, connection->octets + connection->length, (size_t)(MAX_REQUEST - connection->length));
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return hang_up(descriptor); /* closed, or a request that is too long */
    connection->length += (int)got;
    connection->octets[connection->length] = 0;
    for (int length; (length = whole_request(connection)) > 0;) {
        answer(descriptor, connection->octets);
        connection->length -= length;
        memmove(connection->octets, connection->octets + length, (size_t)connection->length + 1);
    }
}

static void take(int epoll, int listener) {
    int on = 1, descriptor;
    while ((descriptor = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
        if (descriptor >= MAX_CONNECTIONS) fail("too many connections");
        connections[descriptor] = calloc(1, sizeof **connections);
        if (connections[descriptor] == NULL) fail("out of memory");
        connections[descriptor]->serial = ++serials;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
    }
}

static void answer_due(void) {
    for (double time = now_ms(); first != next && held[first % (sizeof held / sizeof *held)].due <= time; first++) {
        struct held *due = &held[first % (sizeof held / sizeof *held)];
        struct connection *connection = connections[due->descriptor];
        if (connection == NULL || connection->serial != due->serial) continue;
        if (due->is_rest) say(due->descriptor, "204 No Content", "");
        else say(due->descriptor, "200 OK", "{\"status\": \"approved\"}");
    }
}

static int listen_on_loopback(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, BACKLOG) != 0)
        fail("no port to listen on");
    getsockname(listener, (struct sockaddr *)&address, &length);
    port = ntohs(address.sin_port);
    return listener;
}

int main(int argc, char **argv) {
    struct epoll_event events[256];
    if (argc != 2 || (delay_ms = atof(argv[1])) < 0) fail("usage: provider MILLISECONDS");
    int listener = listen_on_loopback(), epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener};
    if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0) fail("no epoll");
    printf("%d\n", port);
    fflush(stdout);
    while (true) {
        double left = first == next ? -1 : held[first % (sizeof held / sizeof *held)].due - now_ms();
        int ready = epoll_wait(epoll, events, 256, first == next ? -1 : left <= 0 ? 0 : (int)left + 1);
        answer_due();
        for (int i = 0; i < ready; i++) {
            if (events[i].data.fd == listener) take(epoll, listener);
            else if (connections[events[i].data.fd] != NULL) receive(events[i].data.fd);
        }
    }
}
