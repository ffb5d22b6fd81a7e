/* A client of corosync in a run of `roundelay bench ring`: sends and reads through libcpg, and checks
 * what it reads. It does the same as `peers/member.py`, without Python between corosync and the figure.
 *
 *   cpg_client TASK NODE NODES SENDERS SECONDS WARM_S RATE EXACT POOLS
 *
 * TASK is `load` or `pace`; NODE is this node's number, from 1 to NODES; SENDERS is a string with 1 or 0
 * for every node; EXACT is 1 if every message is built from its number and compared byte by byte. POOLS
 * is a file that says how many messages a node has, and has those of every node, each with its length
 * before it; numbers in it have four bytes, the most significant first. It talks with the leader as all nodes do: one JSON document a line.
 */

#include <corosync/cpg.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define POOL_MAX 65536
#define NODES_MAX 26
#define MESSAGE_BYTES_MAX 1000000
#define HEAD_BYTES 8       /* of a message that is built from its number */
#define MARK_BYTES 3       /* of a message of a pool: the node's name and two digits */
#define TURN_MESSAGES 500  /* sent between two calls of cpg_dispatch */
#define FORMING_S 30.0
#define BRIEF_MS 1
#define WAIT_MS 50

static cpg_handle_t handle;
static int cpg_fd;
static int nodes, self, exact, paced;
static int sends[NODES_MAX + 1], open_senders;
static uint32_t pool_size;
static unsigned char *pool[NODES_MAX + 1][POOL_MAX];
static uint32_t pool_bytes[NODES_MAX + 1][POOL_MAX];
static unsigned char pattern[256 + MESSAGE_BYTES_MAX];
static uint64_t next_number[NODES_MAX + 1], count, digest = 14695981039346656037u, sent;
static double since_s, *latencies;
static size_t latency_count, latency_room;

static double now_s(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *why, long code) {
  printf("{\"failure\": \"%s (%ld)\"}\n", why, code);
  fflush(stdout);
  exit(1);
}

/* The message of this number, as every node builds it: `workload.Numbered` is the same in Python. */
static uint32_t build(int node, uint64_t number, unsigned char *into) {
  uint32_t bytes = pool_bytes[node][number % pool_size];
  into[0] = pool[node][0][0];
  for (int i = 1; i < HEAD_BYTES; i++) into[i] = (unsigned char)(number >> 8 * (HEAD_BYTES - 1 - i));
  memcpy(into + HEAD_BYTES, pattern + number % 256, bytes - HEAD_BYTES);
  return bytes;
}

static void note_latency(const unsigned char *message, double now) {
  uint64_t bits = 0;
  double at;
  for (int i = 0; i < 8; i++) bits = bits << 8 | message[i];
  memcpy(&at, &bits, sizeof at);
  if (at < since_s) return;
  if (latency_count == latency_room) {
    latency_room = latency_room ? 2 * latency_room : 4096;
    latencies = realloc(latencies, latency_room * sizeof *latencies);
    if (!latencies) fail("out of memory", 0);
  }
  latencies[latency_count++] = now - at;
}

static void on_deliver(cpg_handle_t h, const struct cpg_name *group, uint32_t node, uint32_t pid,
                       void *data, size_t bytes) {
  static unsigned char wanted[MESSAGE_BYTES_MAX];
  (void)h, (void)group, (void)pid;
  if (node < 1 || node > (uint32_t)nodes) fail("a message of a node that is not in the run", node);
  uint64_t number = next_number[node]++;
  count++;
  digest = (digest ^ node) * 1099511628211u;
  digest = (digest ^ number) * 1099511628211u;
  if (bytes == 3 && !memcmp(data, "end", 3)) {
    if (sends[node]) sends[node] = 0, open_senders--;
  } else if (paced) {
    note_latency(data, now_s(CLOCK_MONOTONIC));
  } else if (exact) {
    uint32_t due = build((int)node, number, wanted);
    if (bytes != due || memcmp(data, wanted, due)) fail("a message is not what was sent", (long)number);
  } else if (bytes < MARK_BYTES || memcmp(data, pool[node][number % pool_size], MARK_BYTES)) {
    fail("a message is out of its place", (long)number);
  }
}

