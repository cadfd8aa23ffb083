// Package wire holds the records and messages of the ZooKeeper client protocol
// (ZooKeeper 3.9, zookeeper.jute and ZooDefs.OpCode), one file a message.
//
// Every record is a struct with Append, which appends its encoding to a byte
// slice, and Decode, which overwrites every field from a jute.Reader; errors
// stick to the Reader. A record is a Request or a Response, by the side that
// sends it. The package serves both sides: the server, the Go client, tests and
// proxies.
//
// Three distinctions of the protocol survive in both directions: data that is
// null (nil) or empty, an ACL that is null (nil) or empty, and reconfig's null
// strings. A null path, scheme or id reads as "", and a null vector of strings
// reads as an empty one. Bytes after a record are ignored, as ZooKeeper does.
//
// Byte slices in decoded records are part of the Reader's input; see
// jute.Reader.Buffer. A decoded ACL may be the shared znode.OpenACL: do not
// modify it.
//
// The package does not read or write connections (FrameReader reads any
// io.Reader), does not check paths, ACLs, versions or modes, and knows nothing
// of sessions. It runs no goroutines; its functions may be called concurrently
// on different values.
package wire
