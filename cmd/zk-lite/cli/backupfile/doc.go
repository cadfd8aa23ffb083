// Package backupfile checks that a backup is complete and undamaged. A backup is what GET
// /v1/snapshot streams, in the format of the servers' snapshots. The check needs little
// memory for a backup of any size. It verifies zstd's checksum and does not rebuild the
// tree and its digest: a server does that when it restores the backup.
package backupfile
