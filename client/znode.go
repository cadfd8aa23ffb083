package client

import "github.com/zk-lite/zk-lite/znode"

// The types of the data model are those of package znode, under the names that
// a caller of this package needs.
type (
	// ACL grants permissions to an identity.
	ACL = znode.ACL
	// ID is an identity: a scheme, such as digest, and its id.
	ID = znode.ID
	// Mode is the kind of a znode: persistent, ephemeral, sequential...
	Mode = znode.Mode
	// Perms is a set of permissions.
	Perms = znode.Perms
	// SessionID names a session for as long as the ensemble lives.
	SessionID = znode.SessionID
	// Stat is the ensemble's metadata of a znode.
	Stat = znode.Stat
	// Version counts the changes of a znode's data, children or ACL.
	Version = znode.Version
	// Zxid is the place of a transaction in their order.
	Zxid = znode.Zxid
)

// The kinds of znodes that Create makes; PersistentTTL and
// PersistentSequentialTTL are for CreateTTL.
const (
	Persistent              = znode.Persistent
	Ephemeral               = znode.Ephemeral
	PersistentSequential    = znode.PersistentSequential
	EphemeralSequential     = znode.EphemeralSequential
	Container               = znode.Container
	PersistentTTL           = znode.PersistentTTL
	PersistentSequentialTTL = znode.PersistentSequentialTTL
)

// The permissions of an ACL.
const (
	PermRead   = znode.PermRead
	PermWrite  = znode.PermWrite
	PermCreate = znode.PermCreate
	PermDelete = znode.PermDelete
	PermAdmin  = znode.PermAdmin
	PermAll    = znode.PermAll
)

// AnyVersion as an expected version matches every version.
const AnyVersion = znode.AnyVersion

// NoZxid marks an event of an unknown transaction: ZooKeeper sends the zxid of
// events since 3.9, but never for missed events that it reports in reply to
// setWatches.
const NoZxid = znode.NoZxid
