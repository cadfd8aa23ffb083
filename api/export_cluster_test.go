package api

import "github.com/zk-lite/zk-lite/server"

// ParseMember reads the address of a new server.
func ParseMember(text string) (server.Member, error) { return parseMember(text) }
