/* radload: a RADIUS load generator that costs little, so that what it measures is the server.
 *
 * Every request is built before the clock starts. While it runs, one thread keeps a window of requests
 * outstanding (closed loop) or sends at a fixed rate (open loop), retransmits what was not answered, and checks the
 * authenticators of every reply. At the end it prints one line of JSON.
 *
 * A request carries its identifier from the start, since Message-Authenticator covers it. It is sent on any socket
 * that has this identifier free; 256 identifiers on each of several sockets leave room for many outstanding requests.
 *
 * cc -std=c11 -O2 -Wall -Wextra -o radload radload.c -lcrypto
 */
#define _GNU_SOURCE
#include "radload_packets.h"
#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PACKET = 4096, MAX_REQUESTS = 4000000, MAX_SOCKETS = 256, MAX_PIDS = 16, MAX_PREFIX = 64 };
enum { IN_A_ROW = 1024 }; /* records of one kind, more than are outstanding, so that those of a session come in order */
enum { TIMER = MAX_SOCKETS }; /* what epoll names the timer of a paced run */

static const char USAGE[] =
    "radload sends RADIUS Access-Requests to a loopback address and prints one line of JSON.\n"
    "  -h ADDRESS  server, 127.0.0.0/8 or ::1 (127.0.0.1)   -p PORT     its port (1812)\n"
    "  -S SECRET   shared secret (testing123)               -n COUNT    requests to send, at most 4000000 (60000)\n"
    "  -w COUNT    requests outstanding (32)                -r RATE     requests a second instead of a window;\n"
    "                                                                   latency then counts from the time due\n"
    "  -T SECONDS  stop sending after that time (60)        -t SECONDS  wait before a retransmission (2)\n"
    "  -R COUNT    times a request is sent at most (3)      -k COUNT    sockets, 256 identifiers each (4 or more)\n"
    "  -u COUNT    users user0.. with passwords pass0.. (100)\n"
    "  -f NUMBER   first user (0), so that another run has users of its own\n"
    "  -b PERCENT  wrong passwords (0)                      -N COUNT    NAS nas-0.. at 10.0.0.1.. (1)\n"
    "  -m          a new Calling-Station-Id each request    -M          no Message-Authenticator\n"
    "  -o NUMBER   of the first new station (0), so that another run has stations of its own\n"
    "  -a          Accounting-Requests instead: of each 1024 sessions the Starts, an interim record each, the Stops\n"
    "  -c FILE     attributes in place of passwords: a line of hexadecimal for each user from user0 on\n"
    "  -s PREFIX   of each Acct-Session-Id, which is PREFIX and the request's index in eight hexadecimal digits\n"
    "  -i PID      measure this server process; may be given several times\n"
    "  -l FILE     write a line for each answer: index, code, user, Acct-Session-Id, Acct-Status-Type, number of the\n"
    "              station, begin in seconds of the monotonic clock, latency in seconds, reply in hexadecimal\n"
    "Exit status: 0 all answered and authentic, 1 not so, 2 wrong usage or no start.\n";

struct options {
    const char *address, *secret, *session_prefix, *log_path, *proofs_path;
    int port, count, window, sockets, users, first_user, first_station, wrong_percent, nas_count, max_tries;
    int pid_count, pids[MAX_PIDS];
    double rate, seconds, timeout;
    bool new_stations, is_unsigned, is_accounting;
};

struct slot { /* one identifier of one socket; former: the request before, whose answer may come twice */
    uint32_t request, former;
    int tries;
    bool busy;
    double started, last_sent;
};

struct usage { double cpu_seconds; long rss_kib; };

struct run {
    struct request *requests;
    struct slot (*slots)[256]; /* by socket, by identifier */
    int *sockets, epoll, timer;
    double *latencies;
    int sent, answered, outstanding, accepts, rejects, challenges, lost, retransmitted, bad_replies, unsigned_replies;
    double began, last_answer;
    FILE *log;
};

