package tenants

// tenants are the systems, in the order in which they start.
var tenants = []tenant{
	{"kafka", "Kafka 3.9.1", "Java 3.8.4", true, "topics, users, ACLs and settings come and go on three brokers, " +
		"partitions move, records are kept, and the controller is stopped or killed (sessions of 6 s)"},
	{"bookkeeper", "BookKeeper 4.17.2", "Java 3.9.3", true, "ledgers on four bookies are written, taken over from their " +
		"writer, read by another client and deleted, and the auditor's bookie is stopped or killed and its ledgers copied"},
	{"hadoop", "Hadoop 3.4.1: HDFS with its failover controllers", "Java 3.8.4", true,
		"Two NameNodes take over from each other, asked, stopped, or their controller killed, while files are written, " +
			"read and deleted through the failover proxy; TLS by Hadoop's own keys."},
	{"flink", "Flink 1.20.1", "Java 3.7.1 with Curator 5.4.0, shaded", true,
		"A job counts numbers and writes each exactly once by checkpoints every 2 seconds; of two JobManagers the one that " +
			"leads is killed, and the other restores the job from ZooKeeper."},
	{"solr", "Solr 9.10", "Java 3.9.4 with Curator 5.9.0", true, ""},
	{"helix", "Helix 1.4.3", "Java 3.6.3", true,
		"Two controllers place 20 partitions on five participants, a master and two slaves each, while participants and " +
			"the leading controller stop and start, and resources come and go."},
	{"clickhouse", "ClickHouse 18.16.1", "its own, in C++", false, ""},
	{"helix", "Helix 1.4", "Java 3.6.3", true, ""},
	{"clickhouse", "ClickHouse 18.16.1", "its own, in C++", false, "three servers: blocks of rows inserted, repeated " +
		"and read elsewhere, with and without a quorum, tables created, altered and dropped on all, servers stopped and killed"},
	{"patroni", "Patroni 3.0.2 with PostgreSQL 15", "kazoo 2.8.0", true, "three nodes: rows committed, settings " +
		"changed, primaries switched over, stopped and killed, and Patroni killed beside its PostgreSQL"},
}
