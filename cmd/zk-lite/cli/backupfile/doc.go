// Package backupfile finds out whether a backup is whole: what GET /v1/snapshot
// streams, which is the format of the servers' own snapshots. It needs little memory
// however large a backup is, and so does not rebuild the tree and its digest: a server
// does that when the backup is restored. zstd's checksum guards the bytes here.
package backupfile
