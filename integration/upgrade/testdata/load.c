/* ZooKeeper's C client under load: see the type foreign in foreign_test.go. The argument is the connect string. */
#include <stdio.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

int main(int argc, char **argv) {
	char path[256];
	zhandle_t *client = argc == 2 ? zookeeper_init(argv[1], NULL, 10000, NULL, NULL, 0) : NULL;
	if (!client)
		return 1;
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	while (fgets(path, sizeof path, stdin)) {
		path[strcspn(path, "\n")] = 0;
		int rc = zoo_create(client, path, path, (int)strlen(path), &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
		if (rc == ZOK)
			puts("written");
		else if (rc == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT)
			puts("unknown");
		else
			printf("error %s\n", zerror(rc));
		fflush(stdout);
	}
	return zookeeper_close(client) != ZOK;
}
