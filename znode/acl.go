package znode

import "strings"

// Perms is a set of permissions (Programmer's Guide, "ACL Permissions").
type Perms int32

// The permissions. A server stores any number a client sends, as ZooKeeper does.
const (
	PermRead   Perms = 1 << iota // get data and list children
	PermWrite                    // set data
	PermCreate                   // create children
	PermDelete                   // delete children
	PermAdmin                    // set the ACL
	PermAll    Perms = 31
)

const permLetters = "rwcda"

// String writes the set in zkCli's order and letters: cdrwa.
func (p Perms) String() string {
	var b strings.Builder
	for _, l := range "cdrwa" {
		if p&(1<<strings.IndexRune(permLetters, l)) != 0 {
			b.WriteRune(l)
		}
	}
	return b.String()
}

// ID is an identity: a scheme and a name within it, such as
// digest, "user:hash" or ip, "10.0.0.0/8".
type ID struct {
	Scheme string
	ID     string
}

// MaxACL bounds the entries of a list that a client sets, with "auth" replaced by the client's identities. The tree
// accepts longer ones, which logs and backups may contain.
const MaxACL = 1000

// ACL grants permissions to an identity.
type ACL struct {
	Perms Perms
	ID    ID
}

// The identities and lists that are used everywhere.
var (
	Anyone   = ID{Scheme: "world", ID: "anyone"}
	OpenACL  = []ACL{{Perms: PermAll, ID: Anyone}}
	ReadACL  = []ACL{{Perms: PermRead, ID: Anyone}}
	AuthIDs  = ID{Scheme: "auth", ID: ""}
	SuperIDs = ID{Scheme: "super", ID: ""}
)