static struct options options = {
    .address = "127.0.0.1", .secret = "testing123", .session_prefix = "", .port = 1812, .count = 60000, .window = 32,
    .users = 100, .nas_count = 1, .max_tries = 3, .seconds = 60, .timeout = 2,
};

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (memory == NULL) fail("out of memory");
    return memory;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void session_of(int index, char *text, size_t size) {
    int session = options.is_accounting ? index / (3 * IN_A_ROW) * IN_A_ROW + index % IN_A_ROW : index;
    snprintf(text, size, "%s%08X", options.session_prefix, (unsigned)session);
}

static int status_of(int index) {
    static const int statuses[] = {START, INTERIM, STOP};
    return options.is_accounting ? statuses[index / IN_A_ROW % 3] : 0;
}

static int user_of(int index) {
    return options.first_user + (options.is_accounting ? index % IN_A_ROW : index) % options.users;
}

static unsigned station_of(int index) {
    return (unsigned)(options.new_stations ? options.first_station + index : user_of(index));
}

static struct proof *read_proofs(void) {
    int count = options.first_user + options.users;
    struct proof *proofs = allocate((size_t)count, sizeof *proofs);
    FILE *file = fopen(options.proofs_path, "r");
    if (file == NULL) fail("the attributes cannot be read");
    for (int i = 0; i < count; i++) {
        char line[2 * sizeof proofs->octets + 2];
        if (fgets(line, sizeof line, file) == NULL) fail("there are fewer lines of attributes than users");
        for (char *digits = line; *digits != '\n'; digits += 2)
            if (proofs[i].length == sizeof proofs->octets ||
                sscanf(digits, "%2hhx", &proofs[i].octets[proofs[i].length++]) != 1)
                fail("attributes that are not hexadecimal, or over 128 octets");
    }
    fclose(file);
    return proofs;
}

static void build_requests(struct run *run) {
    struct proof *proofs = options.proofs_path != NULL ? read_proofs() : NULL;
    char session[MAX_PREFIX + 16];
    srand(1); /* the same requests have wrong passwords in each run */
    for (int i = 0; i < options.count; i++) {
        int user = user_of(i);
        session_of(i, session, sizeof session);
        struct login login = {
            .user = user, .nas = (options.is_accounting ? user : i) % options.nas_count,
            .port = 1000 + (options.is_accounting ? user : i) % 1000,
            .station = station_of(i),
            .is_signed = !options.is_unsigned, .is_wrong = rand() % 100 < options.wrong_percent,
            .session = session, .status = status_of(i),
            .proof = proofs != NULL ? &proofs[user] : NULL,
        };
        (options.is_accounting ? build_record : build_request)(&run->requests[i], (uint8_t)i, &login);
    }
    free(proofs);
}

/* ---- sending and receiving ---- */

static struct sockaddr_storage loopback_address(socklen_t *length) {
    struct sockaddr_storage storage = {0};
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&storage;
    struct sockaddr_in6 *ipv6 = (struct sockaddr_in6 *)&storage;
    if (inet_pton(AF_INET, options.address, &ipv4->sin_addr) == 1 && ntohl(ipv4->sin_addr.s_addr) >> 24 == 127) {
        ipv4->sin_family = AF_INET;
        ipv4->sin_port = htons((uint16_t)options.port);
        *length = sizeof *ipv4;
        return storage;
    }
    memset(&storage, 0, sizeof storage);
    if (inet_pton(AF_INET6, options.address, &ipv6->sin6_addr) != 1 || !IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr))
        fail("it sends to loopback addresses only");
    ipv6->sin6_family = AF_INET6;
    ipv6->sin6_port = htons((uint16_t)options.port);
    *length = sizeof *ipv6;
    return storage;
}

static void watch(struct run *run, int descriptor, uint32_t name) {
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = name};
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) fail("epoll_ctl failed");
}