static void on_change(cpg_handle_t h, const struct cpg_name *group, const struct cpg_address *members,
                      size_t member_count, const struct cpg_address *left, size_t left_count,
                      const struct cpg_address *joined, size_t joined_count) {
  (void)h, (void)group, (void)members, (void)member_count;
  (void)left, (void)left_count, (void)joined, (void)joined_count;
}

static int submit(const void *data, size_t bytes) {
  struct iovec part = {(void *)data, bytes};
  cs_error_t code = cpg_mcast_joined(handle, CPG_TYPE_AGREED, &part, 1);
  if (code != CS_OK && code != CS_ERR_TRY_AGAIN) fail("corosync refused a message", code);
  sent += code == CS_OK;
  return code == CS_OK;
}

static void dispatch(int wait_ms) {
  struct pollfd wait = {cpg_fd, POLLIN, 0};
  if (wait_ms) poll(&wait, 1, wait_ms);
  cs_error_t code = cpg_dispatch(handle, CS_DISPATCH_ALL);
  if (code != CS_OK && code != CS_ERR_TRY_AGAIN) fail("corosync delivers nothing", code);
}

/* Read a line of the leader, and drive corosync meanwhile: other nodes may need it. */
static void attend(char *line, size_t room) {
  size_t length = 0;
  for (;;) {
    struct pollfd wait[2] = {{0, POLLIN, 0}, {cpg_fd, POLLIN, 0}};
    poll(wait, 2, WAIT_MS);
    if (wait[0].revents) {
      ssize_t got = read(0, line + length, 1);
      if (got <= 0) exit(1); /* The leader is gone. */
      if (line[length] == '\n' || ++length == room - 1) break;
    }
    if (wait[1].revents) dispatch(0);
  }
  line[length] = 0;
}

static void load(double start, double seconds, double warm_s) {
  static unsigned char own[MESSAGE_BYTES_MAX];
  double since = 0, cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
  uint64_t already = 0;
  int sending = sends[self];
  while (open_senders) {
    double now = now_s(CLOCK_MONOTONIC);
    int room = 0;
    if (!since && now >= start + warm_s) since = now, already = count;
    if (sending && now >= start + seconds) {
      sending = !submit("end", 3);
    } else if (sending) {
      for (int i = 0; i < TURN_MESSAGES; i++) {
        uint32_t at = sent % pool_size;
        const unsigned char *data = pool[self][at];
        uint32_t bytes = pool_bytes[self][at];
        if (exact) bytes = build(self, sent, own), data = own;
        if (!(room = submit(data, bytes))) break;
      }
    }
    dispatch(room ? 0 : BRIEF_MS);
  }
  printf("{\"result\": {\"msgs_per_s\": %.3f, \"cpu_s\": %.6f",
         (double)(count - already) / (now_s(CLOCK_MONOTONIC) - since),
         now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu);
}

static void pace(double start, double seconds, double warm_s, double rate) {
  static unsigned char message[MESSAGE_BYTES_MAX];
  uint64_t due = (uint64_t)(seconds * rate + 0.5);
  int sending = sends[self];
  since_s = start + warm_s;
  while (open_senders) {
    double now = now_s(CLOCK_MONOTONIC), at = start + (double)sent / rate;
    if (sending && now >= at) {
      uint64_t bits;
      memcpy(&bits, &now, sizeof bits);
      for (int i = 0; i < 8; i++) message[i] = (unsigned char)(bits >> 8 * (7 - i));
      if (sent == due) sending = !submit("end", 3);
      else submit(message, pool_bytes[self][0]);
    }
    dispatch(BRIEF_MS);
  }
  printf("{\"result\": {\"latencies_s\": [");
  for (size_t i = 0; i < latency_count; i++) printf(i ? ", %.9f" : "%.9f", latencies[i]);
  printf("]");
}

