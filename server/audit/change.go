package audit

import (
	"strings"

	"github.com/zk-lite/zk-lite/consensus/state"
	"github.com/zk-lite/zk-lite/znode"
)

// operations are ZooKeeper's names (AuditConstants) of commands.
var operations = map[state.Op]string{
	state.OpCreate: "create", state.OpDelete: "delete", state.OpSetData: "setData", state.OpSetACL: "setAcl",
	state.OpMulti: "multiOperation", state.OpDeleteAll: "deleteAll", // the last one is ours
}

func audited(op state.Op) bool { return operations[op] != "" }

// events are the lines of an item: of a transaction that went well, one for each change.
func (i *item) events() []Event {
	if i.command == nil {
		i.client.fill(&i.event)
		return []Event{i.event}
	}
	result := Success
	if i.code != znode.OK {
		result = Failure
	}
	if i.command.Op != state.OpMulti || result == Failure {
		return []Event{i.change(i.command, result)}
	}
	var all []Event
	for k := range i.command.Ops {
		if op := &i.command.Ops[k]; audited(op.Op) { // a check changes nothing
			all = append(all, i.change(op, result))
		}
	}
	return all
}

func (i *item) change(c *state.Command, result Result) Event {
	e := Event{Operation: operations[c.Op], Znode: c.Path, Result: result}
	i.client.fill(&e)
	switch c.Op {
	case state.OpCreate:
		e.ZnodeType = createMode(c)
	case state.OpSetACL:
		e.ACL = aclText(c.ACL)
	}
	if result == Failure {
		e.Reason = i.code.Name()
	}
	return e
}

// createMode is ZooKeeper's CreateMode in small letters.
func createMode(c *state.Command) string {
	names := []string{"persistent", "ephemeral", "persistent_sequential", "ephemeral_sequential", "container",
		"persistent_with_ttl", "persistent_sequential_with_ttl"}
	switch m := int(c.Mode); {
	case c.Kind == znode.CreateContainer:
		return "container"
	case m >= 0 && m < len(names):
		return names[m]
	}
	return "unknown"
}

// aclText is ZKUtil.aclToString, but for the hashes of passwords.
func aclText(list []znode.ACL) string {
	var parts []string
	for _, a := range list {
		id := a.ID.ID
		if user, _, ok := strings.Cut(id, ":"); ok && a.ID.Scheme == "digest" {
			id = user + ":x"
		}
		parts = append(parts, a.ID.Scheme+":"+id+":"+a.Perms.String())
	}
	return strings.Join(parts, ",")
}