static void open_sockets(struct run *run) {
    socklen_t length;
    struct sockaddr_storage address = loopback_address(&length);
    int buffer = 4 << 20; /* a burst of replies must not be lost on our side */
    run->epoll = epoll_create1(0);
    for (int i = 0; i < options.sockets; i++) {
        run->sockets[i] = socket(address.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
        if (run->sockets[i] < 0 || connect(run->sockets[i], (struct sockaddr *)&address, length) != 0)
            fail("no socket to the server");
        setsockopt(run->sockets[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        watch(run, run->sockets[i], (uint32_t)i);
    }
}

/* A paced run wakes at its rate, or each 100 us and sends what is due. */
static void start_timer(struct run *run) {
    double interval = 1 / options.rate < 1e-4 ? 1e-4 : 1 / options.rate > 0.1 ? 0.1 : 1 / options.rate;
    struct timespec period = {.tv_nsec = (long)(interval * 1e9)};
    struct itimerspec timer = {.it_interval = period, .it_value = period};
    run->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    if (run->timer < 0 || timerfd_settime(run->timer, 0, &timer, NULL) != 0) fail("no timer");
    watch(run, run->timer, TIMER);
    /* Latency counts from the time due, so that a generator that waits for a processor would count as a slow server. */
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0 && errno != EPERM) fail("no priority"); /* only root may have it */
}

/* Sends the next request on a socket that has its identifier free; false where none has, or the socket is full.
 * ECONNREFUSED tells of an earlier datagram: the server is down, and the retransmission finds it again. */
static bool send_next(struct run *run, double due, double time) {
    struct request *request = &run->requests[run->sent];
    int identifier = request->octets[1];
    for (int i = 0; i < options.sockets; i++) {
        int socket = ((run->sent >> 8) + i) % options.sockets;
        struct slot *slot = &run->slots[socket][identifier];
        if (slot->busy) continue;
        if (send(run->sockets[socket], request->octets, request->length, 0) < 0 && errno != ECONNREFUSED) return false;
        *slot = (struct slot){(uint32_t)run->sent, slot->request, 1, true, due, time};
        run->sent++;
        run->outstanding++;
        return true;
    }
    return false;
}

static void send_due(struct run *run, double time) {
    if (options.rate <= 0) {
        while (run->outstanding < options.window && run->sent < options.count && send_next(run, time, time)) continue;
        return;
    }
    while (run->sent < options.count) {
        double due = run->began + run->sent / options.rate;
        if (due > time || !send_next(run, due, time)) return;
    }
}

static void write_log(struct run *run, const struct slot *slot, const uint8_t *reply, size_t length, double time) {
    char session[MAX_PREFIX + 16];
    int index = (int)slot->request;
    session_of(index, session, sizeof session);
    fprintf(run->log, "%d\t%d\tuser%d\t%s\t%d\t", index, reply[0], user_of(index), session, status_of(index));
    fprintf(run->log, "%u\t%.6f\t%.6f\t", station_of(index), slot->started, time - slot->started);
    for (size_t i = 0; i < length; i++) fprintf(run->log, "%02x", reply[i]);
    fputc('\n', run->log);
}

static void take_reply(struct run *run, int socket, const uint8_t *reply, size_t length, double time) {
    struct slot *slot = &run->slots[socket][reply[1]];
    bool is_signed;
    if (length < 20 || !slot->busy) return; /* a second answer, to a retransmission */
    if (!is_authentic(reply, length, &run->requests[slot->request], &is_signed)) {
        run->bad_replies += !is_authentic(reply, length, &run->requests[slot->former], &is_signed);
        return;
    }
    run->unsigned_replies += !is_signed;
    slot->busy = false;
    run->outstanding--;
    run->latencies[run->answered++] = time - slot->started;
    run->last_answer = time;
    run->accepts += reply[0] == (options.is_accounting ? ACCOUNTING_RESPONSE : ACCESS_ACCEPT);
    run->rejects += reply[0] == ACCESS_REJECT;
    run->challenges += reply[0] == ACCESS_CHALLENGE;
    if (run->log != NULL) write_log(run, slot, reply, length, time);
}

static void receive(struct run *run, int wait_ms) {
    struct epoll_event events[64];
    uint8_t reply[MAX_PACKET];
    ssize_t length;
    uint64_t expirations;
    int ready = epoll_wait(run->epoll, events, 64, wait_ms);
    for (int i = 0; i < ready; i++) {
        uint32_t name = events[i].data.u32;
        if (name == TIMER) {
            if (read(run->timer, &expirations, sizeof expirations) < 0) continue;
        } else {
            while ((length = recv(run->sockets[name], reply, sizeof reply, 0)) > 0)
                take_reply(run, (int)name, reply, (size_t)length, now());
        }
    }
}

static void retransmit(struct run *run, double time) {
    for (int i = 0; i < options.sockets * 256; i++) {
        struct slot *slot = &run->slots[i / 256][i % 256];
        if (!slot->busy || time - slot->last_sent < options.timeout) continue;
        if (slot->tries >= options.max_tries) {
            slot->busy = false;
            run->outstanding--;
            run->lost++;
            continue;
        }
        struct request *request = &run->requests[slot->request];
        if (send(run->sockets[i / 256], request->octets, request->length, 0) < 0 && errno == EAGAIN) return;
        slot->last_sent = time;
        slot->tries++;
        run->retransmitted++;
    }
}

static void drive(struct run *run) {
    double time = run->began = run->last_answer = now(), last_scan = time;
    while (true) {
        bool sending = run->sent < options.count && time - run->began < options.seconds;
        if (sending) send_due(run, time);
        else if (run->outstanding == 0) return;
        receive(run, 20);
        time = now();
        if (time - last_scan < 0.05) continue;
        last_scan = time;
        retransmit(run, time);
    }
}

/* ---- measuring ---- */

static struct usage server_usage(void) {
    struct usage sum = {0, 0};
    for (int i = 0; i < options.pid_count; i++) {
        char path[64], text[1024];
        unsigned long user = 0, kernel = 0;
        long resident_pages = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", options.pids[i]);
        FILE *file = fopen(path, "r");
        if (file == NULL) continue; /* it was killed */
        size_t length = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[length] = 0;
        const char *after_name = strrchr(text, ')'); /* fields 14, 15 and 24 of proc(5) */
        const char *fields = " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld";
        if (after_name == NULL || sscanf(after_name + 1, fields, &user, &kernel, &resident_pages) != 3) continue;
        sum.cpu_seconds += (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
        sum.rss_kib += resident_pages * (sysconf(_SC_PAGESIZE) / 1024);
    }
    return sum;
}

static int compare(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double percentile_ms(const struct run *run, double share) {
    if (run->answered == 0) return 0;
    int at = (int)(run->answered * share);
    return run->latencies[at < run->answered ? at : run->answered - 1] * 1e3;
}

static void print_result(struct run *run, struct usage before, struct usage after) {
    double seconds = run->last_answer - run->began, cpu = after.cpu_seconds - before.cpu_seconds;
    qsort(run->latencies, (size_t)run->answered, sizeof *run->latencies, compare);
    printf("{\"sent\": %d, \"answered\": %d, \"accepts\": %d, \"rejects\": %d, \"challenges\": %d, \"lost\": %d, "
           "\"retransmitted\": %d, \"bad_replies\": %d, \"unsigned_replies\": %d, ",
           run->sent, run->answered, run->accepts, run->rejects, run->challenges, run->lost, run->retransmitted,
           run->bad_replies, run->unsigned_replies);
    printf("\"seconds\": %.6f, \"requests_per_second\": %.1f, \"latency_ms\": {\"p50\": %.3f, \"p90\": %.3f, "
           "\"p99\": %.3f, \"p999\": %.3f, \"max\": %.3f}, ",
           seconds, seconds > 0 ? run->answered / seconds : 0, percentile_ms(run, 0.5), percentile_ms(run, 0.9),
           percentile_ms(run, 0.99), percentile_ms(run, 0.999), percentile_ms(run, 1));
    printf("\"server_cpu_seconds\": %.2f, \"server_cpu_us_per_request\": %.2f, \"rss_before_kib\": %ld, "
           "\"rss_after_kib\": %ld}\n",
           cpu, run->answered > 0 ? cpu / run->answered * 1e6 : 0, before.rss_kib, after.rss_kib);
}

/* ---- the command line ---- */

static double number(const char *text, double lowest, double highest) {
    char *end;
    double value = strtod(text, &end);
    if (*text == 0 || *end != 0 || !(value >= lowest && value <= highest)) {
        fprintf(stderr, "radload: %s is not a number from %.10g to %.10g\n%s", text, lowest, highest, USAGE);
        exit(2);
    }
    return value;
}

static int whole(const char *text, int lowest, int highest) {
    return (int)number(text, lowest, highest);
}

static void read_option(int option) {
    switch (option) {
    case 'h': options.address = optarg; break;
    case 'p': options.port = whole(optarg, 1, 65535); break;
    case 'S': options.secret = optarg; break;
    case 'n': options.count = whole(optarg, 1, MAX_REQUESTS); break;
    case 'w': options.window = whole(optarg, 1, MAX_SOCKETS * 64); break;
    case 'r': options.rate = number(optarg, 0.01, 1e6); break;
    case 'T': options.seconds = number(optarg, 0.1, 3600); break;
    case 't': options.timeout = number(optarg, 0.05, 60); break;
    case 'R': options.max_tries = whole(optarg, 1, 1000); break;
    case 'k': options.sockets = whole(optarg, 1, MAX_SOCKETS); break;
    case 'u': options.users = whole(optarg, 1, MAX_REQUESTS); break;
    case 'f': options.first_user = whole(optarg, 0, MAX_REQUESTS); break;
    case 'b': options.wrong_percent = whole(optarg, 0, 100); break;
    case 'N': options.nas_count = whole(optarg, 1, MAX_REQUESTS); break;
    case 'm': options.new_stations = true; break;
    case 'M': options.is_unsigned = true; break;
    case 'o': options.first_station = whole(optarg, 0, 1 << 30); break;
    case 'a': options.is_accounting = true; break;
    case 's': options.session_prefix = optarg; break;
    case 'l': options.log_path = optarg; break;
    case 'c': options.proofs_path = optarg; break;
    case 'i':
        if (options.pid_count == MAX_PIDS) fail("too many processes");
        options.pids[options.pid_count++] = whole(optarg, 1, 1 << 30);
        break;
    default: fputs(USAGE, stderr); exit(2);
    }
}

static void read_options(int argc, char **argv) {
    int option;
    while ((option = getopt(argc, argv, "h:p:S:n:w:r:T:t:R:k:u:f:b:N:mMo:as:i:l:c:")) != -1) read_option(option);
    if (optind != argc) read_option('?');
    if (strlen(options.session_prefix) > MAX_PREFIX) fail("the prefix is longer than 64 characters");
    /* Four identifiers for each outstanding request: one that waits for its timeout must not hold up the others. */
    int fewest = (options.window * 4 + 255) / 256;
    if (options.sockets == 0) options.sockets = fewest > 4 ? fewest : 4;
    if (options.sockets * 256 < options.window) fail("the window needs more sockets");
}

int main(int argc, char **argv) {
    struct run run = {0};
    read_options(argc, argv);
    use_secret(options.secret);
    run.sockets = allocate((size_t)options.sockets, sizeof *run.sockets);
    run.slots = allocate((size_t)options.sockets, sizeof *run.slots);
    run.latencies = allocate((size_t)options.count, sizeof *run.latencies);
    run.requests = allocate((size_t)options.count, sizeof *run.requests);
    open_sockets(&run);
    build_requests(&run);
    if (options.log_path != NULL && (run.log = fopen(options.log_path, "w")) == NULL) fail("the log cannot be written");
    if (options.rate > 0) start_timer(&run);
    struct usage before = server_usage();
    drive(&run);
    struct usage after = server_usage();
    if (run.log != NULL && fclose(run.log) != 0) fail("the log could not be written");
    print_result(&run, before, after);
    return run.answered == run.sent && run.bad_replies == 0 ? 0 : 1;
}
