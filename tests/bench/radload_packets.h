/* The packets of radload: octets in, octets out, no sockets and no clock.
 *
 * MD5 and HMAC-MD5 run from states that hold the secret already, since the generator shares its two cores with the
 * server that it measures.
 */
#ifndef RADLOAD_PACKETS_H
#define RADLOAD_PACKETS_H
#define OPENSSL_API_COMPAT 0x10101000L /* an MD5_CTX can be copied, where EVP allocates */
#include <arpa/inet.h>
#include <openssl/md5.h>
#include <openssl/rand.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACCESS_REQUEST = 1, ACCESS_ACCEPT = 2, ACCESS_REJECT = 3, ACCOUNTING_REQUEST = 4, ACCOUNTING_RESPONSE = 5,
       ACCESS_CHALLENGE = 11 };
enum { /* RFC 2865 section 5, RFC 2866 section 5.5, RFC 3579 section 3.2 */
    USER_NAME = 1, USER_PASSWORD = 2, NAS_IP_ADDRESS = 4, NAS_PORT = 5, SERVICE_TYPE = 6, CALLED_STATION_ID = 30,
    CALLING_STATION_ID = 31, NAS_IDENTIFIER = 32, ACCT_SESSION_ID = 44, NAS_PORT_TYPE = 61, MESSAGE_AUTHENTICATOR = 80,
    FRAMED_IP_ADDRESS = 8, ACCT_STATUS_TYPE = 40, ACCT_DELAY_TIME = 41, ACCT_INPUT_OCTETS = 42, ACCT_OUTPUT_OCTETS = 43,
    ACCT_SESSION_TIME = 46, ACCT_INPUT_PACKETS = 47, ACCT_OUTPUT_PACKETS = 48, ACCT_TERMINATE_CAUSE = 49,
};
enum { START = 1, STOP = 2, INTERIM = 3, USER_REQUEST = 1 };
enum { LOGIN_USER = 1, PORT_TYPE_VIRTUAL = 5 };
enum { SIGNATURE_AT = 22 }; /* Message-Authenticator comes first: a header of 20 octets, type, length, value */

struct request {
    uint16_t length;
    uint8_t octets[416]; /* push_record takes at most 312, push_login 282 and what proves the user */
};

struct proof { /* attributes in place of a password */
    uint8_t length, octets[128];
};

struct login { /* what differs from one request to the next; status: of an accounting record; proof: NULL: a password */
    int user, nas, port;
    unsigned station;
    bool is_wrong, is_signed;
    const char *session;
    int status;
    const struct proof *proof;
};

static const char *secret;
static MD5_CTX hmac_inner, hmac_outer; /* HMAC-MD5 (RFC 2104) after its padded key */
static const uint8_t ZEROS[16];

static void fail(const char *what) {
    fprintf(stderr, "radload: %s\n", what);
    exit(2);
}

static void use_secret(const char *shared_secret) {
    uint8_t key[64] = {0}, pad[64];
    size_t length = strlen(shared_secret);
    if (length > sizeof key) fail("the secret is longer than 64 octets");
    secret = shared_secret;
    memcpy(key, secret, length);
    for (int i = 0; i < 64; i++) pad[i] = key[i] ^ 0x36;
    MD5_Init(&hmac_inner);
    MD5_Update(&hmac_inner, pad, sizeof pad);
    for (int i = 0; i < 64; i++) pad[i] = key[i] ^ 0x5c;
    MD5_Init(&hmac_outer);
    MD5_Update(&hmac_outer, pad, sizeof pad);
}

static void finish_hmac(MD5_CTX *inner, uint8_t digest[16]) {
    MD5_CTX outer = hmac_outer;
    MD5_Final(digest, inner);
    MD5_Update(&outer, digest, 16);
    MD5_Final(digest, &outer);
}

