package tenants

// tenants are the systems, in the order in which they start.
var tenants = []tenant{
	{"kafka", "Kafka 3.9.1", "Java 3.8.4", true, "three brokers: topics, users, ACLs and settings come and go, partitions " +
		"move, records are kept, and the controller is stopped or killed"},
	{"bookkeeper", "BookKeeper 4.17.2", "Java 3.9.3", true, "four bookies: ledgers are written, taken over from their " +
		"writer, read by another client and deleted; the auditor's bookie is stopped or killed and its ledgers are copied"},
	{"hadoop", "Hadoop 3.4.1", "Java 3.8.4", true, "HDFS: two NameNodes take over from each other, asked, stopped, or " +
		"their failover controller killed, while files are written, read and deleted"},
	{"flink", "Flink 1.20.1", "Java 3.7.1 with Curator 5.4.0, shaded", true, "a job counts numbers and writes each exactly " +
		"once by checkpoints; of two JobManagers the one that leads is killed, and the other restores the job"},
	{"solr", "Solr 9.10.1", "Java 3.9.4", true, "three nodes, with sessions of 10 s: documents are indexed, " +
		"collections created, split, aliased and deleted, and the overseer's node or another stopped and started"},
	{"helix", "Helix 1.4.3", "Java 3.6.3", true, "two controllers place 20 partitions on five participants, a master and " +
		"two slaves each, while participants and the leading controller stop and start, and resources come and go"},
	{"clickhouse", "ClickHouse 18.16.1", "its own, in C++", false, "three servers: blocks of rows are inserted, repeated " +
		"and read elsewhere; tables are created, altered and dropped; servers are stopped and killed"},
	{"patroni", "Patroni 3.0.2 with PostgreSQL 15", "kazoo 2.8.0", true, "three nodes: rows are committed, settings " +
		"changed, primaries switched over, stopped and killed, and Patroni is killed beside its PostgreSQL"},
}
