package data

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/zk-lite/zk-lite/api/body"
	"github.com/zk-lite/zk-lite/api/rest"
	"github.com/zk-lite/zk-lite/server"
	"github.com/zk-lite/zk-lite/znode"
)

const (
	maxIdentities = 20 // that are explained together
	leastHash     = 16 // bytes of a password's hash: the shortest of crypto
)

// right is an operation, and the permission that it needs.
type right struct {
	operation string
	needs     znode.Perms
}

// The operations that a znode's ACL permits, and those on the znode that the parent's does.
var (
	ownRights = []right{
		{"read", znode.PermRead}, {"write", znode.PermWrite}, {"create children", znode.PermCreate},
		{"delete children", znode.PermDelete}, {"set the ACL", znode.PermAdmin},
	}
	deleteRight = right{"delete", znode.PermDelete}
	createRight = right{"create", znode.PermCreate}
)

// explainACL tells what a client with other identities may do with a znode, and by which entry of an ACL, if
// the one who asks may read it.
func explainACL(q *rest.Request) error {
	path, err := q.ZnodePath()
	if err != nil {
		return err
	}
	ids, err := identities(q.Query.Values["identity"])
	if err != nil {
		return err
	}
	var own, above []znode.ACL
	var code, aboveCode znode.Error
	parent := znode.Parent(path)
	q.View(func(v *server.View) {
		own, _, code = v.Tree().ACLOf(path, q.IDs)
		above, _, aboveCode = v.Tree().ACLOf(parent, q.IDs)
	})
	answer := body.Rights{Path: path, Rights: []body.Right{}}
	setting := q.Core.Config.Auth.Unrestricted(ids)
	ofParent := deleteRight
	switch {
	case code == znode.ErrNoNode && aboveCode == znode.OK:
		ofParent = createRight
	case code != znode.OK:
		return rest.Fail(code, path)
	default:
		for _, r := range ownRights {
			answer.Rights = append(answer.Rights, r.explain(path, own, ids, setting))
		}
	}
	switch {
	case path == znode.RootPath:
	case aboveCode != znode.OK:
		answer.Rights = append(answer.Rights, body.Right{Operation: ofParent.operation, Of: parent,
			Needs: ofParent.needs.String(), Why: "you may not read the ACL of " + parent})
	default:
		answer.Rights = append(answer.Rights, ofParent.explain(parent, above, ids, setting))
	}
	return q.Answer(http.StatusOK, answer)
}

// explain finds the entry of the ACL of a znode that gives the right; setting is the one that makes ACLs void.
func (r right) explain(of string, acl []znode.ACL, ids []znode.ID, setting string) body.Right {
	e := body.Right{Operation: r.operation, Needs: r.needs.String(), Of: of}
	may := true
	e.May = &may
	if setting != "" {
		e.Why = "ACLs do not bind this client: " + setting
		return e
	}
	if len(acl) == 0 {
		e.Why = "the ACL is empty, which permits everything"
		return e
	}
	others := 0
	for _, a := range acl {
		byName := a // an identity may have no hash, and the asker not see that of the ACL
		byName.ID.ID = znode.WithoutHash(a.ID)
		if znode.Permits([]znode.ACL{a}, r.needs, ids) || znode.Permits([]znode.ACL{byName}, r.needs, ids) {
			e.Entry = fmt.Sprintf("%s:%s:%s", a.ID.Scheme, byName.ID.ID, a.Perms)
			e.Why = "by this entry"
			return e
		}
		if a.Perms&r.needs != 0 {
			others++
		}
	}
	may = false
	e.Why = fmt.Sprintf("no entry names them with %s; entries with it for others: %d", e.Needs, others)
	return e
}

// identities reads scheme:id, where a digest may be without its hash.
func identities(texts []string) (ids []znode.ID, err error) {
	if len(texts) == 0 || len(texts) > maxIdentities {
		return nil, rest.BadRequest("identity", "given %d times; give it 1 to %d times, such as digest:USER",
			len(texts), maxIdentities)
	}
	for _, text := range texts {
		scheme, name, _ := strings.Cut(text, ":")
		id := znode.ID{Scheme: scheme, ID: name}
		switch {
		case scheme == "digest":
			user, hash, hashed := strings.Cut(name, ":")
			if !hashed {
				id.ID = znode.WithoutHash(id)
			} else if b, err := base64.StdEncoding.DecodeString(hash); err != nil || len(b) < leastHash {
				return nil, rest.BadRequest("identity", "what stands behind digest:%s: is not the hash of a password; "+
					"leave it out (in a URL + is written %%2B)", user)
			}
		case scheme == "ip":
			if _, err := netip.ParseAddr(name); err != nil {
				return nil, rest.BadRequest("identity", "%q is not ip: and a client's address", text)
			}
		case scheme != "super" && scheme != "x509" && !znode.ValidID(id):
			return nil, rest.BadRequest("identity", "%q is not one of a client: digest:USER, ip:ADDRESS, x509:NAME, "+
				"sasl:USER, token:NAME, world:anyone", text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}
