package client

import (
	"crypto/sha1" // not for secrecy: it is what the scheme is made of
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/zk-lite/zk-lite/znode"
)

// OpenACL returns the list with which everybody may do everything.
func OpenACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.Anyone}} }

// ReadACL returns the list with which everybody may read, and nobody do more.
func ReadACL() []ACL { return []ACL{{Perms: PermRead, ID: znode.Anyone}} }

// CreatorACL returns the list that gives everything to the identities that the
// connection has proved with WithAuth or AddAuth, and nothing to others. A
// connection without any gets ErrInvalidACL.
func CreatorACL() []ACL { return []ACL{{Perms: PermAll, ID: znode.AuthIDs}} }

// DigestACL returns the list with which those who know the user's password have
// some permissions, and others none. It does not take being that user to set it.
// Lists are joined by append:
//
//	acl, err := client.DigestACL(client.PermAll, "alice", "secret")
//	acl = append(acl, client.ReadACL()...)
//
// Errors: ErrBadArguments, as DigestID.
func DigestACL(perms Perms, user, password string) ([]ACL, error) {
	id, err := DigestID(user, password)
	if err != nil {
		return nil, err
	}
	return []ACL{{Perms: perms, ID: id}}, nil
}

// DigestID returns the identity that WithAuth("digest", []byte("user:password"))
// proves: scheme digest, and the user's name with the base64 of the SHA-1 of
// user:password behind it (ZooKeeper's DigestAuthenticationProvider). The hash is
// not salted: a client that may read the list can try passwords, so use long ones.
//
// Errors: ErrBadArguments if the user's name is empty or has a colon, at which the
// servers would cut it.
func DigestID(user, password string) (ID, error) {
	if user == "" || strings.Contains(user, ":") {
		return ID{}, fmt.Errorf("digest identity of user %q: want a name without colons: %w",
			user, ErrBadArguments)
	}
	sum := sha1.Sum([]byte(user + ":" + password))
	return ID{Scheme: "digest", ID: user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, nil
}