static uint32_t read_number(FILE *file) {
  unsigned char raw[4];
  if (fread(raw, 1, 4, file) != 4) fail("the file of messages is short", 0);
  return (uint32_t)raw[0] << 24 | raw[1] << 16 | raw[2] << 8 | raw[3];
}

static void read_pools(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail("there is no file of messages", 0);
  pool_size = read_number(file);
  if (pool_size < 1 || pool_size > POOL_MAX) fail("a node has too many messages", pool_size);
  for (int node = 1; node <= nodes; node++) {
    for (uint32_t i = 0; i < pool_size; i++) {
      uint32_t bytes = pool_bytes[node][i] = read_number(file);
      if (bytes < HEAD_BYTES || bytes > MESSAGE_BYTES_MAX) fail("a message has a wrong size", bytes);
      pool[node][i] = malloc(bytes);
      if (!pool[node][i] || fread(pool[node][i], 1, bytes, file) != bytes)
        fail("the file of messages is short", node);
    }
  }
  fclose(file);
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i * 167 + 13);
}

static void join(void) {
  cpg_callbacks_t callbacks = {on_deliver, on_change};
  struct cpg_name name = {5, "bench"};
  struct cpg_address members[128];
  int there = 0;
  double limit = now_s(CLOCK_MONOTONIC) + FORMING_S;
  cs_error_t code;
  while ((code = cpg_initialize(&handle, &callbacks)) != CS_OK) {
    if (now_s(CLOCK_MONOTONIC) > limit) fail("corosync does not answer", code);
    usleep(WAIT_MS * 1000);
  }
  while ((code = cpg_join(handle, &name)) != CS_OK) {
    if (now_s(CLOCK_MONOTONIC) > limit) fail("corosync lets nobody join", code);
    usleep(WAIT_MS * 1000);
  }
  if ((code = cpg_fd_get(handle, &cpg_fd)) != CS_OK) fail("corosync names no descriptor", code);
  while (there != nodes) {
    if (now_s(CLOCK_MONOTONIC) > limit) fail("the nodes did not find each other", there);
    dispatch(WAIT_MS);
    if (cpg_membership_get(handle, &name, members, &there) != CS_OK) there = 0;
  }
}

int main(int argc, char **argv) {
  char line[4096], *told;
  struct rusage used;
  if (argc != 10) fail("wrong arguments", argc);
  paced = !strcmp(argv[1], "pace");
  self = atoi(argv[2]);
  nodes = atoi(argv[3]);
  if (nodes < 1 || nodes > NODES_MAX || self < 1 || self > nodes) fail("wrong arguments", nodes);
  for (int i = 1; i <= nodes; i++) open_senders += sends[i] = argv[4][i - 1] == '1';
  double seconds = atof(argv[5]), warm_s = atof(argv[6]), rate = atof(argv[7]);
  exact = atoi(argv[8]);
  read_pools(argv[9]);
  join();
  printf("{\"ready\": true}\n");
  fflush(stdout);
  do attend(line, sizeof line);
  while (!(told = strstr(line, "\"start\":")));
  double start = strtod(told + 8, NULL);
  while (now_s(CLOCK_MONOTONIC) < start) dispatch(BRIEF_MS);
  if (paced) pace(start, seconds, warm_s, rate);
  else load(start, seconds, warm_s);
  getrusage(RUSAGE_SELF, &used);
  printf(", \"digest\": %llu, \"sent\": %llu, \"peak_mb\": %.1f, \"counts\": {",
         (unsigned long long)digest, (unsigned long long)sent, (double)used.ru_maxrss / 1024);
  for (int i = 1; i <= nodes; i++)
    printf("%s\"%c\": %llu", i > 1 ? ", " : "", pool[i][0][0], (unsigned long long)next_number[i]);
  printf("}}}\n");
  fflush(stdout);
  do attend(line, sizeof line);
  while (!strstr(line, "\"leave\""));
  return 0;
}