static void push(struct request *request, uint8_t type, const void *value, size_t length) {
    uint8_t *attribute = request->octets + request->length;
    if (length > 253 || request->length + length + 2 > sizeof request->octets) fail("a request became too long");
    attribute[0] = type;
    attribute[1] = (uint8_t)(length + 2);
    memcpy(attribute + 2, value, length);
    request->length = (uint16_t)(request->length + length + 2);
}

static void push_text(struct request *request, uint8_t type, const char *text) {
    push(request, type, text, strlen(text));
}

static void push_number(struct request *request, uint8_t type, uint32_t number) {
    uint32_t network = htonl(number);
    push(request, type, &network, sizeof network);
}

/* Hides a password of at most 16 octets (RFC 2865 section 5.2): one block, the longest that users have here. */
static void push_password(struct request *request, const char *password) {
    uint8_t hidden[16] = {0}, mask[16];
    MD5_CTX md5;
    memcpy(hidden, password, strlen(password));
    MD5_Init(&md5);
    MD5_Update(&md5, secret, strlen(secret));
    MD5_Update(&md5, request->octets + 4, 16);
    MD5_Final(mask, &md5);
    for (int i = 0; i < 16; i++) hidden[i] ^= mask[i];
    push(request, USER_PASSWORD, hidden, sizeof hidden);
}

static void push_sender(struct request *request, const struct login *login) {
    char text[32];
    unsigned station = login->station;
    push_number(request, NAS_IP_ADDRESS, 0x0A000001u + (uint32_t)login->nas);
    push_number(request, NAS_PORT, (uint32_t)login->port);
    snprintf(text, sizeof text, "nas-%d", login->nas);
    push_text(request, NAS_IDENTIFIER, text);
    snprintf(text, sizeof text, "02-00-%02X-%02X-%02X-%02X", station >> 24, station >> 16 & 255, station >> 8 & 255,
             station & 255);
    push_text(request, CALLING_STATION_ID, text);
    push_text(request, CALLED_STATION_ID, "AA-BB-CC-DD-EE-FF:corp");
    push_number(request, NAS_PORT_TYPE, PORT_TYPE_VIRTUAL);
    push_number(request, SERVICE_TYPE, LOGIN_USER);
    push_text(request, ACCT_SESSION_ID, login->session);
}

static void push_login(struct request *request, const struct login *login) {
    char text[32];
    snprintf(text, sizeof text, "user%d", login->user);
    push_text(request, USER_NAME, text);
    if (login->proof != NULL) {
        memcpy(request->octets + request->length, login->proof->octets, login->proof->length);
        request->length = (uint16_t)(request->length + login->proof->length);
    } else {
        snprintf(text, sizeof text, "pass%d%s", login->user, login->is_wrong ? "X" : "");
        push_password(request, text);
    }
    push_sender(request, login);
}

/* The counters grow as after one and two minutes. But the records of a session follow one another within milliseconds, so
 * that its time is 0 s: a device that claims more begins its session again with each record (RFC 2866 section 5.7). */
static void push_record(struct request *request, const struct login *login) {
    char text[32];
    uint32_t minutes = login->status == START ? 0 : login->status == INTERIM ? 1 : 2;
    snprintf(text, sizeof text, "user%d", login->user);
    push_text(request, USER_NAME, text);
    push_number(request, ACCT_STATUS_TYPE, (uint32_t)login->status);
    push_number(request, ACCT_DELAY_TIME, 0);
    push_number(request, FRAMED_IP_ADDRESS, 0x0A800000u + (uint32_t)login->user);
    push_sender(request, login);
    if (minutes == 0) return;
    push_number(request, ACCT_SESSION_TIME, 0);
    push_number(request, ACCT_INPUT_OCTETS, minutes * 100000);
    push_number(request, ACCT_OUTPUT_OCTETS, minutes * 900000);
    push_number(request, ACCT_INPUT_PACKETS, minutes * 400);
    push_number(request, ACCT_OUTPUT_PACKETS, minutes * 700);
    if (login->status == STOP) push_number(request, ACCT_TERMINATE_CAUSE, USER_REQUEST);
}

