// Package backupfile reads backups: what GET /v1/snapshot streams, and what servers keep. Check finds with little
// memory whether one is whole, by zstd's checksum; Restore rebuilds its tree in memory and compares the digest.
package backupfile
