/*
 * Checks of a zk-lite ensemble with ZooKeeper's C client. The argument is the
 * connect string; for the checks of SASL the mechanism, the user, a file with
 * the password, the server's host and a prefix of paths are behind it, for that
 * of read-only mode the word read-only. What is
 * printed is described at the type message in integration/cluster.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zookeeper/zookeeper.h>

enum { PATIENCE = 30 /* seconds */, SESSION = 10000 /* milliseconds */, LARGE = 900000, MAX_EVENTS = 64 };

static const char *hosts;
static char failure[1024]; /* of the check that runs */
#ifdef HAVE_CYRUS_SASL_H
static zoo_sasl_params_t sasl; /* no mechlist: without SASL */
#endif

/* A check returns 0, or 1 with its reason in failure. */
#define FAIL(...)                                                                    \
	do {                                                                             \
		int n_ = snprintf(failure, sizeof failure, "c_checks.c:%d: ", __LINE__);     \
		snprintf(failure + n_, sizeof failure - n_, __VA_ARGS__);                    \
		return 1;                                                                    \
	} while (0)
#define EXPECT(condition)                  \
	do {                                   \
		if (!(condition))                  \
			FAIL("%s", "not: " #condition); \
	} while (0)
#define RETURNS(want, call)                                                       \
	do {                                                                          \
		int got_ = (call);                                                        \
		if (got_ != (want))                                                       \
			FAIL("%s gives %d (%s), want %d", #call, got_, zerror(got_), (want)); \
	} while (0)
#define OK(call) RETURNS(ZOK, call)
#define EVENT(log, type, path)                                     \
	do {                                                           \
		if (expect_event(log, type, path, __LINE__))               \
			return 1;                                              \
	} while (0)

/* Events of a session or a watch, in order. */
struct events {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int read, written;
	struct {
		int type, state;
		char path[128];
	} all[MAX_EVENTS];
};

#define NO_EVENTS {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, {{0}}}

static void collect(zhandle_t *zh, int type, int state, const char *path, void *context) {
	struct events *e = context;
	(void)zh;
	pthread_mutex_lock(&e->mutex);
	if (e->written < MAX_EVENTS) {
		e->all[e->written].type = type;
		e->all[e->written].state = state;
		snprintf(e->all[e->written].path, sizeof e->all[0].path, "%s", path ? path : "");
		e->written++;
	}
	pthread_cond_broadcast(&e->changed);
	pthread_mutex_unlock(&e->mutex);
}

/* next waits for the next event and returns its index, or -1. */
static int next(struct events *e) {
	struct timespec deadline;
	int at = -1, rc = 0;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE;
	pthread_mutex_lock(&e->mutex);
	while (e->read == e->written && rc == 0)
		rc = pthread_cond_timedwait(&e->changed, &e->mutex, &deadline);
	if (e->read < e->written)
		at = e->read++;
	pthread_mutex_unlock(&e->mutex);
	return at;
}

/* expect_event passes by the events of the connection. */
static int expect_event(struct events *e, int type, const char *path, int line) {
	int at;
	do {
		at = next(e);
	} while (at >= 0 && e->all[at].type == ZOO_SESSION_EVENT);
	if (at < 0)
		FAIL("line %d: no event %d %s in %d s", line, type, path, PATIENCE);
	if (e->all[at].type != type || strcmp(e->all[at].path, path) != 0)
		FAIL("line %d: event %d %s, want %d %s", line, e->all[at].type, e->all[at].path, type, path);
	return 0;
}

/* await_state waits until a session's watcher has seen a state. */
static int await_state(struct events *e, int state) {
	for (;;) {
		int at = next(e);
		if (at < 0)
			FAIL("the connection is not in state %d after %d s", state, PATIENCE);
		if (e->all[at].type == ZOO_SESSION_EVENT && e->all[at].state == state)
			return 0;
	}
}

/* start begins a session, with what the program was told of TLS or SASL: the client cannot do both at once. */
static zhandle_t *start(const char *to, struct events *e, const clientid_t *id) {
#ifdef HAVE_CYRUS_SASL_H
	if (sasl.mechlist != NULL)
		return zookeeper_init_sasl(to, collect, SESSION, id, e, 0, NULL, &sasl);
#endif
#ifdef HAVE_OPENSSL_H
	const char *dir = getenv("ZK_LITE_INTEROP_TLS");
	if (dir != NULL) {
		char files[1024];
		snprintf(files, sizeof files, "%s/ca.pem,%s/client.pem,%s/client.pem", dir, dir, dir);
		return zookeeper_init_ssl(to, files, collect, SESSION, id, e, 0);
	}
#endif
	return zookeeper_init(to, collect, SESSION, id, e, 0);
}

static zhandle_t *dial(const char *to, struct events *e, const clientid_t *id) {
	zhandle_t *zh = start(to, e, id);
	if (zh == NULL || await_state(e, ZOO_CONNECTED_STATE)) {
		fprintf(stderr, "no connection to %s\n", to);
		exit(1);
	}
	return zh;
}

/* Completions, of which one is waited for at a time. */
struct completion {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	int done, rc;
	long count;
};

#define NOT_COMPLETED {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0, 0}

static void complete(int rc, const void *data) {
	struct completion *c = (struct completion *)data;
	pthread_mutex_lock(&c->mutex);
	c->done++;
	if (c->rc == 0)
		c->rc = rc;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->mutex);
}

static void completed_string(int rc, const char *value, const void *data) {
	(void)value;
	complete(rc, data);
}

static void completed_stat(int rc, const struct Stat *stat, const void *data) {
	struct completion *c = (struct completion *)data;
	if (rc == ZOK && stat->version != ++c->count)
		rc = ZDATAINCONSISTENCY; /* not in the order of the requests */
	complete(rc, data);
}

static int wait_for(struct completion *c, int n) {
	struct timespec deadline;
	int rc = 0;
	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += PATIENCE;
	pthread_mutex_lock(&c->mutex);
	while (c->done < n && rc == 0)
		rc = pthread_cond_timedwait(&c->changed, &c->mutex, &deadline);
	rc = c->done < n ? ZOPERATIONTIMEOUT : c->rc;
	pthread_mutex_unlock(&c->mutex);
	return rc;
}

static int sync_now(zhandle_t *zh) {
	struct completion c = NOT_COMPLETED;
	int rc = zoo_async(zh, "/", completed_string, &c);
	return rc == ZOK ? wait_for(&c, 1) : rc;
}

static void ask(const char *json) {
	char line[64];
	printf("%s\n", json);
	fflush(stdout);
	if (fgets(line, sizeof line, stdin) == NULL || strcmp(line, "done\n") != 0) {
		fprintf(stderr, "the test did not do %s\n", json);
		exit(1);
	}
}

static int operations(void) {
	struct events session = NO_EVENTS;
	struct String_vector names;
	struct Stat stat;
	char path[128], data[64];
	int length = sizeof data;
	zhandle_t *zh = dial(hosts, &session, NULL);
	OK(zoo_create(zh, "/c", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path));
	EXPECT(strcmp(path, "/c") == 0);
	OK(zoo_create2(zh, "/c/2", "yy", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, path, sizeof path, &stat));
	EXPECT(stat.dataLength == 2 && stat.version == 0);
	OK(zoo_create2(zh, "/c/e", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, path, sizeof path, &stat));
	EXPECT(stat.ephemeralOwner == zoo_client_id(zh)->client_id);
	OK(zoo_create(zh, "/c/s-", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, path, sizeof path));
	EXPECT(strcmp(path, "/c/s-0000000002") == 0);
	OK(zoo_create(zh, "/c/es-", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, path, sizeof path));
	EXPECT(strcmp(path, "/c/es-0000000003") == 0);
	OK(zoo_create(zh, "/c/con", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path));
	OK(zoo_create_ttl(zh, "/c/ttl", "t", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 3600000, path, sizeof path));
	OK(zoo_create2_ttl(zh, "/c/ttl-", "t", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 3600000,
		path, sizeof path, &stat));
	RETURNS(ZNODEEXISTS, zoo_create(zh, "/c", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	RETURNS(ZNONODE, zoo_create(zh, "/none/x", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	RETURNS(ZNOCHILDRENFOREPHEMERALS, zoo_create(zh, "/c/e/x", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	OK(zoo_set2(zh, "/c", "one", 3, 0, &stat));
	EXPECT(stat.version == 1 && stat.numChildren == 7);
	RETURNS(ZBADVERSION, zoo_set(zh, "/c", NULL, -1, 0));
	RETURNS(ZNONODE, zoo_set(zh, "/none", NULL, -1, -1));
	OK(zoo_get(zh, "/c", 0, data, &length, &stat));
	EXPECT(length == 3 && memcmp(data, "one", 3) == 0 && stat.dataLength == 3);
	length = sizeof data;
	OK(zoo_get(zh, "/c/e", 0, data, &length, &stat));
	EXPECT(length == -1); /* null, not empty */
	RETURNS(ZNONODE, zoo_get(zh, "/none", 0, data, &length, &stat));
	OK(zoo_exists(zh, "/c", 0, &stat));
	RETURNS(ZNONODE, zoo_exists(zh, "/none", 0, &stat));
	OK(zoo_get_children(zh, "/c", 0, &names));
	EXPECT(names.count == 7);
	deallocate_String_vector(&names);
	OK(zoo_get_children2(zh, "/c", 0, &names, &stat));
	EXPECT(names.count == 7 && stat.cversion == 7);
	deallocate_String_vector(&names);
	RETURNS(ZNOTEMPTY, zoo_delete(zh, "/c", -1));
	RETURNS(ZBADVERSION, zoo_delete(zh, "/c/ttl", 4));
	OK(zoo_delete(zh, "/c/ttl", 0));
	OK(sync_now(zh));
	length = sizeof data;
	RETURNS(ZRECONFIGDISABLED, zoo_reconfig(zh, NULL, "1", NULL, -1, data, &length, &stat));
	OK(zookeeper_close(zh));
	return 0;
}

static int large_data(void) {
	struct events session = NO_EVENTS;
	struct Stat stat;
	int length = LARGE;
	char *in = malloc(LARGE), *out = malloc(LARGE);
	zhandle_t *zh = dial(hosts, &session, NULL);
	memset(in, 'x', LARGE);
	OK(zoo_create(zh, "/large", in, LARGE, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	OK(zoo_get(zh, "/large", 0, out, &length, &stat));
	EXPECT(length == LARGE && memcmp(in, out, LARGE) == 0);
	in = realloc(in, 2 * LARGE);
	RETURNS(ZBADARGUMENTS, zoo_set(zh, "/large", in, 2 * LARGE, -1));
	OK(zoo_exists(zh, "/large", 0, &stat));
	OK(zookeeper_close(zh));
	free(in);
	free(out);
	return 0;
}

static int asynchronous(void) {
	struct events session = NO_EVENTS;
	struct completion c = NOT_COMPLETED;
	zhandle_t *zh = dial(hosts, &session, NULL);
	OK(zoo_create(zh, "/order", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	for (int i = 0; i < 1000; i++)
		OK(zoo_aset(zh, "/order", "x", 1, i, completed_stat, &c));
	OK(wait_for(&c, 1000));
	OK(zookeeper_close(zh));
	return 0;
}

static int acls_and_auth(void) {
	struct events session = NO_EVENTS, others = NO_EVENTS, third = NO_EVENTS;
	struct completion c = NOT_COMPLETED, d = NOT_COMPLETED, e = NOT_COMPLETED;
	struct ACL_vector acl;
	struct Stat stat;
	zhandle_t *zh = dial(hosts, &session, NULL), *other = dial(hosts, &others, NULL), *bad;
	RETURNS(ZINVALIDACL, zoo_create(zh, "/acl", NULL, -1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
	OK(zoo_add_auth(zh, "digest", "user:secret", 11, complete, &c));
	OK(wait_for(&c, 1));
	OK(zoo_create(zh, "/acl", "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
	OK(zoo_get_acl(zh, "/acl", &acl, &stat));
	EXPECT(acl.count == 1 && strcmp(acl.data[0].id.scheme, "digest") == 0 && acl.data[0].perms == ZOO_PERM_ALL);
	deallocate_ACL_vector(&acl);
	RETURNS(ZNOAUTH, zoo_set(other, "/acl", NULL, -1, -1));
	OK(zoo_add_auth(other, "digest", "user:secret", 11, complete, &d));
	OK(wait_for(&d, 1));
	OK(zoo_set(other, "/acl", NULL, -1, -1));
	OK(zoo_set_acl(zh, "/acl", 0, &ZOO_READ_ACL_UNSAFE));
	RETURNS(ZNOAUTH, zoo_set_acl(zh, "/acl", 0, &ZOO_READ_ACL_UNSAFE));
	RETURNS(ZNOAUTH, zoo_set(zh, "/acl", NULL, -1, -1));
	bad = dial(hosts, &third, NULL);
	OK(zoo_add_auth(bad, "what", "ever", 4, complete, &e));
	RETURNS(ZAUTHFAILED, wait_for(&e, 1));
	EXPECT(zoo_state(bad) == ZOO_AUTH_FAILED_STATE);
	zookeeper_close(bad);
	OK(zookeeper_close(other));
	OK(zookeeper_close(zh));
	return 0;
}

static int multi(void) {
	struct events session = NO_EVENTS;
	struct Stat stat;
	zoo_op_t ops[5];
	zoo_op_result_t results[5];
	char path[64];
	zhandle_t *zh = dial(hosts, &session, NULL);
	zoo_create_op_init(&ops[0], "/multi", "m", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_create_op_init(&ops[1], "/multi/s-", "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path);
	zoo_set_op_init(&ops[2], "/multi", "n", 1, 0, &stat);
	zoo_check_op_init(&ops[3], "/multi", 1);
	zoo_delete_op_init(&ops[4], "/multi/s-0000000000", -1);
	OK(zoo_multi(zh, 5, ops, results));
	EXPECT(strcmp(path, "/multi/s-0000000000") == 0 && stat.version == 1);
	zoo_create_op_init(&ops[0], "/multi/never", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	zoo_check_op_init(&ops[1], "/multi", 7);
	zoo_delete_op_init(&ops[2], "/multi", -1);
	RETURNS(ZBADVERSION, zoo_multi(zh, 3, ops, results));
	EXPECT(results[0].err == ZOK && results[1].err == ZBADVERSION && results[2].err == ZRUNTIMEINCONSISTENCY);
	RETURNS(ZNONODE, zoo_exists(zh, "/multi/never", 0, NULL));
	OK(zookeeper_close(zh));
	return 0;
}

static int watches(void) {
	struct events session = NO_EVENTS, others = NO_EVENTS;
	struct events data = NO_EVENTS, there = NO_EVENTS, children = NO_EVENTS, missing = NO_EVENTS;
	struct String_vector names;
	struct Stat stat;
	char buffer[16];
	int length = sizeof buffer;
	zhandle_t *zh = dial(hosts, &session, NULL), *other = dial(hosts, &others, NULL);
	OK(zoo_create(zh, "/w", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	OK(zoo_wget(zh, "/w", collect, &data, buffer, &length, &stat));
	OK(zoo_wexists(zh, "/w", collect, &there, &stat));
	OK(zoo_wget_children(zh, "/w", collect, &children, &names));
	RETURNS(ZNONODE, zoo_wexists(zh, "/w/e", collect, &missing, &stat));
	OK(sync_now(other));
	OK(zoo_set(other, "/w", "1", 1, -1));
	OK(zoo_create(other, "/w/e", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
	EVENT(&data, ZOO_CHANGED_EVENT, "/w");
	EVENT(&there, ZOO_CHANGED_EVENT, "/w");
	EVENT(&children, ZOO_CHILD_EVENT, "/w");
	EVENT(&missing, ZOO_CREATED_EVENT, "/w/e");
	OK(sync_now(zh));
	OK(zoo_wexists(zh, "/w/e", collect, &missing, &stat));
	OK(zoo_wget_children2(zh, "/w", collect, &children, &names, &stat));
	deallocate_String_vector(&names);
	OK(zookeeper_close(other)); /* and with it, its ephemeral */
	EVENT(&missing, ZOO_DELETED_EVENT, "/w/e");
	EVENT(&children, ZOO_CHILD_EVENT, "/w");
	OK(zoo_wexists(zh, "/w", collect, &there, &stat));
	OK(zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, collect, &there, 0));
	RETURNS(ZNOWATCHER, zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, collect, &there, 0));
	OK(zoo_set(zh, "/w", "2", 1, -1));
	OK(sync_now(zh));
	for (int i = there.read; i < there.written; i++)
		EXPECT(there.all[i].type != ZOO_CHANGED_EVENT);
	OK(zookeeper_close(zh));
	return 0;
}

static int configuration(void) {
	struct events session = NO_EVENTS;
	struct Stat stat;
	char buffer[1024] = "";
	int length = sizeof buffer - 1;
	zhandle_t *zh = dial(hosts, &session, NULL);
	OK(zoo_getconfig(zh, 0, buffer, &length, &stat));
	EXPECT(strncmp(buffer, "server.1=127.0.0.1:", 19) == 0);
	OK(zookeeper_close(zh));
	return 0;
}

static int an_ended_session_is_refused(void) {
	struct events session = NO_EVENTS, again = NO_EVENTS;
	zhandle_t *zh = dial(hosts, &session, NULL);
	clientid_t id = *zoo_client_id(zh);
	OK(zookeeper_close(zh));
	zh = zookeeper_init(hosts, collect, SESSION, &id, &again, 0);
	EXPECT(zh != NULL);
	if (await_state(&again, ZOO_EXPIRED_SESSION_STATE))
		return 1;
	zookeeper_close(zh);
	return 0;
}

/* current is the address of the server that a client is connected to. */
static void current(zhandle_t *zh, char *address, size_t size) {
	struct sockaddr_in a;
	socklen_t length = sizeof a;
	char host[INET_ADDRSTRLEN] = "";
	address[0] = 0;
	if (zookeeper_get_connected_host(zh, (struct sockaddr *)&a, &length) == NULL)
		return;
	inet_ntop(AF_INET, &a.sin_addr, host, sizeof host);
	snprintf(address, size, "%s:%d", host, ntohs(a.sin_port));
}

static int move(int round) {
	struct events session = NO_EVENTS, others = NO_EVENTS, data = NO_EVENTS, children = NO_EVENTS;
	struct completion auth = NOT_COMPLETED;
	struct String_vector names;
	struct Stat stat;
	char root[32], mine[64], path[64], before[64], after[64], request[128], buffer[16];
	int length = sizeof buffer;
	zhandle_t *zh = dial(hosts, &session, NULL), *other;
	int64_t id = zoo_client_id(zh)->client_id;
	snprintf(root, sizeof root, "/move-%d", round);
	snprintf(mine, sizeof mine, "%s/mine", root);
	snprintf(path, sizeof path, "%s/new", root);
	OK(zoo_add_auth(zh, "digest", "user:secret", 11, complete, &auth));
	OK(wait_for(&auth, 1));
	OK(zoo_create(zh, root, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	OK(zoo_create(zh, mine, "x", 1, &ZOO_CREATOR_ALL_ACL, ZOO_EPHEMERAL, NULL, 0));
	OK(zoo_wexists(zh, root, collect, &data, &stat));
	OK(zoo_wget_children(zh, root, collect, &children, &names));
	deallocate_String_vector(&names);
	current(zh, before, sizeof before);
	session.read = session.written;
	snprintf(request, sizeof request, "{\"kill\": \"%s\"}", before);
	ask(request);
	if (await_state(&session, ZOO_CONNECTING_STATE) || await_state(&session, ZOO_CONNECTED_STATE))
		return 1;
	current(zh, after, sizeof after);
	EXPECT(strcmp(before, after) != 0);
	EXPECT(zoo_client_id(zh)->client_id == id);
	OK(zoo_get(zh, mine, 0, buffer, &length, &stat)); /* the credentials moved, too */
	EXPECT(stat.ephemeralOwner == id);
	other = dial(hosts, &others, NULL);
	OK(sync_now(other));
	OK(zoo_set(other, root, "1", 1, -1));
	EVENT(&data, ZOO_CHANGED_EVENT, root);
	OK(zoo_create(other, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	EVENT(&children, ZOO_CHILD_EVENT, root);
	OK(zookeeper_close(zh));
	OK(sync_now(other));
	RETURNS(ZNONODE, zoo_exists(other, mine, 0, &stat));
	OK(zookeeper_close(other));
	ask("{\"heal\": true}");
	return 0;
}

static int a_session_moves_when_its_server_dies(void) {
	for (int round = 0; round < 3; round++)
		if (move(round))
			return 1;
	return 0;
}

static int reads_without_a_majority(void) {
	struct events session = NO_EVENTS, readers = NO_EVENTS, data = NO_EVENTS;
	struct Stat stat;
	char buffer[16], request[256], *rest, *all = strdup(hosts), *host = strtok_r(all, ",", &rest);
	int length = sizeof buffer;
	int64_t id;
	zhandle_t *zh = dial(hosts, &session, NULL);
	OK(zoo_create(zh, "/read", "1", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
	OK(zookeeper_close(zh));
	for (int i = 0; i < 2; i++, host = strtok_r(NULL, ",", &rest)) {
		snprintf(request, sizeof request, "{\"kill\": \"%s\"}", host);
		ask(request);
	}
	free(all);
	zh = zookeeper_init(hosts, collect, SESSION, NULL, &readers, ZOO_READONLY);
	if (zh == NULL || await_state(&readers, ZOO_READONLY_STATE))
		return 1;
	OK(zoo_wget(zh, "/read", collect, &data, buffer, &length, &stat));
	EXPECT(length == 1 && buffer[0] == '1');
	RETURNS(ZNOTREADONLY, zoo_set(zh, "/read", "no", 2, -1));
	id = zoo_client_id(zh)->client_id;
	ask("{\"heal\": true}");
	if (await_state(&readers, ZOO_CONNECTED_STATE))
		return 1;
	EXPECT(zoo_client_id(zh)->client_id != id);
	OK(zoo_set(zh, "/read", "2", 1, -1));
	EVENT(&data, ZOO_CHANGED_EVENT, "/read");
	OK(zookeeper_close(zh));
	return 0;
}

#ifdef HAVE_CYRUS_SASL_H
static const char *user, *prefix;

static int creates_what_others_cannot_read(void) {
	struct events session = NO_EVENTS, others = NO_EVENTS;
	const char *mechanism = sasl.mechlist;
	struct ACL_vector acl;
	struct Stat stat;
	char buffer[16];
	int length = sizeof buffer;
	zhandle_t *zh = dial(hosts, &session, NULL), *other;
	sasl.mechlist = NULL;
	other = dial(hosts, &others, NULL);
	sasl.mechlist = mechanism;
	OK(zoo_create(zh, prefix, "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0));
	OK(zoo_get_acl(zh, prefix, &acl, &stat));
	EXPECT(acl.count == 1 && strcmp(acl.data[0].id.scheme, "sasl") == 0 && strcmp(acl.data[0].id.id, user) == 0);
	deallocate_ACL_vector(&acl);
	OK(sync_now(other));
	RETURNS(ZNOAUTH, zoo_get(other, prefix, 0, buffer, &length, &stat));
	OK(zookeeper_close(other));
	OK(zookeeper_close(zh));
	return 0;
}
#endif

struct check {
	const char *name;
	int (*run)(void);
};

/* run_all prints what came of each check. */
static int run_all(const struct check *checks, int n) {
	for (int i = 0; i < n; i++) {
		failure[0] = 0;
		int failed = checks[i].run();
		for (char *p = failure; *p; p++)
			if (*p == '"' || *p == '\\' || *p < ' ')
				*p = '\'';
		printf("{\"check\": \"%s\", \"ok\": %s, \"detail\": \"%s\"}\n", checks[i].name, failed ? "false" : "true", failure);
		fflush(stdout);
	}
	printf("{\"end\": %d}\n", n);
	return 0;
}

int main(int argc, char **argv) {
	static const struct check checks[] = {
		{"operations", operations}, {"large data", large_data}, {"asynchronous", asynchronous},
		{"ACLs and auth", acls_and_auth}, {"multi", multi}, {"watches", watches},
		{"configuration", configuration}, {"an ended session is refused", an_ended_session_is_refused},
		{"a session moves when its server dies", a_session_moves_when_its_server_dies},
	};
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	hosts = argv[1];
#ifdef HAVE_CYRUS_SASL_H
	if (argc == 7) {
		static const struct check with_sasl[] = {
			{"creates what others cannot read", creates_what_others_cannot_read},
			{"a session moves when its server dies", a_session_moves_when_its_server_dies},
		};
		sasl_client_init(NULL);
		user = argv[3];
		prefix = argv[6];
		sasl.service = "zookeeper";
		sasl.host = argv[5];
		sasl.mechlist = argv[2];
		sasl.callbacks = zoo_sasl_make_basic_callbacks(user, NULL, argv[4]);
		return run_all(with_sasl, sizeof with_sasl / sizeof with_sasl[0]);
	}
#endif
	if (argc == 2 && getenv("ZK_LITE_INTEROP_TLS") != NULL) {
		/* All but ACLs and auth: with a certificate, a client has an identity from the beginning. */
		static const struct check over_tls[] = {
			{"operations", operations}, {"large data", large_data}, {"asynchronous", asynchronous},
			{"multi", multi}, {"watches", watches}, {"configuration", configuration},
			{"an ended session is refused", an_ended_session_is_refused},
			{"a session moves when its server dies", a_session_moves_when_its_server_dies},
		};
		return run_all(over_tls, sizeof over_tls / sizeof over_tls[0]);
	}
	if (argc == 3 && strcmp(argv[2], "read-only") == 0) {
		static const struct check read_only[] = {{"reads without a majority", reads_without_a_majority}};
		return run_all(read_only, 1);
	}
	if (argc != 2) {
		fprintf(stderr, "usage: %s connect-string [read-only | mechanism user password-file host prefix]\n", argv[0]);
		return 2;
	}
	return run_all(checks, sizeof checks / sizeof checks[0]);
}
