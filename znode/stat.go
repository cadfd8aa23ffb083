package znode

// Stat is the metadata of a znode that clients see (ZooKeeper Programmer's
// Guide, "Time in ZooKeeper" and "ZooKeeper Stat Structure"). The field order
// is that of the wire record.
type Stat struct {
	Czxid          Zxid      // transaction that created the znode
	Mzxid          Zxid      // transaction that last changed its data
	Ctime          int64     // milliseconds since the epoch of Czxid
	Mtime          int64     // milliseconds since the epoch of Mzxid
	Version        Version   // changes of the data
	Cversion       Version   // creates plus deletes of children
	Aversion       Version   // changes of the ACL
	EphemeralOwner SessionID // owner of an ephemeral; 0 for every other kind
	DataLength     int32     // bytes of data
	NumChildren    int32     // children at this moment
	Pzxid          Zxid      // transaction that last created or deleted a child
}
