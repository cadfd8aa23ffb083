package config

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// securityKeys are those of ZooKeeper's keys that are about who may do what, who can read what, and how much.
var securityKeys = regexp.MustCompile(`^(ssl\.|ssl|quorum\.auth|authProvider|kerberos|sasl|SASL|X509|Digest|IPAuth|` +
	`enforce\.auth|ensembleAuth|sessionRequire|skipACL|audit|admin\.(force|need|port|enable|server|snapshot|restore|rate)|` +
	`client\.(port|cert)|portUnification|secureClient|maxCnxns|maxClientCnxns|connection|request_|requestThrottle|` +
	`requestStale|throttled|large|nio\.sessionless|netty\.server|outstandingHandshake|fips|superUser|requireKerberos|` +
	`allowSasl|letAny|security\.|kinit|4lw)`)

// TestDocs_SecurityKeys: the table of docs/security.md has each of them, or a beginning with a star.
func TestDocs_SecurityKeys(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "## Every key of ZooKeeper 3.9\n")
	table, _, _ = strings.Cut(table, "\n## ")
	if !found {
		t.Fatal("there is no table")
	}
	var named []string
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(table, -1) {
		named = append(named, m[1])
	}
	n := 0
	for _, key := range zooKeeperKeys(t) {
		key = strings.TrimSuffix(key, ".")
		if !securityKeys.MatchString(key) {
			continue
		}
		n++
		if !slices.ContainsFunc(named, func(k string) bool {
			beginning, all := strings.CutSuffix(k, "*")
			return k == key || all && strings.HasPrefix(key+".", beginning)
		}) {
			t.Errorf("%s is not in the table", key)
		}
	}
	if n < 60 {
		t.Errorf("only %d keys", n)
	}
}
