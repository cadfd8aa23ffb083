package state

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zk-lite/zk-lite/znode"
)

// Level is a feature level. Every release that adds operations or fields has a level of its own, and also supports that
// of the release before. The ensemble's level, part of its state, bounds what its servers may put into the log. It
// never falls. It is 0 until all servers have published their levels.
type Level uint32

// MinLevel is the lowest level that this build supports; MaxLevel, the highest, is that of its
// release.
const MinLevel Level = 1

// level2 is the level of release 1.1. It adds OpMirror, OpReconfig, OpPurge, OpBranch and FlagTraced, and changes what
// commands do: those that no client may send are refused (forbidden), and the tree follows znode.Txn's rules instead of
// FirstRules.
const level2 Level = 2

// opLevels has the level of the release that introduced each operation; 0 for an unknown operation.
var opLevels = [1 << 8]Level{
	OpCreate: 1, OpDelete: 1, OpSetData: 1, OpSetACL: 1, OpCheck: 1, OpMulti: 1, OpSync: 1, OpCreateSession: 1,
	OpCloseSession: 1, OpAttach: 1, OpExpireSession: 1, OpReap: 1, OpMember: 1, OpCheckAbsent: 1, OpDeleteAll: 1,
	OpRestore: 1, OpDigest: 1, OpLevel: 1,
	OpMirror: level2, OpReconfig: level2, OpPurge: level2, OpBranch: level2, OpGet: level2, OpChildren: level2,
}

func (o Op) known() bool { return opLevels[o] != 0 }

// opNames has the name of each operation.
var opNames = map[Op]string{
	OpCreate: "create", OpDelete: "delete", OpSetData: "setData", OpSetACL: "setACL", OpCheck: "check",
	OpMulti: "multi", OpSync: "sync", OpCreateSession: "createSession", OpCloseSession: "closeSession",
	OpAttach: "attach", OpExpireSession: "expireSession", OpReap: "reap", OpMember: "member",
	OpCheckAbsent: "checkAbsent", OpDeleteAll: "deleteAll", OpRestore: "restore", OpDigest: "digest", OpLevel: "level",
	OpMirror: "mirror", OpReconfig: "reconfig", OpPurge: "purge",
	OpBranch: "branch", OpGet: "get", OpChildren: "children",
}

// String is ZooKeeper's name of the operation, if ZooKeeper has it.
func (o Op) String() string {
	if name, ok := opNames[o]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// CheckLevel returns an error if c may not be put into the log of an ensemble at this
// level.
func (c *Command) CheckLevel(now Level) error {
	need := opLevels[c.Op]
	if c.Flags&FlagTraced != 0 {
		need = max(need, level2)
	}
	for i := range c.Ops {
		need = max(need, opLevels[c.Ops[i].Op])
	}
	if need > max(now, MinLevel) {
		return &LevelError{Need: need, Now: now}
	}
	return nil
}

// LevelError reports an operation that the ensemble's level does not have yet.
type LevelError struct{ Need, Now Level }

func (e *LevelError) Error() string {
	return fmt.Sprintf("the operation needs feature level %d, and the ensemble is at level %d: run the new release on "+
		"all servers, then raise the level with `zk-lite upgrade finalize`", e.Need, e.Now)
}

// Spoken returns an error if this build does not support a level, and so cannot be a member of an
// ensemble at it.
func (l Level) Spoken() error {
	if l == 0 || l >= MinLevel && l <= MaxLevel {
		return nil
	}
	which := "newer"
	if l < MinLevel {
		which = "older"
	}
	return fmt.Errorf("the ensemble is at feature level %d, but this build of zk-lite speaks levels %d to %d: run the "+
		"%s release that the other servers run (zk-lite upgrade status)", l, MinLevel, MaxLevel, which)
}

// Level is the ensemble's level.
func (m *Machine) Level() Level { return m.level }

// CommonLevel is the highest level that all servers in the configuration support; 0 if some have not published
// theirs, which it returns.
func CommonLevel(configured map[ServerID]bool, members map[ServerID]Member) (common Level, silent []ServerID) {
	ids := slices.Sorted(maps.Keys(configured))
	for i, id := range ids {
		highest := members[id].MaxLevel
		if highest == 0 {
			silent = append(silent, id)
		}
		if common = min(common, highest); i == 0 {
			common = highest
		}
	}
	return common, silent
}

// raiseLevel is OpLevel. Repeating it is harmless.
func (m *Machine) raiseLevel(to Level) {
	common, _ := CommonLevel(m.voters, m.members)
	switch {
	case to == m.level && to != 0:
	case to < m.level || to > common:
		m.result.Code = znode.ErrBadArguments
	default:
		m.level = to
	}
}

// firstLevel gives an ensemble its first level as soon as all its servers have published theirs: it cannot go
// back to an older release than the oldest of them.
func (m *Machine) firstLevel() {
	if m.level == 0 {
		m.level, _ = CommonLevel(m.voters, m.members)
	}
}