/* Its authenticator is of the packet, with zeros in its own place, and the secret (RFC 2866 section 3). */
static void build_record(struct request *request, uint8_t identifier, const struct login *login) {
    uint8_t *octets = request->octets;
    MD5_CTX md5;
    octets[0] = ACCOUNTING_REQUEST;
    octets[1] = identifier;
    memset(octets + 4, 0, 16);
    request->length = 20;
    push_record(request, login);
    octets[2] = (uint8_t)(request->length >> 8);
    octets[3] = (uint8_t)request->length;
    MD5_Init(&md5);
    MD5_Update(&md5, octets, request->length);
    MD5_Update(&md5, secret, strlen(secret));
    MD5_Final(octets + 4, &md5);
}

/* Signed first, as it should be since CVE-2024-3596; the signature is computed last. */
static void build_request(struct request *request, uint8_t identifier, const struct login *login) {
    uint8_t *octets = request->octets;
    octets[0] = ACCESS_REQUEST;
    octets[1] = identifier;
    if (RAND_bytes(octets + 4, 16) != 1) fail("no random octets");
    request->length = 20;
    if (login->is_signed) push(request, MESSAGE_AUTHENTICATOR, ZEROS, sizeof ZEROS);
    push_login(request, login);
    octets[2] = (uint8_t)(request->length >> 8);
    octets[3] = (uint8_t)request->length;
    if (!login->is_signed) return;
    MD5_CTX inner = hmac_inner;
    MD5_Update(&inner, octets, request->length);
    finish_hmac(&inner, octets + SIGNATURE_AT);
}

static bool is_response_authenticator_right(const uint8_t *reply, size_t length, const uint8_t *request) {
    uint8_t digest[16];
    MD5_CTX md5;
    MD5_Init(&md5);
    MD5_Update(&md5, reply, 4);
    MD5_Update(&md5, request + 4, 16);
    MD5_Update(&md5, reply + 20, length - 20);
    MD5_Update(&md5, secret, strlen(secret));
    MD5_Final(digest, &md5);
    return memcmp(digest, reply + 4, 16) == 0;
}

static bool is_message_authenticator_right(const uint8_t *reply, size_t length, const uint8_t *request, size_t at) {
    uint8_t digest[16];
    MD5_CTX inner = hmac_inner;
    MD5_Update(&inner, reply, 4);
    MD5_Update(&inner, request + 4, 16);
    MD5_Update(&inner, reply + 20, at - 20);
    MD5_Update(&inner, ZEROS, sizeof ZEROS);
    MD5_Update(&inner, reply + at + 16, length - at - 16);
    finish_hmac(&inner, digest);
    return memcmp(digest, reply + at, 16) == 0;
}

/* Where the value of the Message-Authenticator begins, 0 without one, -1 for malformed attributes. */
static int find_message_authenticator(const uint8_t *reply, size_t length) {
    int found = 0;
    for (size_t at = 20; at < length; at += reply[at + 1]) {
        if (at + 2 > length || reply[at + 1] < 2 || at + reply[at + 1] > length) return -1;
        if (reply[at] != MESSAGE_AUTHENTICATOR) continue;
        if (found != 0 || reply[at + 1] != 18) return -1;
        found = (int)at + 2;
    }
    return found;
}

/* A reply without Message-Authenticator may be authentic; *is_signed tells whether it had one. */
static bool is_authentic(const uint8_t *reply, size_t received, const struct request *request, bool *is_signed) {
    size_t length = (size_t)reply[2] << 8 | reply[3];
    if (length < 20 || length > received) return false;
    int signature = find_message_authenticator(reply, length);
    if (signature < 0 || !is_response_authenticator_right(reply, length, request->octets)) return false;
    *is_signed = signature > 0;
    return signature == 0 || is_message_authenticator_right(reply, length, request->octets, (size_t)signature);
}

#endif
