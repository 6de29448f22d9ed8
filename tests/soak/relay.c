/* A relay of datagrams on loopback that loses, repeats and reorders them.
 *
 *     relay SEED LISTEN:TARGET...     ports of 127.0.0.1
 *
 * A client keeps its own address and gets one port of the relay, so that the server can tell clients and sockets apart.
 * A line `LOSS REPEAT DELAY` on standard input sets the probabilities in permille, for both directions. It prints a line
 * of JSON with its counts in answer, and at the end of its input. A datagram that is delayed waits up to DELAY_MS, so
 * that later ones overtake it.
 *
 * cc -std=c11 -O2 -Wall -Wextra -o relay relay.c
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PAIRS = 16, MAX_PATHS = 8192, MAX_LATE = 4096, MAX_SIZE = 4096, DELAY_MS = 60 };
enum { INPUT = MAX_PATHS + MAX_PAIRS }; /* what epoll names standard input */

struct pair { int socket, target; };

struct path { /* of one socket of a client */
    int socket, pair;
    struct sockaddr_in client;
};

struct late { /* a datagram that waits */
    bool waits, is_answer;
    int path;
    double due;
    size_t size;
    uint8_t octets[MAX_SIZE];
};

static struct pair pairs[MAX_PAIRS];
static struct path paths[MAX_PATHS];
static struct late *late;
static int epoll, pair_count, path_count, oldest_path, permille[3];
static unsigned long received, lost, repeated, delayed;
static uint64_t state;

static void fail(const char *what) {
    fprintf(stderr, "relay: %s: %s\n", what, strerror(errno));
    exit(2);
}

static int random_below(int limit) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)limit);
}

static bool happens(int which) {
    return random_below(1000) < permille[which];
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static struct sockaddr_in loopback(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void watch(int descriptor, uint32_t name) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl");
}

static int bound(struct sockaddr_in address) {
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), size = 4 << 20;
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, sizeof address) != 0) fail("bind");
    setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    return descriptor;
}

/* Returns the path of a client's socket. With all paths in use, the oldest one is taken. */
static int path_of(int pair, const struct sockaddr_in *client) {
    for (int i = path_count - 1; i >= 0; i--)
        if (paths[i].pair == pair && paths[i].client.sin_port == client->sin_port &&
            paths[i].client.sin_addr.s_addr == client->sin_addr.s_addr)
            return i;
    int found = path_count < MAX_PATHS ? path_count++ : oldest_path++ % MAX_PATHS;
    if (paths[found].client.sin_family != 0) close(paths[found].socket);
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr = client->sin_addr};
    struct sockaddr_in target = loopback(pairs[pair].target);
    paths[found] = (struct path){bound(own), pair, *client};
    if (connect(paths[found].socket, (struct sockaddr *)&target, sizeof target) != 0) fail("connect");
    watch(paths[found].socket, (uint32_t)found);
    return found;
}

static void deliver(int path, bool is_answer, const uint8_t *octets, size_t size) {
    struct path *known = &paths[path];
    struct sockaddr *client = (struct sockaddr *)&known->client;
    if (!is_answer) (void)!send(known->socket, octets, size, 0); /* the server may be down */
    else (void)!sendto(pairs[known->pair].socket, octets, size, 0, client, sizeof known->client);
}

static bool hold(int path, bool is_answer, const uint8_t *octets, size_t size) {
    for (int i = 0; i < MAX_LATE; i++) {
        if (late[i].waits) continue;
        late[i].waits = true;
        late[i].is_answer = is_answer;
        late[i].path = path;
        late[i].size = size;
        late[i].due = now() + (double)random_below(DELAY_MS) / 1000;
        memcpy(late[i].octets, octets, size);
        return true;
    }
    return false;
}

static void pass(int path, bool is_answer, const uint8_t *octets, size_t size) {
    received++;
    if (happens(0)) {
        lost++;
        return;
    }
    if (happens(1)) {
        repeated++;
        deliver(path, is_answer, octets, size);
    }
    if (happens(2) && hold(path, is_answer, octets, size)) delayed++;
    else deliver(path, is_answer, octets, size);
}

static void pass_late(void) {
    double time = now();
    for (int i = 0; i < MAX_LATE; i++) {
        if (!late[i].waits || late[i].due > time) continue;
        late[i].waits = false;
        deliver(late[i].path, late[i].is_answer, late[i].octets, late[i].size);
    }
}

static void receive(uint32_t name) {
    uint8_t octets[MAX_SIZE];
    struct sockaddr_in sender;
    socklen_t length = sizeof sender;
    bool is_answer = name < MAX_PATHS;
    int from = is_answer ? paths[name].socket : pairs[name - MAX_PATHS].socket;
    for (int i = 0; i < 64; i++, length = sizeof sender) {
        ssize_t size = recvfrom(from, octets, sizeof octets, 0, (struct sockaddr *)&sender, &length);
        if (size < 0) return; /* also ECONNREFUSED: the server was down */
        pass(is_answer ? (int)name : path_of((int)name - MAX_PATHS, &sender), is_answer, octets, (size_t)size);
    }
}

static void print_counts(void) {
    printf("{\"received\": %lu, \"lost\": %lu, ", received, lost);
    printf("\"repeated\": %lu, \"delayed\": %lu}\n", repeated, delayed);
    fflush(stdout);
}

static bool read_line(void) {
    char line[64];
    if (fgets(line, sizeof line, stdin) == NULL) return false;
    if (sscanf(line, "%d %d %d", &permille[0], &permille[1], &permille[2]) != 3) fail("no probabilities");
    print_counts();
    return true;
}

int main(int argc, char **argv) {
    if (argc < 3 || argc - 2 > MAX_PAIRS) fail("usage: relay SEED LISTEN:TARGET...");
    setvbuf(stdin, NULL, _IONBF, 0);
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 88172645463325252u;
    epoll = epoll_create1(EPOLL_CLOEXEC);
    late = calloc(MAX_LATE, sizeof *late);
    if (late == NULL) fail("memory");
    for (; pair_count < argc - 2; pair_count++) {
        int listen;
        if (sscanf(argv[pair_count + 2], "%d:%d", &listen, &pairs[pair_count].target) != 2) fail("no ports");
        pairs[pair_count].socket = bound(loopback(listen));
        watch(pairs[pair_count].socket, (uint32_t)(MAX_PATHS + pair_count));
    }
    watch(STDIN_FILENO, INPUT);
    puts("ready");
    fflush(stdout);
    while (true) {
        struct epoll_event events[64];
        int ready = epoll_wait(epoll, events, 64, permille[2] > 0 ? 2 : 20);
        bool has_input = false; /* it is read after the datagrams that came before it */
        for (int i = 0; i < ready; i++) {
            if (events[i].data.u32 == INPUT) has_input = true;
            else receive(events[i].data.u32);
        }
        if (has_input && !read_line()) break;
        pass_late();
    }
    print_counts();
    return 0;
}
