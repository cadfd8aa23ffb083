package session

import (
	"encoding/binary"

	"github.com/zk-lite/zk-lite/znode"
)

// CompatiblePassword returns the password that every ZooKeeper server gives the session with this id, and accepts for
// it: 16 bytes of java.util.Random with the id and a constant as its seed (ZooKeeperServer.generatePasswd).
func CompatiblePassword(id znode.SessionID) (p Password) {
	const secret, multiplier, increment, mask = 0xB3415C00, 0x5DEECE66D, 0xB, 1<<48 - 1
	seed := (uint64(id) ^ secret ^ multiplier) & mask
	for i := 0; i < len(p); i += 4 {
		seed = (seed*multiplier + increment) & mask
		binary.LittleEndian.PutUint32(p[i:], uint32(seed>>16))
	}
	return p
}

// Compatible reports whether a ZooKeeper server that has the session would accept its password.
func (s *Session) Compatible() bool { return s.Password == CompatiblePassword(s.ID) }
