package storage

import (
	"fmt"
	"os"
	"path/filepath"
)

// zookeeperDir is where ZooKeeper keeps its snapshots, under dataDir, and its log, under
// dataLogDir, in every release of Apache's.
const zookeeperDir = "version-2"

// ownNames are in a directory that a server of zk-lite has used. The directory snapshots is no
// such name: an operator of ZooKeeper may have one.
var ownNames = []string{identityName, stableName, "raftlog", "raftlog.db"}

// RefuseZooKeeper finds ZooKeeper's data in directories that no server of zk-lite has used
// yet. To start there would serve an empty tree, as if all data were lost, and clients
// would create their znodes anew. Beside data of our own it is only mentioned in the log:
// that server has started before, and must start again. Nothing is created or opened.
func (c *Config) RefuseZooKeeper() error {
	logDir := c.LogDir
	if logDir == "" {
		logDir = c.Dir
	}
	for _, x := range []struct{ setting, dir string }{{"dataDir", c.Dir}, {"dataLogDir", logDir}} {
		found := filepath.Join(x.dir, zookeeperDir)
		if info, err := os.Stat(found); err != nil || !info.IsDir() {
			continue
		}
		if !hasOwn(c.Dir) && !hasOwn(logDir) {
			return fmt.Errorf("%s, in the directory of the setting %s, is the data of an Apache ZooKeeper, which "+
				"zk-lite cannot read; to keep it, start ZooKeeper again, save the tree with zk-lite export, and "+
				"import it into a zk-lite whose %s is another directory (docs/operations.md, \"Coming from "+
				"ZooKeeper\"); to start without it, set %s to another directory",
				found, x.setting, x.setting, x.setting)
		}
		c.Logger.Warn("the data of an Apache ZooKeeper is not read: this server has data of its own beside it; "+
			"remove the directory when you need it no more", "dir", found)
		return nil
	}
	return nil
}

func hasOwn(dir string) bool {
	for _, name := range ownNames {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
