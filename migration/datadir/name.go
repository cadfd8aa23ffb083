package datadir

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// Kind is what a file holds, by its name.
type Kind string

// The kinds.
const (
	KindSnapshot Kind = "snapshot" // snapshot.<zxid in hexadecimal>[.gz|.snappy]
	KindLog      Kind = "log"      // log.<zxid of the first transaction>
	KindOther    Kind = ""
)

// parseName splits the name of a snapshot or a log (Util.getZxidFromName). Servers take a name with more behind the
// zxid for the same: log.5.fixed for log.5. Here such a file has no kind.
func parseName(path string) (kind Kind, zxid znode.Zxid, suffix string) {
	parts := strings.Split(filepath.Base(path), ".")
	if len(parts) < 2 {
		return KindOther, 0, ""
	}
	n, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil || n < 0 {
		return KindOther, 0, ""
	}
	if len(parts) > 2 {
		suffix = strings.Join(parts[2:], ".")
	}
	switch {
	case parts[0] == string(KindLog) && suffix == "":
		return KindLog, znode.Zxid(n), ""
	case parts[0] == string(KindSnapshot) && (suffix == "" || suffix == "gz" || suffix == "snappy"):
		return KindSnapshot, znode.Zxid(n), suffix
	}
	return KindOther, 0, ""
}

// epoch is the number of the leader that made a transaction, and counter the transaction's number of that leader's.
func epoch(z znode.Zxid) uint32   { return uint32(z >> 32) }
func counter(z znode.Zxid) uint32 { return uint32(z) }
